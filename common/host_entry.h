/* SPDX-License-Identifier: Apache-2.0 */
/* host_entry: one entry of a list of hosts (host_list.h).
 * Owns: nothing.  Threads: any.  Blocks: on the file system, whether a command is there.
 * Fails: -EINVAL, and why. */
#ifndef COMMON_HOST_ENTRY_H
#define COMMON_HOST_ENTRY_H

#include <stdbool.h>

#include "common/host_list.h"

enum { HOST_WHY_MAX = 320 };

struct host_entry {
  enum host_kind kind;
  char user[HOST_NAME_MAX_BYTES];
  char name[HOST_NAME_MAX_BYTES]; /* may stand for many (node_list.h), unless it is an address */
  bool is_address;                /* of IPv6 */
  bool is_plain;                  /* NAME, without ssh: or ns: */
  int count;                      /* of local:N; else 1 */
  int slots, max_slots, port;     /* 0: not said */
};

/* `text` without blanks around it; it is changed. */
int host_entry_read(char *text, struct host_entry *entry, char why[HOST_WHY_MAX]);

/* What is wrong with the name of a host, or NULL. */
const char *host_entry_problem(const char *name);

#endif
