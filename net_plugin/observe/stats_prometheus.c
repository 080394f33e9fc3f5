/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_document.h: the document in the text format of Prometheus. The samples of a metric are
 * grouped, so each pass over the document writes one metric. */
#include <inttypes.h>

#include "common/version.h"
#include "net_plugin/observe/stats_document.h"

enum part { PART_INFO, PART_NICS, PART_CONNECTIONS, PART_FLOWS, PART_END };

static void add_metric(struct text *text, const char *subject, const char *name, bool is_counter,
                       const char *help) {
  const char *total = is_counter ? "_total" : "";
  text_add(text, "# HELP stratus_%s_%s%s %s.\n# TYPE stratus_%s_%s%s %s\n", subject, name, total,
           help, subject, name, total, is_counter ? "counter" : "gauge");
}

/* "stratus_nic_bytes_sent_total{pid="7",rank="3"", to be closed by the caller. */
static void begin_sample(const struct stats_document *document, struct text *text,
                         const char *subject, const char *name, bool is_counter) {
  text_add(text, "stratus_%s_%s%s{pid=\"%d\"", subject, name, is_counter ? "_total" : "",
           document->pid);
  if (document->rank[0]) {
    text_add(text, ",rank=");
    text_add_label_value(text, document->rank);
  }
}

static void end_sample(struct text *text, double value) {
  text_add(text, "} ");
  text_add_number(text, value);
  text_add(text, "\n");
}

static void add_info(const struct stats_document *document, struct text *text) {
  add_metric(text, "process", "info", false, "The process; the value is 1");
  begin_sample(document, text, "process", "info", false);
  text_add(text, ",host=");
  text_add_label_value(text, document->host);
  text_add(text, ",version=");
  text_add_label_value(text, STRATUS_VERSION);
  end_sample(text, 1);
  add_metric(text, "process", "uptime_seconds", false, "Time since the first NIC was used");
  begin_sample(document, text, "process", "uptime_seconds", false);
  end_sample(text, (double)document->uptime_ns * 1e-9);
}

static void add_nic(const struct stats_document *document, size_t field, size_t index,
                    struct text *text) {
  const struct stats_nic *nic = &document->nics[index];
  begin_sample(document, text, "nic", nic_counter_name((enum nic_counter)field), true);
  text_add(text, ",nic=");
  text_add_label_value(text, nic->name);
  end_sample(text, (double)nic->values[field]);
}

static void add_connection(const struct stats_document *document, size_t field, size_t index,
                           struct text *text) {
  const struct stats_connection *connection = &document->connections[index];
  const struct stats_field *told = &stats_connection_fields[field];
  begin_sample(document, text, "connection", told->name, told->is_counter);
  text_add(text, ",connection=\"%" PRIu64 "\",role=\"%s\",nic=", connection->number,
           connection->is_sender ? "send" : "receive");
  text_add_label_value(text, connection->nic);
  text_add(text, ",peer=");
  text_add_label_value(text, connection->peer);
  end_sample(text, (double)connection->values[field] * told->unit);
}

static void add_flow(const struct stats_document *document, size_t field, size_t index,
                     struct text *text) {
  const struct stats_flow *flow = &document->flows[index];
  const struct stats_field *told = &stats_flow_fields[field];
  begin_sample(document, text, "flow", told->name, told->is_counter);
  text_add(text, ",connection=\"%" PRIu64 "\",flow=\"%" PRIu32 "\",nic=",
           document->connections[flow->connection].number, flow->index);
  text_add_label_value(text, flow->nic);
  end_sample(text, (double)flow->values[field] * told->unit);
}

/* The size of a part: metrics, and samples of each. */
struct section {
  size_t metrics, samples;
};

static struct section section_of(const struct stats_document *document, enum part part) {
  switch (part) {
  case PART_NICS:
    return (struct section){ NIC_COUNTER_COUNT, document->nic_count };
  case PART_CONNECTIONS:
    return (struct section){ STATS_CONNECTION_FIELD_COUNT, document->connection_count };
  case PART_FLOWS:
    return (struct section){ STATS_FLOW_FIELD_COUNT, document->flow_count };
  case PART_INFO:
  case PART_END:
    break;
  }
  return (struct section){ 0, 0 };
}

static void add_head_of(enum part part, size_t field, struct text *text) {
  if (part == PART_NICS) {
    add_metric(text, "nic", nic_counter_name((enum nic_counter)field), true,
               nic_counter_help((enum nic_counter)field));
  } else {
    const struct stats_field *told =
        part == PART_CONNECTIONS ? &stats_connection_fields[field] : &stats_flow_fields[field];
    add_metric(text, part == PART_CONNECTIONS ? "connection" : "flow", told->name, told->is_counter,
               told->help);
  }
}

/* cursor->inner counts metrics of the part, cursor->index samples of the metric. */
bool stats_prometheus_next(const struct stats_document *document, struct stats_cursor *cursor,
                           struct text *text) {
  enum part part = (enum part)cursor->part;
  struct section section = section_of(document, part);
  if (part == PART_END) {
    return false;
  }
  if (part == PART_INFO) {
    add_info(document, text);
    cursor->part++;
    return true;
  }
  if (cursor->inner == section.metrics) {
    cursor->part++;
    cursor->inner = 0;
    return true;
  }
  if (cursor->index == 0) {
    add_head_of(part, cursor->inner, text);
  }
  if (cursor->index < section.samples) {
    static void (*const add[])(const struct stats_document *, size_t, size_t, struct text *) = {
      [PART_NICS] = add_nic, [PART_CONNECTIONS] = add_connection, [PART_FLOWS] = add_flow
    };
    add[part](document, cursor->inner, cursor->index, text);
    cursor->index++;
  }
  if (cursor->index >= section.samples) {
    cursor->index = 0;
    cursor->inner++;
  }
  return true;
}
