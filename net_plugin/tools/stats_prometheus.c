/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_print.h. The samples of a metric stand together, so each pass over the documents
 * prints one metric. A number that a document lacks is left out: another release may have written
 * it. */
#include "net_plugin/tools/stats_print.h"

#include <math.h>
#include <stdbool.h>

#include "net_plugin/observe/stats_document.h"

enum { COUNTER = true, GAUGE = false };

struct metric {
  const char *name; /* without stratus_nic_ or the like, and _total */
  bool is_counter;
  const char *help;
};

struct label {
  const char *name, *member;
};

/* What has the metrics: the elements of a list of a process, or of `inner` in each of them; without
 * a list the process. A label that an element lacks is that of what it is in. */
struct subject {
  const char *name, *list, *inner;
  const struct metric *metrics;
  size_t count;
  struct label labels[5];
};

#define METRIC(id, name, type, unit, help) { #name, type, help },
#define NIC_METRIC(id, name, help) { #name, COUNTER, help },
static const struct metric nic_metrics[] = { NIC_COUNTERS(NIC_METRIC) };
static const struct metric connection_metrics[] = { STATS_CONNECTION_FIELDS(METRIC) };
static const struct metric flow_metrics[] = { STATS_FLOW_FIELDS(METRIC) };
static const struct metric info = { "info", GAUGE, "The process; the value is 1" };
static const struct metric uptime = { "uptime_seconds", GAUGE,
                                      "Time since the first NIC was used" };
#define METRICS(list) list, sizeof list / sizeof list[0]
static const struct subject subjects[] = {
  { "process", NULL, NULL, &info, 1, { { "host", "host" }, { "version", "version" } } },
  { "process", NULL, NULL, &uptime, 1, { { NULL, NULL } } },
  { "nic", "nics", NULL, METRICS(nic_metrics), { { "nic", "name" } } },
  { "connection",
    "connections",
    NULL,
    METRICS(connection_metrics),
    { { "connection", "connection" }, { "role", "role" }, { "nic", "nic" }, { "peer", "peer" } } },
  { "flow",
    "connections",
    "flow_list",
    METRICS(flow_metrics),
    { { "connection", "connection" }, { "flow", "flow" }, { "nic", "nic" } } },
};

/* Bytes beyond ASCII and control characters become '?': names may come from other hosts. */
static void print_label(FILE *to, const char *name, const json_t *value) {
  fprintf(to, "%s=\"", name);
  if (json_is_integer(value)) {
    fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  }
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

static void print_sample(FILE *to, const struct subject *subject, const struct metric *metric,
                         const json_t *process, const json_t *around, const json_t *element) {
  const json_t *number = json_object_get(element, metric->name);
  const json_t *id = json_object_get(process, "id"), *rank = json_object_get(process, "rank");
  if (subject->list && !json_is_number(number)) {
    return;
  }
  fprintf(to, "stratus_%s_%s%s{", subject->name, metric->name, metric->is_counter ? "_total" : "");
  print_label(to, "pid", json_object_get(process, "pid"));
  if (json_is_string(id)) {
    print_label(to, ",id", id);
  }
  if (json_is_string(rank)) {
    print_label(to, ",rank", rank);
  }
  for (const struct label *label = subject->labels; label->name; label++) {
    const json_t *own = json_object_get(element, label->member);
    fputc(',', to);
    print_label(to, label->name, own ? own : json_object_get(around, label->member));
  }
  double value = metric == &info ? 1 : json_number_value(number);
  bool is_whole = value == floor(value) && fabs(value) < 1e18;
  fprintf(to, is_whole ? "} %.0f\n" : "} %.9g\n", value);
}

static void print_metric(FILE *to, const struct subject *subject, const struct metric *metric,
                         const json_t *processes) {
  const char *total = metric->is_counter ? "_total" : "";
  size_t i, j, k;
  const json_t *process, *element, *part;
  fprintf(to, "# HELP stratus_%s_%s%s %s.\n# TYPE stratus_%s_%s%s %s\n", subject->name,
          metric->name, total, metric->help, subject->name, metric->name, total,
          metric->is_counter ? "counter" : "gauge");
  json_array_foreach(processes, i, process) {
    if (!subject->list) {
      print_sample(to, subject, metric, process, NULL, process);
    }
    json_array_foreach(json_object_get(process, subject->list), j, element) {
      if (!subject->inner) {
        print_sample(to, subject, metric, process, NULL, element);
      }
      json_array_foreach(json_object_get(element, subject->inner), k, part) {
        print_sample(to, subject, metric, process, element, part);
      }
    }
  }
}

void stats_prometheus_print(const json_t *processes, FILE *to) {
  if (json_array_size(processes) == 0) {
    return;
  }
  for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
    for (size_t j = 0; j < subjects[i].count; j++) {
      print_metric(to, &subjects[i], &subjects[i].metrics[j], processes);
    }
  }
}
