/* SPDX-License-Identifier: Apache-2.0 */
/* The results of both sides as JSON, and tables made from that JSON. */
#include "net_plugin/tools/perf/report.h"

#include <stdio.h>

#include "common/cli.h"
#include "common/quantity.h"
#include "common/version.h"
#include "net_plugin/tools/document.h"

static double number(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

static double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

/* ---- one round ---- */

/* CPU seconds of a side per 1e9 bytes that it sent or received. */
static double cpu_per_gbyte(const json_t *side, double cpu_seconds) {
  return share(cpu_seconds, (number(side, "bytes_sent") + number(side, "bytes_received")) * 1e-9);
}

static double plugin_cpu(const json_t *side) {
  return number(side, "cpu_seconds") - number(side, "driver_cpu_seconds");
}

json_t *report_round(uint64_t bytes, uint64_t wrong, json_t *client, json_t *server) {
  double client_s = number(client, "seconds"), server_s = number(server, "seconds");
  double bytes_per_s = share(number(client, "bytes_received"), client_s) +
                       share(number(server, "bytes_received"), server_s);
  double messages_per_s = share(number(client, "messages_received"), client_s) +
                          share(number(server, "messages_received"), server_s);
  double cpu = cpu_per_gbyte(client, number(client, "cpu_seconds")) +
               cpu_per_gbyte(server, number(server, "cpu_seconds"));
  double other =
      cpu_per_gbyte(client, plugin_cpu(client)) + cpu_per_gbyte(server, plugin_cpu(server));
  return json_pack("{s:I, s:f, s:f, s:O, s:f, s:f, s:I, s:o, s:o}", "bytes", (json_int_t)bytes,
                   "gbytes_per_s", bytes_per_s * 1e-9, "messages_per_s", messages_per_s,
                   "half_round_trip_us", json_object_get(client, "half_round_trip_us"),
                   "cpu_seconds_per_gbyte", cpu, "cpu_seconds_per_gbyte_without_driver", other,
                   "wrong_messages", (json_int_t)wrong, "client", client, "server", server);
}

json_t *report_all(const struct plan *plan, json_t *client, json_t *server, double connect_s,
                   json_t *rounds, json_t *idle) {
  return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "tool", "stratus perf",
                   "version", STRATUS_VERSION, "test", plan_test_name(plan), "plan",
                   plan_to_json(plan), "client", client, "server", server, "connect_seconds",
                   connect_s > 0 ? json_real(connect_s) : json_null(), "rounds", rounds, "idle",
                   idle ? idle : json_null());
}

int report_judge(const json_t *report) {
  size_t i;
  const json_t *round;
  json_array_foreach(json_object_get(report, "rounds"), i, round) {
    if (number(round, "wrong_messages") > 0) {
      return cli_fail("%.0f messages of %.0f bytes had wrong contents",
                      number(round, "wrong_messages"), number(round, "bytes"));
    }
  }
  return CLI_OK;
}

/* ---- for people ---- */

static void print_end(const char *side, const json_t *end) {
  char text[DOCUMENT_TEXT_MAX];
  printf("%s: %s", side, document_text(end, "transport", text));
  printf(" (%s)\n", document_text(end, "path", text));
}

static void print_throughput(const json_t *rounds) {
  printf("\n%8s  %9s  %11s  %17s  %13s  %9s\n", "", "", "", "CPU-s/GB", "CPU (cores)", "threads");
  printf("%8s  %9s  %11s  %8s %8s  %6s %6s  %4s %4s\n", "bytes", "GB/s", "messages/s", "all",
         "-driver", "client", "server", "cl.", "sv.");
  size_t i;
  const json_t *round;
  json_array_foreach(rounds, i, round) {
    const json_t *client = json_object_get(round, "client"),
                 *server = json_object_get(round, "server");
    char size[QUANTITY_TEXT_MAX];
    printf("%8s  %9.3f  %11.0f  %8.3f %8.3f  %6.2f %6.2f  %4.0f %4.0f\n",
           quantity_format_size((uint64_t)number(round, "bytes"), size),
           number(round, "gbytes_per_s"), number(round, "messages_per_s"),
           number(round, "cpu_seconds_per_gbyte"),
           number(round, "cpu_seconds_per_gbyte_without_driver"),
           share(number(client, "cpu_seconds"), number(client, "seconds")),
           share(number(server, "cpu_seconds"), number(server, "seconds")),
           number(client, "threads"), number(server, "threads"));
  }
}

static void print_latency(const json_t *rounds) {
  printf("\nhalf round trip, us\n%8s  %9s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "bytes", "samples",
         "min", "mean", "p50", "p90", "p99", "p99.9", "max");
  size_t i;
  const json_t *round;
  json_array_foreach(rounds, i, round) {
    const json_t *trip = json_object_get(round, "half_round_trip_us");
    char size[QUANTITY_TEXT_MAX];
    printf("%8s  %9.0f  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f\n",
           quantity_format_size((uint64_t)number(round, "bytes"), size), number(trip, "samples"),
           number(trip, "min"), number(trip, "mean"), number(trip, "p50"), number(trip, "p90"),
           number(trip, "p99"), number(trip, "p99.9"), number(trip, "max"));
  }
}

static void print_idle(const json_t *idle) {
  const json_t *client = json_object_get(idle, "client"), *server = json_object_get(idle, "server");
  printf("\nidle for %.1f s: CPU of the client %.2f %%, of the server %.2f %% of a core\n",
         number(client, "seconds"),
         100 * share(number(client, "cpu_seconds"), number(client, "seconds")),
         100 * share(number(server, "cpu_seconds"), number(server, "seconds")));
}

void report_print(const struct plan *plan, const json_t *report) {
  const json_t *rounds = json_object_get(report, "rounds");
  print_end("client", json_object_get(report, "client"));
  print_end("server", json_object_get(report, "server"));
  printf("%s, connections: %d%s%s%s\n", plan_test_name(plan), plan->connections,
         plan->has_data ? ", data: " : "", plan->has_data ? plan->data_path : "",
         plan->is_checked ? ", contents checked" : "");
  if (number(report, "connect_seconds") > 0) {
    printf("all connections made after %.3f s\n", number(report, "connect_seconds"));
  }
  if (plan->test == PLAN_LATENCY) {
    print_latency(rounds);
  } else {
    print_throughput(rounds);
  }
  if (plan->idle_ns) {
    print_idle(json_object_get(report, "idle"));
  }
}
