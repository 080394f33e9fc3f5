/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_json.h, and stats_fields.h for the values. */
#include "net_plugin/observe/stats_json.h"

#include <inttypes.h>
#include <string.h>

#include "common/version.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/observe/stall.h"
#include "net_plugin/observe/stats_fields.h"

#define PS_PER_S 1000000000000ull

enum { COUNTER = true, GAUGE = false };
#define FIELD(name, is_counter, unit, value, help) { #name, is_counter, unit, help },
#define NIC_FIELD(id, name, help) { #name, COUNTER, 1, help },
static const struct stats_field nic_list[] = { NIC_COUNTERS(NIC_FIELD) };
static const struct stats_field connection_list[] = { STATS_CONNECTION_FIELDS(FIELD) };
static const struct stats_field flow_list[] = { STATS_FLOW_FIELDS(FIELD) };
#define FIELDS(list)                                                                               \
  { list, sizeof list / sizeof list[0] }
const struct stats_fields stats_nic_fields = FIELDS(nic_list);
const struct stats_fields stats_connection_fields = FIELDS(connection_list);
const struct stats_fields stats_flow_fields = FIELDS(flow_list);

static uint64_t since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

#define VALUE(name, is_counter, unit, value, help) (uint64_t)(value),

static void add_fields(struct text *text, const struct stats_fields *fields,
                       const uint64_t *values) {
  for (size_t i = 0; i < fields->count; i++) {
    text_add(text, ",\"%s\":", fields->list[i].name);
    text_add_number(text, (double)values[i] * fields->list[i].unit);
  }
}

/* ,"name":"value" or null. */
static void add_string(struct text *text, const char *name, const char *value) {
  text_add(text, ",\"%s\":", name);
  if (value) {
    text_add_json_string(text, value);
  } else {
    text_add(text, "null");
  }
}

static const char *bool_text(bool value) {
  return value ? "true" : "false";
}

void stats_json_begin(struct text *text, const struct stats_process *process) {
  text_add(text, "{\"schema\":%d,\"version\":\"%s\",\"pid\":%d", STATS_SCHEMA, STRATUS_VERSION,
           process->pid);
  add_string(text, "id", process->id);
  add_string(text, "host", process->host);
  add_string(text, "rank", process->rank[0] ? process->rank : NULL);
  text_add(text, ",\"uptime_seconds\":");
  text_add_number(text, (double)process->uptime_ns * 1e-9);
  text_add(text, ",\n\"connections\":[");
}

static void add_stall(struct text *text, const struct link_message_view *oldest,
                      enum stall_kind kind) {
  if (kind == STALL_NONE) {
    text_add(text, ",\"stall\":null");
    return;
  }
  text_add(text,
           ",\"stall\":{\"request\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"done_bytes\":%" PRIu64
           ",\"is_fault\":%s",
           oldest->number, (uint64_t)oldest->bytes, (uint64_t)oldest->moved,
           bool_text(stall_is_fault(kind)));
  add_string(text, "reason", stall_reason(kind));
  text_add(text, "}");
}

void stats_json_connection(struct text *text, const struct connection_snapshot *seen,
                           const struct stats_engine *engine, uint64_t now_ns, bool is_first) {
  struct stall_facts facts;
  stall_find_facts(seen, now_ns, &facts);
  const uint64_t values[] = { STATS_CONNECTION_FIELDS(VALUE) };
  text_add(text, "%s\n{\"connection\":%" PRIu64 ",\"role\":\"%s\"", is_first ? "" : ",",
           seen->number, seen->is_sender ? "send" : "receive");
  add_string(text, "peer", seen->peer);
  add_string(text, "nic", seen->nic);
  text_add(text, ",\"is_closed\":%s", bool_text(seen->is_detached));
  add_string(text, "error", seen->error ? strerror(-seen->error) : NULL);
  add_fields(text, &stats_connection_fields, values);
  add_stall(text, &seen->oldest, stall_classify(&facts));
  text_add(text, ",\"flow_list\":[");
}

void stats_json_connection_end(struct text *text) {
  text_add(text, "]}");
}

static const char *address_text(const struct sockaddr_storage *address,
                                char text[TCP_ADDRESS_TEXT]) {
  bool is_known = address->ss_family == AF_INET || address->ss_family == AF_INET6;
  return is_known ? tcp_address_text(address, text) : "-";
}

static uint64_t rate_of(const struct link_lane_view *link) {
  return link->ps_per_byte ? PS_PER_S / link->ps_per_byte : 0;
}

static enum policy_limit limit_of(const struct link_lane_view *link) {
  return link->state == LINK_LANE_UP ? link->limit : POLICY_LIMIT_UNKNOWN;
}

void stats_json_flow(struct text *text, const struct lane_snapshot *seen, bool is_first) {
  static const char *const states[] = { "closed", "connecting", "up", "failed" };
  char address[TCP_ADDRESS_TEXT];
  const uint64_t values[] = { STATS_FLOW_FIELDS(VALUE) };
  text_add(text, "%s\n {\"flow\":%u,\"state\":\"%s\",\"epoch\":%" PRIu32, is_first ? "" : ",",
           seen->index, states[seen->link.state], seen->link.epoch);
  add_string(text, "nic", seen->nic);
  add_string(text, "local", address_text(&seen->transport.local, address));
  add_string(text, "remote", address_text(&seen->transport.remote, address));
  add_fields(text, &stats_flow_fields, values);
  add_string(text, "limited_by", link_limit_name(limit_of(&seen->link)));
  text_add(text, "}");
}

void stats_json_nic(struct text *text, const char *name, const uint64_t values[NIC_COUNTER_COUNT],
                    bool is_first) {
  text_add(text, "%s\n{\"name\":", is_first ? "" : ",");
  text_add_json_string(text, name);
  add_fields(text, &stats_nic_fields, values);
  text_add(text, "}");
}

void stats_json_end(struct text *text, bool is_truncated) {
  const struct nic_totals *totals;
  text_add(text, "],\n\"nics\":[");
  for (unsigned i = 0; (totals = nic_totals_at(i)); i++) {
    uint64_t values[NIC_COUNTER_COUNT];
    for (int j = 0; j < NIC_COUNTER_COUNT; j++) {
      values[j] = atomic_load_explicit(&totals->counts[j], memory_order_relaxed);
    }
    stats_json_nic(text, totals->nic, values, i == 0);
  }
  text_add(text, "],\"is_truncated\":%s}\n", bool_text(is_truncated));
}
