/* SPDX-License-Identifier: Apache-2.0 */
/* The document as JSON, and as the tool's Prometheus text: both are read back, strange names
 * included. */
#include "net_plugin/observe/limits.h"
#include "tests/lib/unit.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/observe/stats_document.h"
#include "net_plugin/tools/stats_print.h"

#define TEXT_BYTES (1u << 20)
#define NASTY "a\"b\\c\nd\te\x01\xc3\xa9{}, "

static void fill(struct stats_document *document, size_t connections, size_t flows) {
  memset(document, 0, sizeof *document);
  document->pid = 4711;
  strcpy(document->id, "5f3a");
  document->uptime_ns = 2500000000;
  strcpy(document->host, "host-a");
  document->nic_count = 2;
  strcpy(document->nics[0].name, "eth0");
  strcpy(document->nics[1].name, "e\"\\\n1");
  for (size_t i = 0; i < NIC_COUNTER_COUNT; i++) {
    document->nics[0].values[i] = i + 1;
    document->nics[1].values[i] = UINT64_C(1) << 52;
  }
  for (size_t c = 0; c < connections; c++) {
    struct stats_connection *connection = stats_document_add_connection(document);
    connection->number = c + 1;
    connection->is_sender = c % 2 == 0;
    strcpy(connection->peer, NASTY);
    strcpy(connection->nic, "eth0");
    connection->values[STATS_CONNECTION_BYTES] = 1000 * (c + 1);
    connection->values[STATS_CONNECTION_WAITING] = 1500000000;
    for (size_t f = 0; f < flows; f++) {
      struct stats_flow *flow = stats_document_add_flow(document);
      flow->connection = (uint32_t)c;
      flow->index = (uint32_t)f;
      flow->state = LINK_LANE_UP;
      flow->local.in = (struct sockaddr_in){ .sin_family = AF_INET,
                                             .sin_port = htons(4242),
                                             .sin_addr.s_addr = htonl(0x0a000001) };
      flow->values[STATS_FLOW_RTT] = 125;
      flow->values[STATS_FLOW_ACKED] = 500;
      flow->values[STATS_FLOW_UP] = 1;
      flow->values[STATS_FLOW_LIMIT] = f == 0 ? POLICY_LIMIT_UNKNOWN : POLICY_LIMIT_NETWORK;
    }
  }
}

/* Whole, in pieces each checked for its size. The caller frees it. */
static char *write_json(const struct stats_document *document) {
  char *all = calloc(1, TEXT_BYTES);
  static char piece[STATS_PIECE_MAX];
  struct stats_cursor cursor = { 0 };
  struct text text;
  size_t used = 0;
  assert_non_null(all);
  for (text_init(&text, piece, sizeof piece); stats_json_next(document, &cursor, &text);
       text_init(&text, piece, sizeof piece)) {
    assert_false(text.is_full);
    assert_true(used + text.used < TEXT_BYTES);
    memcpy(all + used, piece, text.used);
    used += text.used;
  }
  assert_int_equal(text.used, 0);
  assert_false(stats_json_next(document, &cursor, &text));
  return all;
}

/* What `stats --prometheus` makes of it and, unless it is NULL, of a second process. The caller
 * frees it. */
