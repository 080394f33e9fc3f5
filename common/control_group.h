/* SPDX-License-Identifier: Apache-2.0 */
/* control_group: what the control groups of this process, of both versions, leave to it. Containers
 * limit the number of threads (pids.max), where it is NCCL that gets none, and the time of CPUs
 * (cpu.max, cpu.cfs_quota_us), where a thread that has used it up stands still.
 * Owns: nothing.  Threads: any.  Blocks: on /proc and /sys.  Fails: what cannot be read limits
 * nothing. `root` is as in sysfs.h. */
#ifndef COMMON_CONTROL_GROUP_H
#define COMMON_CONTROL_GROUP_H

#include <stdint.h>

#define CONTROL_GROUP_FREE INT64_MAX
enum { CONTROL_GROUP_TEXT_MAX = 512 };

/* How many more threads there may be. CONTROL_GROUP_FREE: nothing limits it. Else `limit` is the
 * narrowest, for messages: "pids.max of /sys/fs/cgroup/pids/docker is 32, of which 30 are used"; it
 * is empty without one. */
int64_t control_group_threads(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]);

/* The same of whole CPUs, at least 1: "the quota of /sys/fs/cgroup/pod is 2.5 CPUs". */
int64_t control_group_quota(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]);

/* How many CPUs this process may keep busy: those that it may use (its threads may have less), or
 * fewer by a quota, which is `limit` then; else that is empty. Whoever decides on a number of
 * threads counts by it. */
unsigned control_group_cpus(const char *root, char limit[CONTROL_GROUP_TEXT_MAX]);

#endif
