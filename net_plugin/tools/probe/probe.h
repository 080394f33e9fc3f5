/* SPDX-License-Identifier: Apache-2.0 */
/* probe: data types of `stratus-net probe`.
 * Owns: as the struct is embedded.  Threads: the main thread. */
#ifndef NET_PLUGIN_TOOLS_PROBE_PROBE_H
#define NET_PLUGIN_TOOLS_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  PROBE_HOSTS_MAX = 256,
  PROBE_DEVICES_MAX = 16,
  PROBE_SWEEP_MAX = 16,
  PROBE_NAME_MAX = 64,
  PROBE_ERROR_MAX = 192,
};

struct probe_device {
  char name[PROBE_NAME_MAX];
  unsigned speed_mbps; /* as the plugin reports it to NCCL */
  int numa_node;       /* -1: unknown */
};

struct probe_host {
  char name[PROBE_NAME_MAX];
  unsigned device_count;
  struct probe_device devices[PROBE_DEVICES_MAX];
};

/* A measurement. flows and chunk_bytes 0: from parameters, profile and defaults. duration_ns 0: of
 * the path alone, its round trips and whether long packets pass. */
struct probe_load {
  unsigned flows;
  uint32_t chunk_bytes;
  uint64_t duration_ns;
  unsigned device;
};

/* Its results, from one host to another. */
struct probe_result {
  bool is_measured;
  char error[PROBE_ERROR_MAX]; /* if it failed */
  bool is_black_hole;          /* it failed, as long packets do not pass and short ones do */
  unsigned flows;
  double gbps;   /* of all flows */
  double rtt_us; /* of a plain TCP connection, median */
  double flow_min_gbps, flow_median_gbps, flow_max_gbps;
  unsigned mtu; /* of the path, from the kernel; 0: unknown */
};

struct probe_sweep {
  unsigned flows;
  uint32_t chunk_bytes;
  double gbps;
};

struct probe_report {
  unsigned host_count;
  unsigned device_count; /* present on all hosts */
  struct probe_host *hosts;
  struct probe_result *results; /* see probe_at */
  unsigned sweep_count;
  struct probe_sweep sweep[PROBE_SWEEP_MAX];
  unsigned sweep_from, sweep_to;
  uint64_t duration_ns; /* of one measurement */
};

static inline struct probe_result *probe_at(const struct probe_report *report, unsigned device,
                                            unsigned from, unsigned to) {
  return &report->results[(device * report->host_count + from) * report->host_count + to];
}

/* Of two doubles, for qsort. */
static inline int probe_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

#endif
