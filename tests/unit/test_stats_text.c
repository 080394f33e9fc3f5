/* SPDX-License-Identifier: Apache-2.0 */
/* The document as JSON, and as the tool's Prometheus text, strange names included: as
 * tests/data/stats has them, where a field that is new stands, too. */
#include "tests/lib/unit.h"

#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/version.h"
#include "net_plugin/observe/stats_fields.h"
#include "net_plugin/observe/stats_json.h"
#include "net_plugin/tools/stats_print.h"
#include "tests/lib/fake_nic.h"

#define DATA "tests/data/stats/"
#define NASTY "a\"b\\c\nd\te\x01\xc3\xa9{}, "
#define NOW_NS 10000000000

/* A process as its connections, of which the first has two flows, tell of it. */
struct process {
  const char *rank;
  unsigned connections;
  struct connection_snapshot seen[3];
};

static struct process make_process(unsigned connections) {
  struct process process = { .rank = "", .connections = connections };
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
  seen.link.bytes_acked = 500;
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
    for (unsigned f = 0; c == 0 && f < 2; f++) {
      add_flow(to, f);
    }
    stats_json_connection_end(to);
  }
  stats_json_end(to, false);
  assert_int_equal(fclose(to), 0);
  return text;
}

/* As of the release that wrote the file: every number is the same. */
UNIT_TEST(the_document_is_json) {
  struct process process = make_process(3);
  process.rank = "5";
  process.seen[1].link.lanes_up = 1;
  process.seen[1].stalled_ns = 3000000000;
  process.seen[1].oldest.number = 9;
  process.seen[2].error = -110;
  process.seen[2].stalled_ns = 0;
  const struct nic nic = fake_nic("e\"\\\n1", "10.0.0.1", 24);
  struct nic_totals *totals = nic_totals_of(&nic);
  for (uint64_t i = 0; i < NIC_COUNTER_COUNT; i++) {
    atomic_store(&totals->counts[i], i == 0 ? UINT64_C(1) << 52 : i);
  }
  char *text = write_json(&process);
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    fail_msg("%s at %d: %s", error.text, error.position, text);
  }
  assert_string_equal(json_string_value(json_object_get(root, "version")), STRATUS_VERSION);
  json_t *expected = json_load_file(DATA "process.json", 0, &error);
  json_object_set(root, "version", json_object_get(expected, "version"));
  if (!json_equal(root, expected)) {
    fail_msg("this is not " DATA "process.json"
             ": %s",
             text);
  }
  json_decref(expected);
  json_decref(root);
  free(text);
}

/* Of that process, and of one of another release: what it does not say is left out, the rest stands
 * with the first's. */
UNIT_TEST(prometheus_gets_each_metric_once) {
  json_t *processes = json_pack("[oo]", json_load_file(DATA "process.json", 0, NULL),
                                json_load_file(DATA "older-process.json", 0, NULL));
  char *text = NULL, expected[1 << 16];
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes), *from = fopen(DATA "prometheus.txt", "re");
  assert_true(processes && to && from);
  stats_prometheus_print(processes, to);
  assert_int_equal(fclose(to), 0);
  expected[fread(expected, 1, sizeof expected - 1, from)] = '\0';
  fclose(from);
  assert_string_equal(text, expected);
  json_decref(processes);
  free(text);
}

UNIT_TEST(nothing_is_a_document_too) {
  struct process process = make_process(0);
  char *text = write_json(&process);
  json_t *root = json_loads(text, 0, NULL);
  assert_true(json_is_null(json_object_get(root, "rank")));
  assert_int_equal(json_array_size(json_object_get(root, "connections")), 0);
  assert_true(json_is_array(json_object_get(root, "nics")));
  json_decref(root);
  free(text);
}
