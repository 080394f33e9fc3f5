/* SPDX-License-Identifier: Apache-2.0 */
/* workload_find: where a workload that a user names is: a path, or the name of a built-in one.
 * Owns: nothing.  Threads: any.
 * Blocks: while a directory is listed.  Fails: -ENOENT, with a message that names the built-in
 * workloads.
 *
 * What has a slash or ends in .json is a path. Built-in ones are PREFIX/share/stratus/workloads or
 * tuner_plugin/workloads of the source tree, found from where the program's own file is. */
#ifndef COLL_REPLAY_WORKLOAD_FIND_H
#define COLL_REPLAY_WORKLOAD_FIND_H

#include <limits.h>

/* `error` has room for WORKLOAD_ERROR_MAX. */
int workload_find(const char *argument, char path[PATH_MAX], char *error);

#endif
