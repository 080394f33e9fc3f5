/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_all: runs doctor on many hosts, and compares them.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: until all have answered, or the timeout.  Fails: as an exit status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_ALL_H
#define NET_PLUGIN_TOOLS_DOCTOR_ALL_H

#include <stdbool.h>
#include <stdint.h>

struct doctor_all_options {
  const char *tool; /* stratus-net on the hosts */
  const char *ssh;
  uint64_t timeout_ns;
};
extern struct doctor_all_options doctor_all_options;

/* `arguments` as in common/host_list.h. 0: all hosts answered, each is healthy, and nothing that
 * must be equal differs. */
int doctor_all(char **arguments, int count, bool is_json);

#endif
