/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_paths: whether packets of full length pass between hosts, by the agents of stratus-net
 * probe, which ssh starts. Only a host's own NICs of the same number are looked at.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: until all pairs were looked at, or the timeout and one more look.  Fails: as what it
 * tells. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_PATHS_H
#define NET_PLUGIN_TOOLS_DOCTOR_PATHS_H

#include <stdbool.h>

#include "common/host_list.h"
#include "common/remote.h"

/* A path that is no good, or, with `matters` false, one that could not be looked at. */
typedef void doctor_paths_tell_fn(void *context, const struct host *from, bool matters,
                                  const char *text);

/* `how`: the tool, how to reach it, and the variables to pass on. */
void doctor_paths_check(const struct remote_command *how, const struct host *const *hosts,
                        unsigned count, doctor_paths_tell_fn *tell, void *context);

#endif
