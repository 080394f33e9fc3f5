/* SPDX-License-Identifier: Apache-2.0 */
/* The document as JSON, and as the tool's Prometheus text: both are read back, strange names
 * included. */
#include "tests/lib/unit.h"

#include <jansson.h>
#include <netinet/in.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/observe/stats_fields.h"
#include "net_plugin/observe/stats_json.h"
#include "net_plugin/tools/stats_print.h"

#define NASTY "a\"b\\c\nd\te\x01\xc3\xa9{}, "
#define NOW_NS 10000000000

/* A process as its connections, of which each has that many flows, tell of it. */
struct process {
  const char *rank;
  unsigned connections, flows;
  struct connection_snapshot seen[3];
};

static struct process make_process(unsigned connections, unsigned flows) {
  struct process process = { .rank = "", .connections = connections, .flows = flows };
  for (unsigned c = 0; c < connections; c++) {
    struct connection_snapshot *seen = &process.seen[c];
    seen->number = c + 1;
    seen->is_sender = c % 2 == 0;
    strcpy(seen->peer, NASTY);
    strcpy(seen->nic, "eth0");
    seen->bytes = 1000 * (c + 1);
    seen->stalled_ns = 1500000000;
  }
  return process;
}

static void add_flow(FILE *to, unsigned index) {
  struct lane_snapshot seen = { .index = index };
  *(struct sockaddr_in *)&seen.transport.local = (struct sockaddr_in){
    .sin_family = AF_INET, .sin_port = htons(4242), .sin_addr.s_addr = htonl(0x0a000001)
  };
  seen.link.state = LINK_LANE_UP;
  seen.transport.rtt_us = 125;
  seen.link.counts.bytes_acked = 500;
  seen.link.limit = index == 0 ? POLICY_LIMIT_UNKNOWN : POLICY_LIMIT_NETWORK;
  stats_json_flow(to, &seen, index == 0);
}

/* The caller frees it. */
static char *write_json(const struct process *process) {
  static const struct stats_engine engine = { .index = 0 };
  const struct stats_process facts = { 4711, "5f3a", "host-a", process->rank, 2500000000 };
  char *text = NULL;
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  assert_non_null(to);
  stats_json_begin(to, &facts);
  for (unsigned c = 0; c < process->connections; c++) {
    stats_json_connection(to, &process->seen[c], &engine, NOW_NS, c == 0);
    for (unsigned f = 0; f < process->flows; f++) {
      add_flow(to, f);
    }
    stats_json_connection_end(to);
  }
  stats_json_end(to, false);
  assert_int_equal(fclose(to), 0);
  return text;
}

/* What `stats --prometheus` makes of it and, unless it is NULL, of a second process. The caller
 * frees it. */
static char *write_prometheus(const struct process *process, json_t *second) {
  char *json = write_json(process), *text = NULL;
  size_t bytes;
  json_t *processes = json_pack("[o]", json_loads(json, 0, NULL));
  FILE *to = open_memstream(&text, &bytes);
  assert_true(processes && to);
  if (second) {
    json_array_append(processes, second);
  }
  stats_prometheus_print(processes, to);
  assert_int_equal(fclose(to), 0);
  json_decref(processes);
  free(json);
  return text;
}

static double number(const json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) {
    fail_msg("no number '%s'", key);
  }
  return json_number_value(value);
}

