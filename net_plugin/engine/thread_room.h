/* SPDX-License-Identifier: Apache-2.0 */
/* thread_room: how many more threads the control groups of this process allow. Containers limit
 * their number (pids.max), and then it is NCCL that gets none.
 * Owns: nothing.  Threads: any.  Blocks: on /proc and /sys.  Fails: what cannot be read limits
 * nothing. */
#ifndef NET_PLUGIN_ENGINE_THREAD_ROOM_H
#define NET_PLUGIN_ENGINE_THREAD_ROOM_H

#include <stdint.h>

#define THREAD_ROOM_FREE INT64_MAX
enum { THREAD_ROOM_TEXT_MAX = 512 };

/* THREAD_ROOM_FREE: nothing limits it. Else `limit` is the narrowest, for messages: "pids.max of
 * /sys/fs/cgroup/pids/docker is 32, of which 30 are used"; it is empty without one. */
int64_t thread_room(const char *root, char limit[THREAD_ROOM_TEXT_MAX]);

#endif
