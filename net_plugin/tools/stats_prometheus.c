/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_prometheus.h. The samples of a metric stand together, so each pass over the documents
 * prints one metric. A number that a document lacks is left out: another release may have written
 * it. */
#include "net_plugin/tools/stats_prometheus.h"

#include <math.h>
#include <stdbool.h>

#include "net_plugin/observe/stats_document.h"

enum { COUNTER = true, GAUGE = false };

struct metric {
  const char *name; /* without stratus_nic_ or the like, and _total */
  bool is_counter;
  const char *help;
};

#define METRIC(id, name, type, unit, help) { #name, type, help },
#define NIC_METRIC(id, name, help) { #name, COUNTER, help },
static const struct metric nic_metrics[] = { NIC_COUNTERS(NIC_METRIC) };
static const struct metric connection_metrics[] = { STATS_CONNECTION_FIELDS(METRIC) };
static const struct metric flow_metrics[] = { STATS_FLOW_FIELDS(METRIC) };
static const struct metric info = { "info", GAUGE, "The process; the value is 1" };
static const struct metric uptime = { "uptime_seconds", GAUGE,
                                      "Time since the first NIC was used" };

/* ---- one sample ---- */

/* Bytes beyond ASCII and control characters become '?': names may come from other hosts. */
static void print_label(FILE *to, const char *name, const json_t *value) {
  if (json_is_integer(value)) {
    fprintf(to, "%s=\"%" JSON_INTEGER_FORMAT "\"", name, json_integer_value(value));
    return;
  }
  fprintf(to, "%s=\"", name);
  for (const char *at = json_string_value(value); at && *at; at++) {
    if (*at == '\n') {
      fputs("\\n", to);
    } else if (*at == '"' || *at == '\\') {
      fprintf(to, "\\%c", *at);
    } else {
      fputc(*at >= ' ' && *at <= '~' ? *at : '?', to);
    }
  }
  fputc('"', to);
}

/* Up to the labels of the process, to be closed by print_end. */
static void print_begin(FILE *to, const char *subject, const struct metric *metric,
                        const json_t *process) {
  const json_t *rank = json_object_get(process, "rank");
  fprintf(to, "stratus_%s_%s%s{", subject, metric->name, metric->is_counter ? "_total" : "");
  print_label(to, "pid", json_object_get(process, "pid"));
  if (json_is_string(rank)) {
    fputc(',', to);
    print_label(to, "rank", rank);
  }
}

static void print_member(FILE *to, const char *name, const json_t *object, const char *member) {
  fputc(',', to);
  print_label(to, name, json_object_get(object, member));
}

static void print_end(FILE *to, double value) {
  bool is_whole = value == floor(value) && fabs(value) < 1e18;
  fprintf(to, is_whole ? "} %.0f\n" : "} %.9g\n", value);
}

/* ---- one metric ---- */

static void print_head(FILE *to, const char *subject, const struct metric *metric) {
  const char *total = metric->is_counter ? "_total" : "";
  fprintf(to, "# HELP stratus_%s_%s%s %s.\n# TYPE stratus_%s_%s%s %s\n", subject, metric->name,
          total, metric->help, subject, metric->name, total,
          metric->is_counter ? "counter" : "gauge");
}

static void print_nic(FILE *to, const struct metric *metric, const json_t *process,
                      const json_t *nic) {
  print_begin(to, "nic", metric, process);
  print_member(to, "nic", nic, "name");
  print_end(to, json_number_value(json_object_get(nic, metric->name)));
}

static void print_connection(FILE *to, const struct metric *metric, const json_t *process,
                             const json_t *connection) {
  print_begin(to, "connection", metric, process);
  print_member(to, "connection", connection, "connection");
  print_member(to, "role", connection, "role");
  print_member(to, "nic", connection, "nic");
  print_member(to, "peer", connection, "peer");
  print_end(to, json_number_value(json_object_get(connection, metric->name)));
}

static void print_flows(FILE *to, const struct metric *metric, const json_t *process,
                        const json_t *connection) {
  size_t i;
  const json_t *flow;
  json_array_foreach(json_object_get(connection, "flow_list"), i, flow) {
    if (json_is_number(json_object_get(flow, metric->name))) {
      print_begin(to, "flow", metric, process);
      print_member(to, "connection", connection, "connection");
      print_member(to, "flow", flow, "flow");
      print_member(to, "nic", flow, "nic");
      print_end(to, json_number_value(json_object_get(flow, metric->name)));
    }
  }
}

typedef void print_fn(FILE *to, const struct metric *metric, const json_t *process,
                      const json_t *element);

/* Prints each metric of each element of this list of each process; a flow's is no member of its
 * connection. */
static void print_metrics(const json_t *processes, FILE *to, const char *subject, const char *list,
                          const struct metric *metrics, size_t count, print_fn *print) {
  size_t i, j;
  const json_t *process, *element;
  for (const struct metric *metric = metrics; metric < metrics + count; metric++) {
    print_head(to, subject, metric);
    json_array_foreach(processes, i, process) {
      json_array_foreach(json_object_get(process, list), j, element) {
        if (print == print_flows || json_is_number(json_object_get(element, metric->name))) {
          print(to, metric, process, element);
        }
      }
    }
  }
}

static void print_processes(const json_t *processes, FILE *to) {
  size_t i;
  const json_t *process;
  print_head(to, "process", &info);
  json_array_foreach(processes, i, process) {
    print_begin(to, "process", &info, process);
    print_member(to, "host", process, "host");
    print_member(to, "version", process, "version");
    print_end(to, 1);
  }
  print_head(to, "process", &uptime);
  json_array_foreach(processes, i, process) {
    print_begin(to, "process", &uptime, process);
    print_end(to, json_number_value(json_object_get(process, uptime.name)));
  }
}

#define METRICS(list) list, sizeof list / sizeof list[0]

void stats_prometheus_print(const json_t *processes, FILE *to) {
  if (json_array_size(processes) == 0) {
    return;
  }
  print_processes(processes, to);
  print_metrics(processes, to, "nic", "nics", METRICS(nic_metrics), print_nic);
  print_metrics(processes, to, "connection", "connections", METRICS(connection_metrics),
                print_connection);
  print_metrics(processes, to, "flow", "connections", METRICS(flow_metrics), print_flows);
}
