/* SPDX-License-Identifier: Apache-2.0 */
/* fork_guard: what fork() does to a process that uses a plugin, as the workers of a data loader are
 * made. The child has none of our descriptors (descriptor.h), and no use of the plugin: its locks
 * may be held by threads that the child does not have, and its connections are the parent's.
 *
 * Owns: the handlers of fork().  Threads: any.  Blocks: fork() itself, as descriptor.h says.
 * Fails: cannot; without memory for the handlers a child is not told from its parent. */
#ifndef COMMON_FORK_GUARD_H
#define COMMON_FORK_GUARD_H

#include <stdbool.h>

/* From now on. Children that were forked before may use the plugin like any process. */
void fork_guard_install(void);

/* Children forked from now on also lose what they inherit of mappings of files whose names begin
 * so; the text stays the caller's, and must stay. A mapping keeps a device open as a descriptor
 * does: with those of /dev/infiniband/uverbs0 in a child, the queue pairs of a killed parent live
 * on (seen with SoftRoCE). One such text at a time. */
void fork_guard_unmap(const char *name_begins);

extern bool fork_guard_is_forked; /* written in the child's only thread, before fork() returns */

/* Is this a child of the process that used the plugin? */
static inline bool fork_guard_is_child(void) {
  return fork_guard_is_forked;
}

/* The same; says so on stderr, once: no lock may be taken here, and so no log be written. */
bool fork_guard_refuses(void);

#endif
