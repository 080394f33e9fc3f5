/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_print.h. A number that a document lacks is left out of the text of Prometheus: another
 * release may have written it. */
#include "net_plugin/tools/stats_print.h"

#include <math.h>
#include <stdio.h>

#include "net_plugin/observe/stats_fields.h"
#include "net_plugin/tools/document.h"

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

/* ---- tables ---- */

enum form {
  FORM_TEXT,
  FORM_COUNT,
  FORM_AMOUNT,       /* "1.23 G" */
  FORM_RATE,         /* of bytes, since the document before: "2.98 Gb/s" */
  FORM_MILLISECONDS, /* of seconds */
  FORM_FLOWS,        /* up and wanted: "7/8" */
  FORM_COMPRESSION,
  FORM_STALL,
};

struct column {
  const char *title, *member; /* a member that an element lacks is of what it is in */
  int width;                  /* negative: to the left */
  enum form form;
};

static const struct column nic_columns[] = {
  { "NIC", "name", -15, FORM_TEXT },
  { "sent B", "bytes_sent", 10, FORM_AMOUNT },
  { "received B", "bytes_received", 10, FORM_AMOUNT },
  { "send rate", "bytes_sent", 12, FORM_RATE },
  { "recv rate", "bytes_received", 12, FORM_RATE },
  { "retrans", "retransmits", 8, FORM_COUNT },
  { "failures", "flow_failures", 8, FORM_COUNT },
  { "reconnects", "flow_reconnects", 10, FORM_COUNT },
  { "stalls", "flow_stalls", 6, FORM_COUNT },
  { "corrupt", "checksum_errors", 7, FORM_COUNT },
  { NULL, NULL, 0, FORM_TEXT },
};
static const struct column connection_columns[] = {
  { "conn", "connection", 4, FORM_COUNT }, { "role", "role", -7, FORM_TEXT },
  { "peer", "peer", -36, FORM_TEXT },      { "messages", "messages_completed", 9, FORM_COUNT },
  { "bytes", "bytes", 8, FORM_AMOUNT },    { "rate", "bytes", 12, FORM_RATE },
  { "flows", NULL, 6, FORM_FLOWS },        { "compressed", NULL, 11, FORM_COMPRESSION },
  { "stalled", NULL, 0, FORM_STALL },      { NULL, NULL, 0, FORM_TEXT },
};
static const struct column flow_columns[] = {
  { "conn", "connection", 4, FORM_COUNT },
  { "flow", "flow", 4, FORM_COUNT },
  { "state", "state", -10, FORM_TEXT },
  { "local", "local", -22, FORM_TEXT },
  { "remote", "remote", -22, FORM_TEXT },
  { "acked B", "bytes_acked", 10, FORM_AMOUNT },
  { "received B", "bytes_received", 10, FORM_AMOUNT },
  { "send rate", "bytes_acked", 12, FORM_RATE },
  { "recv rate", "bytes_received", 12, FORM_RATE },
  { "RTT ms", "rtt_seconds", 8, FORM_MILLISECONDS },
  { "in flight", "in_flight_bytes", 9, FORM_AMOUNT },
  { "cwnd", "congestion_window_bytes", 8, FORM_AMOUNT },
  { "retrans", "retransmits", 8, FORM_COUNT },
  { "failures", "failures", 8, FORM_COUNT },
  { "limited by", "limited_by", 0, FORM_TEXT },
  { NULL, NULL, 0, FORM_TEXT },
};

enum { TEXT_MAX = DOCUMENT_TEXT_MAX + 128 };

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

/* "1.35 on": how many times shorter those chunks became that were compressed ("-": none were), and
 * what STRATUS_COMPRESS=auto has decided, if it was ever on. */
static void write_compression(const json_t *connection, char text[TEXT_MAX]) {
  double after = number(connection, "compressed_bytes_after");
  const char *decision = number(connection, "compression_turns") == 0 ? ""
                         : number(connection, "compresses") > 0       ? " on"
                                                                      : " off";
  if (after > 0) {
    snprintf(text, TEXT_MAX, "%.2f%s", number(connection, "compressed_bytes_before") / after,
             decision);
  } else {
    snprintf(text, TEXT_MAX, "-%s", decision);
  }
}

/* "12 s, 0 of 1 M B: the peer has not posted its receive" */
static void write_stall(const json_t *connection, char text[TEXT_MAX]) {
  const json_t *stall = json_object_get(connection, "stall");
  char reason[DOCUMENT_TEXT_MAX], done[TEXT_MAX], bytes[TEXT_MAX];
  if (json_is_object(stall)) {
    snprintf(text, TEXT_MAX, "%.0f s, %.32s of %.32s B: %s%s",
             number(connection, "stalled_seconds"), amount(number(stall, "done_bytes"), done),
             amount(number(stall, "bytes"), bytes), document_text(stall, "reason", reason),
             json_is_true(json_object_get(stall, "is_fault")) ? " (!)" : "");
  }
}

