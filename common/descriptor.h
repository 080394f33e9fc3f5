/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor: records the plugin's descriptors, so that a forked child closes its copies.
 *
 * Otherwise a child would keep the connections of a killed parent open, and the peers would wait.
 * The child only closes them, which does not affect the parent; it never calls shutdown. All are
 * made with CLOEXEC, so exec closes them as well.
 *
 * To make a descriptor, write DESCRIPTOR(socket(...)); to close it, descriptor_close. Calls of
 * libraries that make or close descriptors go between descriptor_begin and descriptor_end, and the
 * descriptors are marked or unmarked there. fork() waits in the meantime, so a child has no
 * unmarked descriptor.
 *
 * Owns: one bit for each number of a descriptor.  Threads: any; the bits are atomic.
 * Blocks: descriptor_begin while a fork() is in progress, fork() while a thread is between begin
 * and end; neither longer than DESCRIPTOR_WAIT_NS, after which the child may keep a descriptor.
 * Fails: cannot; numbers from DESCRIPTORS_MAX on are not marked. errno is kept. */
#ifndef COMMON_DESCRIPTOR_H
#define COMMON_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

/* The kernel's default of fs.nr_open, the maximum per process. */
enum { DESCRIPTORS_MAX = 1 << 20 };

#define DESCRIPTOR(call) (descriptor_begin(), descriptor_made(call))

/* Must not be nested, and nothing in between may block. */
void descriptor_begin(void);
void descriptor_mark(int fd);
void descriptor_unmark(int fd);
void descriptor_end(void);

/* Marks it unless it is -1, then as descriptor_end; returns it. */
int descriptor_made(int fd);

void descriptor_close(int fd);

bool descriptor_is_marked(int fd);

/* Of any descriptor: reads until its end, or until the room is full. How many bytes, or a negative
 * errno. Blocks as read() does. */
ssize_t descriptor_read(int fd, void *bytes, size_t room);

/* ---- for fork_guard.c ---- */

void descriptor_before_fork(void);
void descriptor_after_fork(void); /* in the parent */
/* In the child: closes them. The lock stays as it is: a child makes no descriptors. */
void descriptor_close_in_child(void);

#endif
