/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.h. */
#include "net_plugin/tools/probe/probe.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cli.h"
#include "common/quantity.h"
#include "net_plugin/tools/document.h"

enum { MATRIX_HOSTS_MAX = 16, FINDINGS_MAX = 64 };

/* ---- for people ---- */

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

static void print_flows(const struct probe_report *report, unsigned device) {
  double low = 0, high = 0;
  unsigned flows = 0, mtu = 0, hosts = report->host_count;
  for (unsigned i = 0; i < hosts * hosts; i++) {
    const struct probe_result *it = probe_at(report, device, i / hosts, i % hosts);
    if (it->is_measured) {
      low = flows == 0 || it->flow_min_gbps < low ? it->flow_min_gbps : low;
      high = it->flow_max_gbps > high ? it->flow_max_gbps : high;
      flows = it->flows;
      mtu = it->mtu;
    }
  }
  printf(
      "\n%s: %u flows per connection, each %.2f to %.2f Gb/s; median of a pair %.2f Gb/s, %.0f us "
      "round trip; MTU %u\n",
      report->hosts[0].devices[device].name, flows, low, high, findings_median_gbps(report, device),
      findings_median_rtt_us(report, device), mtu);
}

static void print_sweep(const struct probe_report *report) {
  if (report->sweep_count == 0) {
    return;
  }
  printf("\n%s -> %s by flows and chunk\n", report->hosts[report->sweep_from].name,
         report->hosts[report->sweep_to].name);
  for (unsigned i = 0; i < report->sweep_count; i++) {
    char chunk[QUANTITY_TEXT_MAX];
    printf("%4u flows, %6s: %7.2f Gb/s\n", report->sweep[i].flows,
           quantity_format_size(report->sweep[i].chunk_bytes, chunk), report->sweep[i].gbps);
  }
}

static void print_findings(const struct probe_report *report) {
  struct finding list[FINDINGS_MAX];
  unsigned count = findings_list(report, list, FINDINGS_MAX);
  printf("\n%s\n", count ? "outliers:" : "no outliers");
  for (unsigned i = 0; i < count && i < FINDINGS_MAX; i++) {
    char text[FINDING_TEXT_MAX];
    printf("  %s\n", finding_text(report, &list[i], text));
  }
  if (count > FINDINGS_MAX) {
    printf("  and %u more\n", count - FINDINGS_MAX);
  }
}

int report_table(const struct probe_report *report) {
  print_hosts(report);
  for (unsigned device = 0; device < report->device_count; device++) {
    if (report->host_count <= MATRIX_HOSTS_MAX) {
      print_matrix(report, device, false);
      print_matrix(report, device, true);
    }
    print_flows(report, device);
  }
  print_sweep(report);
  print_findings(report);
  return fflush(stdout) == 0 ? CLI_OK : cli_fail("cannot write the result");
}

/* ---- for programs ---- */

static json_t *json_pairs(const struct probe_report *report) {
  json_t *pairs = json_array();
  unsigned hosts = report->host_count;
  for (unsigned i = 0; i < report->device_count * hosts * hosts; i++) {
    const struct probe_result *it = &report->results[i];
    if (it->is_measured || it->error[0]) {
      json_array_append_new(
          pairs, json_pack("{s:i, s:i, s:i, s:f, s:f, s:i, s:{s:f, s:f, s:f}, s:i, s:s*}", "device",
                           (int)(i / (hosts * hosts)), "from", (int)(i / hosts % hosts), "to",
                           (int)(i % hosts), "gbps", it->gbps, "rtt_us", it->rtt_us, "flows",
                           (int)it->flows, "flow_gbps", "min", it->flow_min_gbps, "median",
                           it->flow_median_gbps, "max", it->flow_max_gbps, "mtu", (int)it->mtu,
                           "error", it->error[0] ? it->error : NULL));
    }
  }
  return pairs;
}

static json_t *json_hosts(const struct probe_report *report) {
  json_t *hosts = json_array();
  for (unsigned i = 0; i < report->host_count; i++) {
    json_t *devices = json_array();
    for (unsigned j = 0; j < report->hosts[i].device_count; j++) {
      const struct probe_device *it = &report->hosts[i].devices[j];
      json_array_append_new(devices, json_pack("{s:s, s:i, s:i}", "name", it->name, "numa_node",
                                               it->numa_node, "speed_mbps", (int)it->speed_mbps));
    }
    json_array_append_new(
        hosts, json_pack("{s:s, s:o}", "name", report->hosts[i].name, "devices", devices));
  }
  return hosts;
}

static json_t *json_findings(const struct probe_report *report) {
  static const char *const kinds[] = { "failed", "slow", "one-way", "far", "mtu", "black-hole" };
  struct finding list[FINDINGS_MAX];
  unsigned count = findings_list(report, list, FINDINGS_MAX);
  json_t *findings = json_array();
  for (unsigned i = 0; i < count && i < FINDINGS_MAX; i++) {
    char text[FINDING_TEXT_MAX];
    json_array_append_new(findings,
                          json_pack("{s:s, s:i, s:i, s:i, s:s}", "kind", kinds[list[i].kind],
                                    "device", (int)list[i].device, "from", (int)list[i].from, "to",
                                    (int)list[i].to, "text", finding_text(report, &list[i], text)));
  }
  return findings;
}

int report_json(const struct probe_report *report) {
  json_t *sweep = json_array();
  for (unsigned i = 0; i < report->sweep_count; i++) {
    json_array_append_new(sweep, json_pack("{s:i, s:i, s:f}", "flows", (int)report->sweep[i].flows,
                                           "chunk_bytes", (int)report->sweep[i].chunk_bytes, "gbps",
                                           report->sweep[i].gbps));
  }
  json_t *all = json_pack(
      "{s:o, s:o, s:o, s:o, s:{s:i, s:i, s:i, s:i}}", "hosts", json_hosts(report), "pairs",
      json_pairs(report), "sweep", sweep, "findings", json_findings(report), "net", "flows",
      (int)findings_flows(report), "chunk_bytes", (int)findings_chunk_bytes(report), "speed_mbps",
      (int)findings_speed_mbps(report), "latency_us", (int)findings_latency_us(report));
  return document_print(all, JSON_INDENT(2));
}

int report_profile(const struct probe_report *report) {
  char date[16], chunk[QUANTITY_TEXT_MAX];
  time_t now = time(NULL);
  unsigned speed_mbps = findings_speed_mbps(report), latency_us = findings_latency_us(report);
  unsigned flows = findings_flows(report);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  printf(
      "# Install the same file on all hosts: ranks with different latencies refuse to connect.\n");
  printf("schema = 1\n\n[meta]\nid = probe-%s\ncreated = %s\n", date, date);
  printf("source = \"stratus probe of %u hosts, %u NICs each, %.1f s per pair\"\n\n[net]\n",
         report->host_count, report->device_count, (double)report->duration_ns * 1e-9);
  if (flows) {
    printf("flows = %u  # the fewest within 5 %% of the fastest\n", flows);
    printf("chunk_bytes = %s\n", quantity_format_size(findings_chunk_bytes(report), chunk));
  }
  if (speed_mbps) {
    printf("speed_mbps = %u  # median of all pairs\n", speed_mbps);
  }
  if (latency_us) {
    printf("latency_us = %u  # half a hop: the median round trip is %.0f us\n", latency_us,
           findings_median_rtt_us(report, 0));
  }
  return fflush(stdout) == 0 && speed_mbps ? CLI_OK : cli_fail("no pair could be measured");
}