static void print_cell(const struct column *column, const json_t *element, const json_t *before,
                       double seconds) {
  char text[TEXT_MAX] = "-";
  double value = number(element, column->member);
  switch (column->form) {
  case FORM_TEXT:
    document_text(element, column->member, text);
    break;
  case FORM_COUNT:
    snprintf(text, sizeof text, "%.0f", value);
    break;
  case FORM_AMOUNT:
    amount(value, text);
    break;
  case FORM_RATE:
    if (before && seconds > 0) {
      double bits = (value - number(before, column->member)) * 8 / seconds;
      snprintf(text, sizeof text, "%.2f Gb/s", bits > 0 ? bits * 1e-9 : 0);
    }
    break;
  case FORM_MILLISECONDS:
    snprintf(text, sizeof text, "%.2f", value * 1e3);
    break;
  case FORM_FLOWS:
    snprintf(text, sizeof text, "%.0f/%.0f", number(element, "flows_up"), number(element, "flows"));
    break;
  case FORM_COMPRESSION:
    write_compression(element, text);
    break;
  case FORM_STALL:
    write_stall(element, text);
    break;
  }
  printf(" %*s", column->width, text);
}

static void print_titles(const struct column *columns) {
  printf("\n ");
  for (; columns->title; columns++) {
    printf(" %*s", columns->width, columns->title);
  }
  printf("\n");
}

/* A line for each element of a list. `key` tells it apart from the others. */
static void print_rows(const struct column *columns, const json_t *list, const json_t *before,
                       const char *key, const json_t *around, double seconds) {
  size_t i;
  json_t *element;
  json_array_foreach(list, i, element) {
    const json_t *earlier = document_counterpart(before, element, key);
    printf(" ");
    for (const struct column *column = columns; column->title; column++) {
      bool is_own = !column->member || json_object_get(element, column->member);
      print_cell(column, is_own ? element : around, earlier, seconds);
    }
    printf("\n");
  }
}

void stats_table_print(const json_t *process, const json_t *before, bool has_flows) {
  char host[DOCUMENT_TEXT_MAX], rank[DOCUMENT_TEXT_MAX], version[DOCUMENT_TEXT_MAX];
  const json_t *connections = json_object_get(process, "connections"), *connection;
  const json_t *earlier = json_object_get(before, "connections");
  double seconds =
      before ? number(process, "uptime_seconds") - number(before, "uptime_seconds") : 0;
  printf("process %.0f on %s, rank %s, stratus %s, for %.0f s%s\n", number(process, "pid"),
         document_text(process, "host", host), document_text(process, "rank", rank),
         document_text(process, "version", version), number(process, "uptime_seconds"),
         json_is_true(json_object_get(process, "is_truncated")) ? " (truncated)" : "");
  print_titles(nic_columns);
  print_rows(nic_columns, json_object_get(process, "nics"), json_object_get(before, "nics"), "name",
             NULL, seconds);
  print_titles(connection_columns);
  print_rows(connection_columns, connections, earlier, "connection", NULL, seconds);
  if (has_flows) {
    print_titles(flow_columns);
    size_t i;
    json_array_foreach(connections, i, connection) {
      const json_t *then = document_counterpart(earlier, connection, "connection");
      print_rows(flow_columns, json_object_get(connection, "flow_list"),
                 json_object_get(then, "flow_list"), "flow", connection, seconds);
    }
  }
  printf("\n");
}

/* ---- Prometheus: the samples of a metric stand together, so each pass prints one metric ---- */

struct label {
  const char *name, *member;
};

/* What has the metrics: the elements of a list of a process, or of `inner` in each of them; without
 * a list the process. A label that an element lacks is that of what it is in. */
struct subject {
  const char *name, *list, *inner;
  const struct stats_fields *fields;
  struct label labels[5];
};

static const struct stats_field info = { "info", false, 1, "The process; the value is 1" };
static const struct stats_field uptime = { "uptime_seconds", false, 1,
                                           "Time since the first NIC was used" };
static const struct stats_fields info_fields = { &info, 1 }, uptime_fields = { &uptime, 1 };
static const struct subject subjects[] = {
  { "process", NULL, NULL, &info_fields, { { "host", "host" }, { "version", "version" } } },
  { "process", NULL, NULL, &uptime_fields, { { NULL, NULL } } },
  { "nic", "nics", NULL, &stats_nic_fields, { { "nic", "name" } } },
  { "connection",
    "connections",
    NULL,
    &stats_connection_fields,
    { { "connection", "connection" }, { "role", "role" }, { "nic", "nic" }, { "peer", "peer" } } },
  { "flow",
    "connections",
    "flow_list",
    &stats_flow_fields,
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

static void print_sample(FILE *to, const struct subject *subject, const struct stats_field *metric,
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

static void print_metric(FILE *to, const struct subject *subject, const struct stats_field *metric,
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
    for (size_t j = 0; j < subjects[i].fields->count; j++) {
      print_metric(to, &subjects[i], &subjects[i].fields->list[j], processes);
    }
  }
}
