/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_print.h. */
#include "net_plugin/tools/stats_print.h"

#include <stdio.h>
#include <string.h>

#include "net_plugin/tools/document.h"

enum { TEXT_MAX = 32 };

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* "1.23 G" */
static const char *amount(double value, char text[TEXT_MAX]) {
  static const char units[] = " kMGTPE";
  size_t unit = 0;
  while (value >= 999.5 && units[unit + 1]) {
    value /= 1000;
    unit++;
  }
  if (unit == 0) {
    snprintf(text, TEXT_MAX, "%.0f", value);
  } else {
    snprintf(text, TEXT_MAX, "%.3g %c", value, units[unit]);
  }
  return text;
}

/* "2.98 Gb/s", or "-" without an earlier value. */
static const char *rate(const json_t *now, const json_t *before, const char *key, double seconds,
                        char text[TEXT_MAX]) {
  if (!before || seconds <= 0) {
    return "-";
  }
  double bits = (number(now, key) - number(before, key)) * 8 / seconds;
  snprintf(text, TEXT_MAX, "%.2f Gb/s", bits > 0 ? bits * 1e-9 : 0);
  return text;
}

static void print_nics(const json_t *process, const json_t *before, double seconds) {
  size_t i;
  json_t *nic;
  char name[DOCUMENT_TEXT_MAX], sent[TEXT_MAX], received[TEXT_MAX], out[TEXT_MAX], in[TEXT_MAX];
  printf("\n  %-15s %10s %10s %12s %12s %8s %8s %10s %6s %7s\n", "NIC", "sent B", "received B",
         "send rate", "recv rate", "retrans", "failures", "reconnects", "stalls", "corrupt");
  json_array_foreach(json_object_get(process, "nics"), i, nic) {
    const json_t *earlier = document_counterpart(json_object_get(before, "nics"), nic, "name");
    printf("  %-15s %10s %10s %12s %12s %8.0f %8.0f %10.0f %6.0f %7.0f\n",
           document_text(nic, "name", name), amount(number(nic, "bytes_sent"), sent),
           amount(number(nic, "bytes_received"), received),
           rate(nic, earlier, "bytes_sent", seconds, out),
           rate(nic, earlier, "bytes_received", seconds, in), number(nic, "retransmits"),
           number(nic, "flow_failures"), number(nic, "flow_reconnects"), number(nic, "flow_stalls"),
           number(nic, "checksum_errors"));
  }
}

/* "1.35 on": how many times shorter those chunks became that were compressed ("-": none were), and
 * what STRATUS_COMPRESS=auto has decided, if it was ever on. */
static const char *compression(const json_t *connection, char text[TEXT_MAX]) {
  double after = number(connection, "compressed_bytes_after");
  const char *decision = number(connection, "compresses") > 0 ? " on" : " off";
  char ratio[TEXT_MAX / 2] = "-";
  if (after > 0) {
    snprintf(ratio, sizeof ratio, "%.2f", number(connection, "compressed_bytes_before") / after);
  }
  bool has_turned = number(connection, "compression_turns") > 0;
  snprintf(text, TEXT_MAX, "%s%s", ratio, has_turned ? decision : "");
  return text;
}

/* "12 s, 0 of 1 M B: the peer has not posted its receive" */
static void print_stall(const json_t *connection) {
  const json_t *stall = json_object_get(connection, "stall");
  char reason[DOCUMENT_TEXT_MAX], done[TEXT_MAX], bytes[TEXT_MAX];
  if (!json_is_object(stall)) {
    printf("-\n");
    return;
  }
  printf("%.0f s, %s of %s B: %s%s\n", number(connection, "stalled_seconds"),
         amount(number(stall, "done_bytes"), done), amount(number(stall, "bytes"), bytes),
         document_text(stall, "reason", reason),
         json_is_true(json_object_get(stall, "is_fault")) ? " (!)" : "");
}