static char *write_prometheus(const struct stats_document *document, const json_t *second) {
  char *json = write_json(document), *text = NULL;
  size_t bytes;
  json_t *processes = json_pack("[o]", json_loads(json, 0, NULL));
  FILE *to = open_memstream(&text, &bytes);
  assert_true(processes && to);
  if (second) {
    json_array_append(processes, (json_t *)(uintptr_t)second);
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
  struct stats_document document;
  fill(&document, 3, 2);
  strcpy(document.rank, "5");
  document.connections[1].stall = STALL_AWAITS_SEND;
  document.connections[1].request = 9;
  document.connections[2].error = -110;
  char *text = write_json(&document);
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
  const json_t *nics = json_object_get(root, "nics");
  assert_int_equal(json_array_size(nics), 2);
  assert_string_equal(json_string_value(json_object_get(json_array_get(nics, 1), "name")),
                      "e\"\\\n1");
  for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
    assert_true(number(json_array_get(nics, 0), nic_counter_name((enum nic_counter)i)) == i + 1);
  }
  const json_t *connections = json_object_get(root, "connections");
  assert_int_equal(json_array_size(connections), 3);
  for (size_t c = 0; c < 3; c++) {
    const json_t *connection = json_array_get(connections, c);
    assert_string_equal(json_string_value(json_object_get(connection, "peer")), "a\"b\\c\nd\te\x01?"
                                                                                "?{}, ");
    assert_string_equal(json_string_value(json_object_get(connection, "role")),
                        c % 2 ? "receive" : "send");
    for (int i = 0; i < STATS_CONNECTION_FIELD_COUNT; i++) {
      number(connection, stats_connection_fields[i].name);
    }
    assert_true(number(connection, "stalled_seconds") == 1.5);
    const json_t *flows = json_object_get(connection, "flow_list");
    assert_int_equal(json_array_size(flows), 2);
    const json_t *flow = json_array_get(flows, 1);
    for (int i = 0; i < STATS_FLOW_FIELD_COUNT; i++) {
      number(flow, stats_flow_fields[i].name);
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
  stats_document_free(&document);
}

/* ---- a reader of Prometheus text, strict: fails the test at anything that is not in order ---- */

struct metrics {
  char current[128]; /* the metric whose samples may come */
  char seen[8192];   /* " name name " of all so far */
  size_t samples;
  double sum; /* of the metric that is asked for */
};

static const char *skip_name(const char *at) {
  assert_true(isalpha((unsigned char)*at) || *at == '_');
  while (isalnum((unsigned char)*at) || *at == '_') {
    at++;
  }
  return at;
}

/* From behind the '{' to behind the '}'. Values lose their escapes; *peer gets that label's. */
static const char *read_labels(const char *at, char peer[128]) {
  for (;;) {
    const char *name = at;
    at = skip_name(at);
    bool is_peer = strncmp(name, "peer=", 5) == 0;
    assert_true(*at++ == '=' && *at++ == '"');
    size_t length = 0;
    for (; *at != '"'; at++) {
      char c = *at;
      assert_true(c != '\n' && c != '\0');
      if (c == '\\') {
        c = *++at;
        assert_true(c == '\\' || c == '"' || c == 'n');
        c = c == 'n' ? '\n' : c;
      }
      if (is_peer && length < 127) {
        peer[length++] = c;
        peer[length] = '\0';
      }
    }
    if (*++at == '}') {
      return at + 1;
    }
    assert_int_equal(*at++, ',');
  }
}

static void read_comment(const char *line, struct metrics *metrics) {
  char name[128], padded[132], type[16];
  if (strncmp(line, "# HELP ", 7) == 0) {
    assert_int_equal(sscanf(line + 7, "%127s ", name), 1);
    assert_int_equal(*skip_name(name), '\0');
    snprintf(padded, sizeof padded, " %s ", name);
    assert_null(strstr(metrics->seen, padded)); /* each metric once, in one group */
    strcat(metrics->seen, padded + 1);
    strcpy(metrics->current, name);
  } else {
    assert_int_equal(sscanf(line, "# TYPE %127s %15s", name, type), 2);
    assert_string_equal(name, metrics->current);
    bool is_counter = strcmp(type, "counter") == 0;
    assert_true(is_counter || strcmp(type, "gauge") == 0);
    size_t length = strlen(name);
    assert_int_equal(is_counter, length > 6 && strcmp(name + length - 6, "_total") == 0);
  }
}

static void read_metrics(const char *text, const char *wanted, struct metrics *metrics) {
  memset(metrics, 0, sizeof *metrics);
  strcpy(metrics->seen, " ");
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    assert_non_null(strchr(line, '\n'));
    if (*line == '#') {
      read_comment(line, metrics);
      continue;
    }
    const char *end = skip_name(line);
    assert_int_equal((size_t)(end - line), strlen(metrics->current));
    assert_memory_equal(line, metrics->current, (size_t)(end - line));
    char peer[128] = "";
    assert_int_equal(*end, '{');
    end = read_labels(end + 1, peer);
    if (strncmp(metrics->current, "stratus_connection_", 19) == 0) {
      assert_string_equal(peer, "a\"b\\c\nd?e?"
                                "?"
                                "?{}, ");
    }
    char *after;
    assert_int_equal(*end, ' ');
    double value = strtod(end + 1, &after);
    assert_true(after != end + 1 && *after == '\n');
    metrics->samples++;
    metrics->sum += strcmp(metrics->current, wanted) == 0 ? value : 0;
  }
}

UNIT_TEST(prometheus_text_is_read_back) {
  struct stats_document document;
  struct metrics metrics;
  fill(&document, 3, 2);
  char *text = write_prometheus(&document, NULL);
  read_metrics(text, "stratus_connection_bytes_total", &metrics);
  assert_int_equal(metrics.samples, 2 + 2 * NIC_COUNTER_COUNT + 3 * STATS_CONNECTION_FIELD_COUNT +
                                        6 * STATS_FLOW_FIELD_COUNT);
  assert_true(metrics.sum == 6000);
  assert_null(strstr(text, "rank="));
  read_metrics(text, "stratus_flow_rtt_seconds", &metrics);
  assert_true(metrics.sum > 0.000749 && metrics.sum < 0.000751);
  read_metrics(text, "stratus_flow_limit", &metrics);
  assert_true(metrics.sum == 3 * POLICY_LIMIT_NETWORK);
  read_metrics(text, "stratus_nic_bytes_sent_total", &metrics);
  assert_true(metrics.sum == 4503599627370497.0);
  free(text);
  strcpy(document.rank, "12");
  text = write_prometheus(&document, NULL);
  read_metrics(text, "", &metrics);
  assert_non_null(strstr(text,
                         "stratus_flow_up{pid=\"4711\",id=\"5f3a\",rank=\"12\",connection=\"3\","
                         "flow=\"1\",nic=\"\"} 1\n"));
  free(text);
  stats_document_free(&document);
}

/* Of another release: what it does not say is left out, the rest stands with the first's. */
UNIT_TEST(processes_share_a_metric) {
  struct stats_document document;
  struct metrics metrics;
  fill(&document, 1, 0);
  json_t *second = json_pack("{s:i, s:[{s:s, s:i, s:i}]}", "pid", 8, "nics", "name", "eth0",
                             "bytes_sent", 7, "unknown", 9);
  char *text = write_prometheus(&document, second);
  read_metrics(text, "stratus_nic_bytes_sent_total", &metrics);
  assert_true(metrics.sum == 4503599627370497.0 + 7);
  assert_int_equal(metrics.samples, 4 + 2 * NIC_COUNTER_COUNT + STATS_CONNECTION_FIELD_COUNT + 1);
  assert_non_null(strstr(text, "stratus_nic_bytes_sent_total{pid=\"8\",nic=\"eth0\"} 7\n"));
  free(text);
  json_decref(second);
  stats_document_free(&document);
}

UNIT_TEST(nothing_is_a_document_too) {
  struct stats_document document = { .pid = 1 };
  struct metrics metrics;
  char *text = write_prometheus(&document, NULL);
  read_metrics(text, "stratus_process_info", &metrics);
  assert_true(metrics.sum == 1);
  free(text);
  text = write_json(&document);
  json_t *root = json_loads(text, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "connections")), 0);
  assert_true(json_is_array(json_object_get(root, "nics")));
  json_decref(root);
  free(text);
}

