/* SPDX-License-Identifier: Apache-2.0 */
/* survey: the coordinator of a probe: runs the measurements on the agents and collects the results.
 * Owns: the connections to the agents, until survey_close.  Threads: the main thread.
 * Blocks: until all measurements are done.  Fails: with a message and an exit status
 * (common/cli.h); a pair that cannot be measured is a result with an error. */
#ifndef NET_PLUGIN_TOOLS_PROBE_SURVEY_H
#define NET_PLUGIN_TOOLS_PROBE_SURVEY_H

#include <stdbool.h>

#include "net_plugin/tools/probe/probe.h"

struct survey;

struct survey_plan {
  uint64_t duration_ns; /* of one measurement; 0: the paths alone (probe.h) */
  unsigned rounds_max;  /* 0: all pairs; else the number of partners of each host */
  uint64_t until_ns;    /* no round begins later; 0: all do */
  bool has_sweep;       /* over flows and chunks, on one pair */
};

/* Takes ownership of the sockets, one per agent, also on failure. */
int survey_open(const int *agents, unsigned count, struct survey **survey);
int survey_run(struct survey *survey, const struct survey_plan *plan, struct probe_report *report);
void survey_close(struct survey *survey, struct probe_report *report);

#endif