UNIT_TEST(json_is_read_back) {
  struct process process = make_process(3, 2);
  process.rank = "5";
  process.seen[1].link.lanes_up = 1;
  process.seen[1].stalled_ns = 3000000000;
  process.seen[1].oldest.number = 9;
  process.seen[2].error = -110;
  process.seen[2].stalled_ns = 0;
  char *text = write_json(&process);
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    fail_msg("%s at %d: %s", error.text, error.position, text);
  }
  assert_int_equal(number(root, "schema"), STATS_SCHEMA);
  assert_int_equal(number(root, "pid"), 4711);
  assert_string_equal(json_string_value(json_object_get(root, "id")), "5f3a");
  assert_true(number(root, "uptime_seconds") == 2.5);
  assert_string_equal(json_string_value(json_object_get(root, "rank")), "5");
  assert_true(json_is_false(json_object_get(root, "is_truncated")));
  const json_t *connections = json_object_get(root, "connections");
  assert_int_equal(json_array_size(connections), 3);
  for (size_t c = 0; c < 3; c++) {
    const json_t *connection = json_array_get(connections, c);
    assert_string_equal(json_string_value(json_object_get(connection, "peer")), "a\"b\\c\nd\te\x01?"
                                                                                "?{}, ");
    assert_string_equal(json_string_value(json_object_get(connection, "role")),
                        c % 2 ? "receive" : "send");
    for (size_t i = 0; i < stats_connection_fields.count; i++) {
      number(connection, stats_connection_fields.list[i].name);
    }
    assert_true(number(connection, "bytes") == 1000 * (double)(c + 1));
    assert_true(number(connection, "stalled_seconds") == (c == 0 ? 1.5 : c == 1 ? 3 : 0));
    const json_t *flows = json_object_get(connection, "flow_list");
    assert_int_equal(json_array_size(flows), 2);
    const json_t *flow = json_array_get(flows, 1);
    for (size_t i = 0; i < stats_flow_fields.count; i++) {
      number(flow, stats_flow_fields.list[i].name);
    }
    assert_int_equal(number(flow, "flow"), 1);
    assert_string_equal(json_string_value(json_object_get(flow, "limited_by")), "network");
    assert_string_equal(json_string_value(json_object_get(json_array_get(flows, 0), "limited_by")),
                        "-");
    assert_true(number(flow, "rtt_seconds") == 0.000125);
    assert_string_equal(json_string_value(json_object_get(flow, "local")), "10.0.0.1:4242");
    assert_string_equal(json_string_value(json_object_get(flow, "remote")), "-");
  }
  const json_t *stall = json_object_get(json_array_get(connections, 1), "stall");
  assert_int_equal(number(stall, "request"), 9);
  assert_true(json_is_false(json_object_get(stall, "is_fault")));
  assert_true(json_is_null(json_object_get(json_array_get(connections, 0), "stall")));
  assert_true(json_is_string(json_object_get(json_array_get(connections, 2), "error")));
  json_decref(root);
  free(text);
}

/* A NIC's counters, and a name that needs escapes. */
UNIT_TEST(nics_are_read_back) {
  char text[4096] = "";
  FILE *to = fmemopen(text, sizeof text, "w");
  uint64_t values[NIC_COUNTER_COUNT];
  for (size_t i = 0; i < NIC_COUNTER_COUNT; i++) {
    values[i] = i == 0 ? UINT64_C(1) << 52 : i;
  }
  assert_non_null(to);
  stats_json_nic(to, "e\"\\\n1", values, true);
  assert_int_equal(fclose(to), 0);
  json_t *nic = json_loads(text, 0, NULL);
  assert_string_equal(json_string_value(json_object_get(nic, "name")), "e\"\\\n1");
  for (size_t i = 0; i < NIC_COUNTER_COUNT; i++) {
    assert_true(number(nic, stats_nic_fields.list[i].name) == (double)values[i]);
  }
  json_decref(nic);
}

/* ---- a reader of Prometheus text, strict: fails the test at anything that is not in order ---- */

struct metrics {
  char current[128]; /* the metric whose samples may come */
  char seen[8192];   /* " name name " of all so far */
  size_t samples;
  double sum; /* of the metric that is asked for */
};

#define NAME "[a-zA-Z_][a-zA-Z0-9_]*"
#define LABEL NAME "=\"([^\"\\]|\\\\[\\\"n])*\"" /* values with their escapes */

static bool is_like(const char *line, const char *pattern) {
  regex_t compiled;
  assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
  bool is = regexec(&compiled, line, 0, NULL, 0) == 0;
  regfree(&compiled);
  return is;
}

