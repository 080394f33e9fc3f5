/* SPDX-License-Identifier: Apache-2.0 */
/* stats_path: the directory of the statistics sockets.
 * Owns: nothing.  Threads: any.  Blocks: on the file system.  Fails: negative errno.
 *
 * A directory is used only if it is no symbolic link, belongs to this user and is closed to all
 * others (0700): anybody may create names in /tmp. */
#ifndef NET_PLUGIN_OBSERVE_STATS_PATH_H
#define NET_PLUGIN_OBSERVE_STATS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { STATS_PATH_MAX = 256 };
/* Room for what tells two processes of one number apart, as those of two containers: when they
 * began, in hexadecimal digits. */
enum { STATS_ID_MAX = 17 };

/* STATS_DIR, else one in /tmp, which a job and who asks see alike, whatever launched them. */
const char *stats_path_directory(char path[STATS_PATH_MAX]);

/* Checks the directory, after making it if `creates` and it is missing. -ENOTDIR, also for a
 * symbolic link; -EPERM: wrong owner or mode. */
int stats_path_check(const char *directory, bool creates);

/* The pid of "4711-5f3a21c00.sock", of process and id; 0: no such name. */
pid_t stats_path_pid(const char *name);

/* Removes the sockets that nobody listens on, of processes that have ended. */
void stats_path_sweep(const char *directory);

#endif
