/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_document.h: the document as JSON. */
#include <inttypes.h>
#include <string.h>

#include "common/version.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/observe/stats_document.h"

enum part { PART_HEAD, PART_NICS, PART_CONNECTIONS, PART_FLOWS, PART_TAIL, PART_END };

static void add_head(const struct stats_document *document, struct text *text) {
  text_add(text,
           "{\"schema\":%d,\"version\":\"%s\",\"pid\":%d,\"id\":\"%s\",\"host\":", STATS_SCHEMA,
           STRATUS_VERSION, document->pid, document->id);
  text_add_json_string(text, document->host);
  text_add(text, ",\"rank\":");
  if (document->rank[0]) {
    text_add_json_string(text, document->rank);
  } else {
    text_add(text, "null");
  }
  text_add(text, ",\"uptime_seconds\":");
  text_add_number(text, (double)document->uptime_ns * 1e-9);
  text_add(text, ",\"is_truncated\":%s,\n\"nics\":[", document->is_truncated ? "true" : "false");
}

static void add_nic(const struct stats_nic *nic, bool is_first, struct text *text) {
  text_add(text, "%s\n{\"name\":", is_first ? "" : ",");
  text_add_json_string(text, nic->name);
  for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
    text_add(text, ",\"%s\":%" PRIu64, nic_counter_name((enum nic_counter)i), nic->values[i]);
  }
  text_add(text, "}");
}

static void add_fields(const struct stats_field *fields, unsigned count, const uint64_t *values,
                       struct text *text) {
  for (unsigned i = 0; i < count; i++) {
    text_add(text, ",\"%s\":", fields[i].name);
    text_add_number(text, (double)values[i] * fields[i].unit);
  }
}

/* Not closed: its flows follow. */
static void add_connection(const struct stats_connection *connection, bool is_first,
                           struct text *text) {
  text_add(text, "%s\n{\"connection\":%" PRIu64 ",\"role\":\"%s\",\"peer\":", is_first ? "" : ",",
           connection->number, connection->is_sender ? "send" : "receive");
  text_add_json_string(text, connection->peer);
  text_add(text, ",\"nic\":");
  text_add_json_string(text, connection->nic);
  text_add(text, ",\"is_closed\":%s,\"error\":", connection->is_detached ? "true" : "false");
  if (connection->error) {
    text_add_json_string(text, strerror(-connection->error));
  } else {
    text_add(text, "null");
  }
  add_fields(stats_connection_fields, STATS_CONNECTION_FIELD_COUNT, connection->values, text);
  text_add(text, ",\"stall\":");
  if (connection->stall == STALL_NONE) {
    text_add(text, "null");
  } else {
    text_add(text,
             "{\"request\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"done_bytes\":%" PRIu64
             ",\"is_fault\":%s,\"reason\":",
             connection->request, connection->request_bytes, connection->request_moved,
             stall_is_fault(connection->stall) ? "true" : "false");
    text_add_json_string(text, stall_reason(connection->stall));
    text_add(text, "}");
  }
  text_add(text, ",\"flow_list\":[");
}

static const char *address_text(const union stats_address *address, char text[TCP_ADDRESS_TEXT]) {
  struct sockaddr_storage storage = { 0 };
  if (address->family != AF_INET && address->family != AF_INET6) {
    return "-";
  }
  memcpy(&storage, address, sizeof *address);
  return tcp_address_text(&storage, text);
}

static void add_flow(const struct stats_flow *flow, bool is_first, struct text *text) {
  static const char *const states[] = { "closed", "connecting", "up", "failed" };
  char address[TCP_ADDRESS_TEXT];
  text_add(text, "%s\n {\"flow\":%" PRIu32 ",\"state\":\"%s\",\"epoch\":%" PRIu32 ",\"nic\":",
           is_first ? "" : ",", flow->index, states[flow->state], flow->epoch);
  text_add_json_string(text, flow->nic);
  text_add(text, ",\"local\":");
  text_add_json_string(text, address_text(&flow->local, address));
  text_add(text, ",\"remote\":");
  text_add_json_string(text, address_text(&flow->remote, address));
  add_fields(stats_flow_fields, STATS_FLOW_FIELD_COUNT, flow->values, text);
  text_add(text, ",\"limited_by\":\"%s\"}",
           link_limit_name((enum policy_limit)flow->values[STATS_FLOW_LIMIT]));
}

static bool has_flow(const struct stats_document *document, const struct stats_cursor *cursor) {
  return cursor->inner < document->flow_count &&
         document->flows[cursor->inner].connection == cursor->index;
}

bool stats_json_next(const struct stats_document *document, struct stats_cursor *cursor,
                     struct text *text) {
  switch ((enum part)cursor->part) {
  case PART_HEAD:
    add_head(document, text);
    cursor->part = PART_NICS;
    return true;
  case PART_NICS:
    if (cursor->index < document->nic_count) {
      add_nic(&document->nics[cursor->index], cursor->index == 0, text);
      cursor->index++;
    } else {
      text_add(text, "],\n\"connections\":[");
      cursor->part = PART_CONNECTIONS;
      cursor->index = 0;
    }
    return true;
  case PART_CONNECTIONS:
    if (cursor->index < document->connection_count) {
      add_connection(&document->connections[cursor->index], cursor->index == 0, text);
      cursor->part = PART_FLOWS;
    } else {
      cursor->part = PART_TAIL;
    }
    return true;
  case PART_FLOWS:
    if (has_flow(document, cursor)) {
      bool is_first =
          cursor->inner == 0 || document->flows[cursor->inner - 1].connection != cursor->index;
      add_flow(&document->flows[cursor->inner], is_first, text);
      cursor->inner++;
    } else {
      text_add(text, "]}");
      cursor->part = PART_CONNECTIONS;
      cursor->index++;
    }
    return true;
  case PART_TAIL:
    text_add(text, "]}\n");
    cursor->part = PART_END;
    return true;
  case PART_END:
    break;
  }
  return false;
}