static void read_line(const char *line, const char *wanted, struct metrics *metrics) {
  char name[128], padded[132];
  if (is_like(line, "^# HELP " NAME " .")) {
    sscanf(line, "# HELP %127s", metrics->current);
    snprintf(padded, sizeof padded, " %s ", metrics->current);
    assert_null(strstr(metrics->seen, padded)); /* each metric once, in one group */
    strcat(metrics->seen, padded + 1);
  } else if (is_like(line, "^# TYPE " NAME " (counter|gauge)$")) {
    sscanf(line, "# TYPE %127s", name);
    assert_string_equal(name, metrics->current);
    assert_int_equal(is_like(name, "_total$"), is_like(line, " counter$"));
  } else if (is_like(line, "^" NAME "\\{" LABEL "(," LABEL ")*\\} [-+.e0-9]+$")) {
    sscanf(line, "%127[^{]", name);
    assert_string_equal(name, metrics->current);
    assert_true(strncmp(name, "stratus_connection_", 19) != 0 ||
                strstr(line, "peer=\"a\\\"b\\\\c\\nd?e\?\?\?{}, \""));
    metrics->samples++;
    metrics->sum += strcmp(name, wanted) == 0 ? strtod(strrchr(line, ' '), NULL) : 0;
  } else {
    fail_msg("%s", line);
  }
}

static void read_metrics(const char *text, const char *wanted, struct metrics *metrics) {
  char *lines = strdup(text), *rest = lines, *line;
  *metrics = (struct metrics){ .seen = " " };
  while ((line = strsep(&rest, "\n")) && rest) {
    read_line(line, wanted, metrics);
  }
  assert_string_equal(line, ""); /* the last one has its end, too */
  free(lines);
}

static json_t *with_nic(const char *name, double bytes_sent) {
  return json_pack("{s:i, s:[{s:s, s:f, s:i}]}", "pid", 8, "nics", "name", name, "bytes_sent",
                   bytes_sent, "unknown", 9);
}

UNIT_TEST(prometheus_text_is_read_back) {
  struct process process = make_process(3, 2);
  struct metrics metrics;
  char *text = write_prometheus(&process, NULL);
  read_metrics(text, "stratus_connection_bytes_total", &metrics);
  assert_int_equal(metrics.samples,
                   2 + 3 * stats_connection_fields.count + 6 * stats_flow_fields.count);
  assert_true(metrics.sum == 6000);
  assert_null(strstr(text, "rank="));
  read_metrics(text, "stratus_flow_rtt_seconds", &metrics);
  assert_true(metrics.sum > 0.000749 && metrics.sum < 0.000751);
  read_metrics(text, "stratus_flow_limit", &metrics);
  assert_true(metrics.sum == 3 * POLICY_LIMIT_NETWORK);
  free(text);
  process.rank = "12";
  text = write_prometheus(&process, NULL);
  read_metrics(text, "", &metrics);
  assert_non_null(strstr(text,
                         "stratus_flow_up{pid=\"4711\",id=\"5f3a\",rank=\"12\",connection=\"3\","
                         "flow=\"1\",nic=\"\"} 1\n"));
  free(text);
}

/* Of another release: what it does not say is left out, the rest stands with the first's. */
UNIT_TEST(processes_share_a_metric) {
  struct process process = make_process(1, 0);
  struct metrics metrics;
  json_t *second = with_nic("e\"\\\n1", 4503599627370497.0);
  char *text = write_prometheus(&process, second);
  read_metrics(text, "stratus_nic_bytes_sent_total", &metrics);
  assert_true(metrics.sum == 4503599627370497.0);
  assert_int_equal(metrics.samples, 4 + stats_connection_fields.count + 1);
  assert_non_null(strstr(text, "stratus_nic_bytes_sent_total{pid=\"8\",nic=\"e\\\"\\\\\\n1\"} "
                               "4503599627370497\n"));
  free(text);
  json_decref(second);
}

UNIT_TEST(nothing_is_a_document_too) {
  struct process process = make_process(0, 0);
  struct metrics metrics;
  char *text = write_prometheus(&process, NULL);
  read_metrics(text, "stratus_process_info", &metrics);
  assert_true(metrics.sum == 1);
  free(text);
  text = write_json(&process);
  json_t *root = json_loads(text, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "connections")), 0);
  assert_true(json_is_array(json_object_get(root, "nics")));
  json_decref(root);
  free(text);
}
