/* SPDX-License-Identifier: Apache-2.0 */
/* findings: evaluates a probe: outliers among the pairs, and values for a profile.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PROBE_FINDINGS_H
#define NET_PLUGIN_TOOLS_PROBE_FINDINGS_H

#include "net_plugin/tools/probe/probe.h"

enum finding_kind {
  FINDING_FAILED,    /* could not be measured */
  FINDING_SLOW,      /* below FINDINGS_SLOW of the median */
  FINDING_ONE_WAY,   /* slow in this direction, not in the other */
  FINDING_FAR,       /* round trip over twice the median */
  FINDING_OTHER_MTU, /* another MTU than most pairs */
  FINDING_BLACK_HOLE /* could not be measured: long packets do not pass, short ones do */
};

struct finding {
  enum finding_kind kind;
  unsigned device, from, to;
};

/* Returns their number; writes the first `capacity`. */
unsigned findings_list(const struct probe_report *report, struct finding *list, unsigned capacity);
/* Some pair could not be measured. */
bool findings_has_failed(const struct probe_report *report);
/* "host-a -> host-b (eth0): 0.05 Gb/s, the median is 0.40" */
enum { FINDING_TEXT_MAX = 320 };
const char *finding_text(const struct probe_report *report, const struct finding *finding,
                         char text[FINDING_TEXT_MAX]);

double findings_median_gbps(const struct probe_report *report, unsigned device);
double findings_median_rtt_us(const struct probe_report *report, unsigned device);

/* Values for [net] of all hosts; 0: unknown. Speed: the median pair of the slowest NIC, rounded to
 * two digits. Latency: a quarter of the round trip, which is half of a hop, because NCCL adds it
 * once or twice per hop to a base latency of its own. */
unsigned findings_speed_mbps(const struct probe_report *report);
unsigned findings_latency_us(const struct probe_report *report);
unsigned findings_flows(const struct probe_report *report);
unsigned findings_chunk_bytes(const struct probe_report *report);

#endif
