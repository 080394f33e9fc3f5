/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor: the descriptors that are ours, so that a forked child closes its copies.
 *
 * A child that kept them would keep connections open whose process was killed, and the peers would
 * wait. The child only closes, which the parent does not notice; it never shuts down. exec closes
 * them anyway, since all are made with CLOEXEC.
 *
 * Whoever makes a descriptor writes DESCRIPTOR(socket(...)); whoever closes it, descriptor_close.
 * What a library makes or closes stands between descriptor_begin and descriptor_end, and is marked
 * or unmarked there. fork() waits meanwhile, so a child has none that is not marked.
 *
 * Owns: one bit for each number of a descriptor.  Threads: any; the bits are atomic.
 * Blocks: descriptor_begin while a fork() is under way, fork() while somebody is between begin and
 * end; neither longer than DESCRIPTOR_WAIT_NS, after which the child may keep a descriptor.
 * Fails: cannot; numbers from DESCRIPTORS_MAX on are not marked. errno is kept. */
#ifndef COMMON_DESCRIPTOR_H
#define COMMON_DESCRIPTOR_H

#include <stdbool.h>

#include "common/clock.h"

/* The kernel's own default for the most that a process may open (fs.nr_open). */
enum { DESCRIPTORS_MAX = 1 << 20 };

/* More than fork() takes for a process of many gigabytes, or a driver to open its device. Two
 * threads can wait for each other where another library's fork handler waits for a thread of ours;
 * that ends then. */
#define DESCRIPTOR_WAIT_NS (1 * NS_PER_S)

#define DESCRIPTOR(call) (descriptor_begin(), descriptor_made(call))

/* Not for use within each other, and nothing that blocks stands in between. */
void descriptor_begin(void);
void descriptor_mark(int fd);
void descriptor_unmark(int fd);
void descriptor_end(void);

/* Marks it unless it is -1, then as descriptor_end; returns it. */
int descriptor_made(int fd);

void descriptor_close(int fd);

bool descriptor_is_marked(int fd);

/* ---- for fork_guard.c ---- */

void descriptor_before_fork(void);
void descriptor_after_fork(void); /* in the parent */
/* Only closes. The lock stays as it is: a child makes no descriptors. */
void descriptor_close_in_child(void);

#endif
