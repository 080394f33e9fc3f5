/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_json.h, and stats_fields.h for the values. */
#include "net_plugin/observe/stats_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/version.h"
#include "net_plugin/lane/tcp_address.h"
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

/* Whole numbers exactly; 0 if it is not finite. */
static void add_number(FILE *to, double value) {
  if (!isfinite(value)) {
    value = 0;
  }
  bool is_whole = value == floor(value) && fabs(value) < 1e18;
  fprintf(to, is_whole ? "%.0f" : "%.9g", value);
}

/* Bytes beyond ASCII become '?', as names may come from other hosts. */
static void add_quoted(FILE *to, const char *value) {
  fputc('"', to);
  for (; *value; value++) {
    unsigned char c = (unsigned char)*value;
    if (c == '"' || c == '\\') {
      fprintf(to, "\\%c", c);
    } else if (c == '\n') {
      fprintf(to, "\\n");
    } else if (c < 0x20) {
      fprintf(to, "\\u%04x", c);
    } else {
      fputc(c < 0x7f ? c : '?', to);
    }
  }
  fputc('"', to);
}

static void add_fields(FILE *to, const struct stats_fields *fields, const uint64_t *values) {
  for (size_t i = 0; i < fields->count; i++) {
    fprintf(to, ",\"%s\":", fields->list[i].name);
    add_number(to, (double)values[i] * fields->list[i].unit);
  }
}

/* ,"name":"value" or null. */
static void add_string(FILE *to, const char *name, const char *value) {
  fprintf(to, ",\"%s\":", name);
  if (value) {
    add_quoted(to, value);
  } else {
    fprintf(to, "null");
  }
}

static const char *bool_text(bool value) {
  return value ? "true" : "false";
}

void stats_json_begin(FILE *to, const struct stats_process *process) {
  fprintf(to, "{\"schema\":%d,\"version\":\"%s\",\"pid\":%d", STATS_SCHEMA, STRATUS_VERSION,
          process->pid);
  add_string(to, "id", process->id);
  add_string(to, "host", process->host);
  add_string(to, "rank", process->rank[0] ? process->rank : NULL);
  fprintf(to, ",\"uptime_seconds\":");
  add_number(to, (double)process->uptime_ns * 1e-9);
  fprintf(to, ",\n\"connections\":[");
}

static void add_stall(FILE *to, const struct link_message_view *oldest, enum stall_kind kind) {
  if (kind == STALL_NONE) {
    fprintf(to, ",\"stall\":null");
    return;
  }
  fprintf(to,
          ",\"stall\":{\"request\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"done_bytes\":%" PRIu64
          ",\"is_fault\":%s",
          oldest->number, (uint64_t)oldest->bytes, (uint64_t)oldest->moved,
          bool_text(stall_is_fault(kind)));
  add_string(to, "reason", stall_reason(kind));
  fprintf(to, "}");
}

void stats_json_connection(FILE *to, const struct connection_snapshot *seen,
                           const struct stats_engine *engine, uint64_t now_ns, bool is_first) {
  const uint64_t values[] = { STATS_CONNECTION_FIELDS(VALUE) };
  fprintf(to, "%s\n{\"connection\":%" PRIu64 ",\"role\":\"%s\"", is_first ? "" : ",", seen->number,
          seen->is_sender ? "send" : "receive");
  add_string(to, "peer", seen->peer);
  add_string(to, "nic", seen->nic);
  fprintf(to, ",\"is_closed\":%s", bool_text(seen->is_detached));
  add_string(to, "error", seen->error ? strerror(-seen->error) : NULL);
  add_fields(to, &stats_connection_fields, values);
  add_stall(to, &seen->oldest, stall_classify(seen));
  fprintf(to, ",\"flow_list\":[");
}

void stats_json_connection_end(FILE *to) {
  fprintf(to, "]}");
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

void stats_json_flow(FILE *to, const struct lane_snapshot *seen, bool is_first) {
  static const char *const states[] = { "closed", "connecting", "up", "failed" };
  char address[TCP_ADDRESS_TEXT];
  const uint64_t values[] = { STATS_FLOW_FIELDS(VALUE) };
  fprintf(to, "%s\n {\"flow\":%u,\"state\":\"%s\",\"epoch\":%" PRIu32, is_first ? "" : ",",
          seen->index, states[seen->link.state], seen->link.epoch);
  add_string(to, "nic", seen->nic);
  add_string(to, "local", address_text(&seen->transport.local, address));
  add_string(to, "remote", address_text(&seen->transport.remote, address));
  add_fields(to, &stats_flow_fields, values);
  add_string(to, "limited_by", link_limit_name(limit_of(&seen->link)));
  fprintf(to, "}");
}

static void add_nic(FILE *to, const struct nic_totals *totals, bool is_first) {
  uint64_t values[NIC_COUNTER_COUNT];
  for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
    values[i] = atomic_load_explicit(&totals->counts[i], memory_order_relaxed);
  }
  fprintf(to, "%s\n{\"name\":", is_first ? "" : ",");
  add_quoted(to, totals->nic);
  add_fields(to, &stats_nic_fields, values);
  fprintf(to, "}");
}

void stats_json_end(FILE *to, bool is_truncated) {
  const struct nic_totals *totals;
  fprintf(to, "],\n\"nics\":[");
  for (unsigned i = 0; (totals = nic_totals_at(i)); i++) {
    add_nic(to, totals, i == 0);
  }
  fprintf(to, "],\"is_truncated\":%s}\n", bool_text(is_truncated));
}
