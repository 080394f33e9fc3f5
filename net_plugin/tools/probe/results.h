/* SPDX-License-Identifier: Apache-2.0 */
/* results: the data of `stratus probe`, and its parts: pairs, survey, findings, report.
 * Owns: as each part says.  Threads: the main thread.  Blocks: until the measurements are done, and
 * on stdout.  Fails: with a message and an exit status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_PROBE_RESULTS_H
#define NET_PLUGIN_TOOLS_PROBE_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  PROBE_HOSTS_MAX = 256,
  PROBE_DEVICES_MAX = 16,
  PROBE_NAME_MAX = 64,
  PROBE_ERROR_MAX = 192,
};

struct probe_device {
  char name[PROBE_NAME_MAX];
  int numa_node; /* -1: unknown */
};

struct probe_host {
  char name[PROBE_NAME_MAX];
  unsigned device_count;
  struct probe_device devices[PROBE_DEVICES_MAX];
};

/* A measurement. */
struct probe_load {
  uint64_t duration_ns;
  unsigned device;
};

/* Its results, from one host to another. */
struct probe_result {
  bool is_measured;
  char error[PROBE_ERROR_MAX]; /* if it failed */
  bool is_black_hole;          /* it failed, as long packets do not pass and short ones do */
  double gbps;                 /* of one connection, with the flows that a job's has */
  double rtt_us;               /* of a plain TCP connection, median */
  unsigned mtu;                /* of the path, from the kernel; 0: unknown */
};

struct probe_report {
  unsigned host_count;
  unsigned device_count; /* present on all hosts */
  struct probe_host hosts[PROBE_HOSTS_MAX];
  struct probe_result *results; /* see probe_at */
};

static inline struct probe_result *probe_at(const struct probe_report *report, unsigned device,
                                            unsigned from, unsigned to) {
  return &report->results[(device * report->host_count + from) * report->host_count + to];
}

/* ---- pairs: who measures with whom at the same time ---- */

/* In each round a host has at most one partner, and in all rounds each other host once. The number
 * of rounds for all pairs, in one direction. */
unsigned pairs_round_count(unsigned hosts);
/* The partner of a host in that round; the host itself if it has none. */
unsigned pairs_partner(unsigned hosts, unsigned round, unsigned host);

/* ---- survey: runs the measurements; every rank has all results ---- */

struct ranks;
/* Each measurement takes so long. A pair that cannot be measured is a result with an error. Fills
 * the report, which is zeroed; its results are the caller's to free. */
int survey_run(struct ranks *ranks, uint64_t duration_ns, struct probe_report *report);

/* ---- findings: outliers among the pairs ---- */

enum { FINDING_TEXT_MAX = 320 };
struct finding {
  unsigned device, from, to;
  bool is_lasting; /* the same when it is measured again */
  /* "host-a -> host-b (eth0): slow, 0.05 Gb/s where the median is 0.40" */
  char text[FINDING_TEXT_MAX];
};

/* Returns their number; writes the first `capacity`. */
unsigned findings_list(const struct probe_report *report, struct finding *list, unsigned capacity);
/* Some pair could not be measured. */
bool findings_has_failed(const struct probe_report *report);

/* Of all pairs of this NIC: medians, and the MTU of most. */
struct probe_usual {
  double gbps, rtt_us;
  unsigned mtu;
};
struct probe_usual findings_usual(const struct probe_report *report, unsigned device);

/* ---- report ---- */

void report_table(const struct probe_report *report);

#endif
