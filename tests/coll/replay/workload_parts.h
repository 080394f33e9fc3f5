/* SPDX-License-Identifier: Apache-2.0 */
/* workload_parts: what the readers of a workload file's parts share; for workload*.c only.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: -EINVAL or -ENOMEM, with a message as fields.h says. */
#ifndef COLL_REPLAY_WORKLOAD_PARTS_H
#define COLL_REPLAY_WORKLOAD_PARTS_H

#include "tests/coll/replay/fields.h"
#include "tests/coll/replay/workload.h"

enum { WORKLOAD_NAME_BYTES_MAX = 64 };

/* The bit of objects of which there is one kind. */
enum { KIND_ONLY = 1 };

/* What is known while a file is read. */
struct workload_context {
  struct workload *workload;
  json_t *ids; /* of communication: id as text -> index of its first item */
  uint32_t numbers;
};

int workload_no_memory(struct fields_reader *reader);

/* Allocates room for a list's entries, and counts them. */
int workload_open_list(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, size_t entry_bytes, void **entries,
                       size_t *count);

fields_read workload_read_type;   /* enum element_type */
fields_read workload_read_groups; /* struct workload */
fields_read workload_read_events; /* struct workload, whose groups have been read */

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#endif