UNIT_TEST(a_document_that_is_too_large_says_so) {
  struct stats_document document = { .pid = 1 };
  size_t flows = 0;
  assert_non_null(stats_document_add_connection(&document));
  while (stats_document_add_flow(&document)) {
    flows++;
  }
  assert_int_equal(flows, STATS_FLOWS_MAX);
  assert_int_equal(document.flow_count, STATS_FLOWS_MAX);
  assert_true(document.is_truncated);
  stats_document_free(&document);
}

UNIT_TEST(longest_names_fit_into_a_piece) {
  struct stats_document document;
  fill(&document, 1, 1);
  for (size_t i = 0; i < STATS_CONNECTION_FIELD_COUNT; i++) {
    document.connections[0].values[i] = UINT64_MAX;
  }
  for (size_t i = 0; i < STATS_FLOW_FIELD_COUNT; i++) {
    document.flows[0].values[i] = UINT64_MAX;
  }
  document.flows[0].values[STATS_FLOW_LIMIT] = POLICY_LIMIT_APPLICATION; /* the longest */
  memset(document.connections[0].peer, 1, CONNECTION_NAME_BYTES - 1);
  memset(document.connections[0].nic, 2, CONNECTION_NAME_BYTES - 1);
  memset(document.host, 3, sizeof document.host - 1);
  char *text = write_json(&document);
  json_t *root = json_loads(text, 0, NULL);
  assert_non_null(root);
  json_decref(root);
  free(text);
  stats_document_free(&document);
}

UNIT_TEST(what_does_not_fit_is_left_out) {
  char bytes[8];
  struct text text;
  text_init(&text, bytes, sizeof bytes);
  text_add(&text, "abc");
  text_add(&text, "defgh");
  assert_true(text.is_full);
  assert_string_equal(bytes, "abc");
  text_add(&text, "defg");
  assert_string_equal(bytes, "abcdefg");
}

UNIT_MAIN(NULL, NULL)
