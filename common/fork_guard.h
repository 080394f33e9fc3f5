/* SPDX-License-Identifier: Apache-2.0 */
/* fork_guard: handles fork() in a process that uses a plugin, e.g. for workers of a data loader.
 * The child closes the plugin's descriptors (descriptor.h) and cannot use the plugin: locks may be
 * held by threads that the child does not have, and connections belong to the parent.
 *
 * Owns: the handlers of fork().  Threads: any.  Blocks: fork() itself, as descriptor.h says.
 * Fails: cannot; without memory for the handlers a child is not detected. */
#ifndef COMMON_FORK_GUARD_H
#define COMMON_FORK_GUARD_H

#include <stdbool.h>

/* Installs the handlers. Children forked earlier may use the plugin like any process. */
void fork_guard_install(void);

/* Children forked from now on also unmap inherited mappings of files with this path prefix; the
 * text must stay valid. A mapping keeps a device open as a descriptor does: with those of
 * /dev/infiniband/uverbs0 in a child, the queue pairs of a killed parent stay alive (seen with
 * SoftRoCE). One prefix at a time. */
void fork_guard_unmap(const char *name_begins);

extern bool fork_guard_is_forked; /* written in the child's only thread, before fork() returns */

/* True in a child of the process that used the plugin. */
static inline bool fork_guard_is_child(void) {
  return fork_guard_is_forked;
}

/* The same, with one message on stderr: a child must not take locks, so it cannot log. */
bool fork_guard_refuses(void);

#endif