static void print_connections(const json_t *process, const json_t *before, double seconds) {
  size_t i;
  json_t *connection;
  char peer[DOCUMENT_TEXT_MAX], role[DOCUMENT_TEXT_MAX], bytes[TEXT_MAX], speed[TEXT_MAX],
      flows[TEXT_MAX], compressed[TEXT_MAX];
  printf("\n  %4s %-7s %-36s %9s %8s %12s %6s %11s  %s\n", "conn", "role", "peer", "messages",
         "bytes", "rate", "flows", "compressed", "stalled");
  json_array_foreach(json_object_get(process, "connections"), i, connection) {
    const json_t *earlier =
        document_counterpart(json_object_get(before, "connections"), connection, "connection");
    snprintf(flows, sizeof flows, "%.0f/%.0f", number(connection, "flows_up"),
             number(connection, "flows"));
    printf("  %4.0f %-7s %-36s %9.0f %8s %12s %6s %11s  ", number(connection, "connection"),
           document_text(connection, "role", role), document_text(connection, "peer", peer),
           number(connection, "messages_completed"), amount(number(connection, "bytes"), bytes),
           rate(connection, earlier, "bytes", seconds, speed), flows,
           compression(connection, compressed));
    print_stall(connection);
  }
}

static void print_flows_of(const json_t *connection, const json_t *earlier, double seconds) {
  bool is_sender =
      strcmp(json_string_value(json_object_get(connection, "role")) ?: "", "send") == 0;
  const char *key = is_sender ? "bytes_acked" : "bytes_received";
  size_t i;
  json_t *flow;
  json_array_foreach(json_object_get(connection, "flow_list"), i, flow) {
    char state[DOCUMENT_TEXT_MAX], local[DOCUMENT_TEXT_MAX], remote[DOCUMENT_TEXT_MAX],
        bytes[TEXT_MAX], speed[TEXT_MAX], out[TEXT_MAX], window[TEXT_MAX], limit[DOCUMENT_TEXT_MAX];
    const json_t *then = document_counterpart(json_object_get(earlier, "flow_list"), flow, "flow");
    printf("  %4.0f %4.0f %-10s %-22s %-22s %8s %12s %8.2f %9s %8s %8.0f %8.0f  %s\n",
           number(connection, "connection"), number(flow, "flow"),
           document_text(flow, "state", state), document_text(flow, "local", local),
           document_text(flow, "remote", remote), amount(number(flow, key), bytes),
           rate(flow, then, key, seconds, speed), number(flow, "rtt_seconds") * 1e3,
           amount(number(flow, "in_flight_bytes"), out),
           amount(number(flow, "congestion_window_bytes"), window), number(flow, "retransmits"),
           number(flow, "failures"), document_text(flow, "limited_by", limit));
  }
}

static void print_flows(const json_t *process, const json_t *before, double seconds) {
  size_t i;
  json_t *connection;
  printf("\n  %4s %4s %-10s %-22s %-22s %8s %12s %8s %9s %8s %8s %8s  %s\n", "conn", "flow",
         "state", "local", "remote", "bytes", "rate", "RTT ms", "in flight", "cwnd", "retrans",
         "failures", "limited by");
  json_array_foreach(json_object_get(process, "connections"), i, connection) {
    print_flows_of(
        connection,
        document_counterpart(json_object_get(before, "connections"), connection, "connection"),
        seconds);
  }
}

void stats_table_print(const json_t *process, const json_t *before, bool has_flows) {
  char host[DOCUMENT_TEXT_MAX], rank[DOCUMENT_TEXT_MAX], version[DOCUMENT_TEXT_MAX];
  double seconds =
      before ? number(process, "uptime_seconds") - number(before, "uptime_seconds") : 0;
  printf("process %.0f on %s, rank %s, stratus %s, for %.0f s%s\n", number(process, "pid"),
         document_text(process, "host", host), document_text(process, "rank", rank),
         document_text(process, "version", version), number(process, "uptime_seconds"),
         json_is_true(json_object_get(process, "is_truncated")) ? " (truncated)" : "");
  print_nics(process, before, seconds);
  print_connections(process, before, seconds);
  if (has_flows) {
    print_flows(process, before, seconds);
  }
  printf("\n");
}
