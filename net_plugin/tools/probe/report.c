/* SPDX-License-Identifier: Apache-2.0 */
/* See results.h. */
#include "net_plugin/tools/probe/results.h"

#include <stdio.h>

enum { FINDINGS_MAX = 64 };

static void print_hosts(const struct probe_report *report) {
  for (unsigned i = 0; i < report->host_count; i++) {
    const struct probe_host *host = &report->hosts[i];
    printf("host %u: %s", i, host->name);
    for (unsigned j = 0; j < host->device_count; j++) {
      printf("%s %s", j ? "," : ":", host->devices[j].name);
      if (host->devices[j].numa_node >= 0) {
        printf(" on NUMA node %d", host->devices[j].numa_node);
      }
    }
    printf("\n");
  }
}

static void print_cell(const struct probe_result *result, bool is_rtt) {
  if (!result->is_measured) {
    printf("%9s", result->error[0] ? "failed" : "-");
  } else if (is_rtt) {
    printf("%9.0f", result->rtt_us);
  } else {
    printf("%9.2f", result->gbps);
  }
}

static void print_matrix(const struct probe_report *report, unsigned device, bool is_rtt) {
  printf("\n%s, %s; from a row's host to a column's\n      ", report->hosts[0].devices[device].name,
         is_rtt ? "round trip in us" : "Gb/s");
  for (unsigned to = 0; to < report->host_count; to++) {
    printf("%9u", to);
  }
  printf("\n");
  for (unsigned from = 0; from < report->host_count; from++) {
    printf("%6u", from);
    for (unsigned to = 0; to < report->host_count; to++) {
      print_cell(probe_at(report, device, from, to), is_rtt);
    }
    printf("\n");
  }
}

static void print_usual(const struct probe_report *report, unsigned device) {
  struct probe_usual usual = findings_usual(report, device);
  printf("\n%s: median of a pair %.2f Gb/s, %.0f us round trip; MTU %u\n",
         report->hosts[0].devices[device].name, usual.gbps, usual.rtt_us, usual.mtu);
}

static void print_findings(const struct probe_report *report) {
  struct finding list[FINDINGS_MAX];
  unsigned count = findings_list(report, list, FINDINGS_MAX);
  printf("\n%s\n", count ? "outliers:" : "no outliers");
  for (unsigned i = 0; i < count && i < FINDINGS_MAX; i++) {
    printf("  %s\n", list[i].text);
  }
  if (count > FINDINGS_MAX) {
    printf("  and %u more\n", count - FINDINGS_MAX);
  }
}

void report_table(const struct probe_report *report) {
  print_hosts(report);
  for (unsigned device = 0; device < report->device_count; device++) {
    print_matrix(report, device, false);
    print_matrix(report, device, true);
    print_usual(report, device);
  }
  print_findings(report);
}
