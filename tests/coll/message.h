/* SPDX-License-Identifier: Apache-2.0 */
/* message: messages on stderr, with the name of the rank. Owns: that name.  Threads: any.
 * Blocks: if stderr does.  Fails: never. */
#ifndef COLL_MESSAGE_H
#define COLL_MESSAGE_H

#include <stddef.h>

/* Exit statuses. To ranks_run, a rank reports wrong values by a status of its own: it
 * ended as it should, and must not be taken for one that failed. */
enum { EXIT_GOOD = 0, EXIT_BAD = 1, EXIT_WRONG_USE = 2, EXIT_RANK_SAW_WRONG = 3 };

/* "rank 3 on b", once known. */
void message_set_name(const char *name);

__attribute__((format(printf, 1, 2))) void message_write(const char *format, ...);

/* Memory of zeros; ends the process where there is none. */
void *message_allocate(size_t count, size_t size);

/* Writes it and ends the process with EXIT_BAD at once, without waiting for other threads. */
__attribute__((noreturn, format(printf, 1, 2))) void message_fail(const char *format, ...);

#endif
