/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_all: runs doctor on many hosts, and compares them; then looks at the paths between them,
 * by the agents of stratus-net probe, which ssh starts. Owns: nothing.  Threads: the main thread.
 * Blocks: until all have answered, or the timeout, and as long for the paths.  Fails: as an exit
 * status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_ALL_H
#define NET_PLUGIN_TOOLS_DOCTOR_ALL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/remote.h"

struct doctor_all_options {
  const char *tool; /* stratus-net on the hosts */
  const char *ssh;
  uint64_t timeout_ns;
};
extern struct doctor_all_options doctor_all_options;

/* `arguments` as in common/host_list.h. 0: all hosts answered, each is healthy, and nothing that
 * must be equal differs. */
int doctor_all(char **arguments, int count, bool is_json);

/* A path that is no good, or, with `matters` false, one that could not be looked at. */
typedef void doctor_paths_tell_fn(void *context, const struct host *from, bool matters,
                                  const char *text);
/* Whether packets of full length pass between hosts; each host's own NICs of the same number are
 * looked at. `how`: the tool, how to reach it, and the variables to pass on. */
void doctor_paths_check(const struct remote_command *how, const struct host *const *hosts,
                        unsigned count, doctor_paths_tell_fn *tell, void *context);

#endif
