/* SPDX-License-Identifier: Apache-2.0 */
/* stats_path: where the sockets are by which processes are asked how they are doing.
 * Owns: nothing.  Threads: any.  Blocks: on the file system.  Fails: negative errno.
 *
 * A directory is used only if it is no symbolic link, belongs to this user and is closed to all
 * others (0700): /tmp is everybody's, and so is the choice of a name there. */
#ifndef NET_PLUGIN_OBSERVE_STATS_PATH_H
#define NET_PLUGIN_OBSERVE_STATS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { STATS_PATH_MAX = 256, STATS_DIRECTORIES_MAX = 3 };

/* In the order of preference: STATS_DIR alone if it is set; else XDG_RUNTIME_DIR, the user's
 * directory below /run, where no process creates anything, and /tmp. Returns how many. */
unsigned stats_path_directories(char paths[STATS_DIRECTORIES_MAX][STATS_PATH_MAX]);

/* The directory, made if it is missing and `creates` says so, and checked: -ENOTDIR, also for a
 * symbolic link, or -EPERM: its owner or mode is wrong. */
int stats_path_check(const char *directory, bool creates);

/* The process of "4711.sock", 0: it is no such name. */
pid_t stats_path_pid(const char *name);

/* Removes sockets of processes that are gone. */
void stats_path_sweep(const char *directory);

/* Does nobody listen there? Then it is a dead process's. */
bool stats_path_is_stale(const char *socket_path);

#endif
