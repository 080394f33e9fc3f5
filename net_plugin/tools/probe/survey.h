/* SPDX-License-Identifier: Apache-2.0 */
/* survey: the coordinator of a probe: has the agents measure, pair after pair, and collects.
 * Owns: the connections to the agents, until survey_close.  Threads: the main thread.
 * Blocks: for as long as it takes.  Fails: with a message and an exit status (common/cli.h); a pair
 * that cannot be measured is only a result that says so. */
#ifndef NET_PLUGIN_TOOLS_PROBE_SURVEY_H
#define NET_PLUGIN_TOOLS_PROBE_SURVEY_H

#include <stdbool.h>

#include "net_plugin/tools/probe/probe.h"

struct survey;

struct survey_plan {
  uint64_t duration_ns; /* of one measurement */
  unsigned rounds_max;  /* 0: all pairs; else each host with that many others */
  bool has_sweep;       /* flows and chunks, between one pair */
};

/* Takes the sockets over, one to each agent, also if it fails. */
int survey_open(const int *agents, unsigned count, struct survey **survey);
int survey_run(struct survey *survey, const struct survey_plan *plan, struct probe_report *report);
void survey_close(struct survey *survey, struct probe_report *report);

#endif
