/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_collect.h. */
#include "net_plugin/observe/stats_collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/observe/limits.h"
#include "net_plugin/policy/policy_shared.h"

#define PS_PER_S 1000000000000ull

static void find_rank(char rank[16]) {
  static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                       "SLURM_PROCID" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value && *value && strlen(value) < 16 && strspn(value, "0123456789") == strlen(value)) {
      snprintf(rank, 16, "%s", value);
      return;
    }
  }
}

void stats_collect_start(struct stats_collect *collect, struct stats_document *document,
                         struct engine *held, uint64_t started_ns) {
  memset(document, 0, sizeof *document);
  document->pid = (int)getpid();
  gethostname(document->host, sizeof document->host - 1);
  find_rank(document->rank);
  document->uptime_ns = clock_now_ns() - started_ns;
  *collect = (struct stats_collect){ .document = document, .held = held };
}

static void copy_address(union stats_address *to, const struct sockaddr_storage *from) {
  memcpy(to, from, sizeof *to);
}

static void take_flow(struct stats_document *document, struct connection *connection,
                      unsigned index) {
  struct lane_snapshot seen;
  connection_snapshot_lane(connection, index, &seen); /* also updates the totals of the NIC */
  if (seen.link.epoch == 0) {
    return; /* never opened */
  }
  struct stats_flow *flow = stats_document_add_flow(document);
  if (!flow) {
    return;
  }
  flow->connection = (uint32_t)document->connection_count - 1;
  flow->index = index;
  flow->epoch = seen.link.epoch;
  flow->state = seen.link.state;
  memcpy(flow->nic, seen.nic, sizeof flow->nic);
  copy_address(&flow->local, &seen.transport.local);
  copy_address(&flow->remote, &seen.transport.remote);
  uint64_t *values = flow->values;
  values[STATS_FLOW_SENT] = seen.link.bytes_sent;
  values[STATS_FLOW_ACKED] = seen.link.bytes_acked;
  values[STATS_FLOW_RECEIVED] = seen.link.bytes_received;
  values[STATS_FLOW_WIRE_SENT] = seen.transport.bytes_written;
  values[STATS_FLOW_WIRE_RECEIVED] = seen.transport.bytes_read;
  values[STATS_FLOW_RETRANSMITS] = seen.transport.retransmits;
  values[STATS_FLOW_LOSSES] = seen.link.losses;
  values[STATS_FLOW_SLOW_RECONNECTS] = seen.link.slow_reconnects;
  values[STATS_FLOW_STALLS] = seen.link.stalls_cut;
  values[STATS_FLOW_REQUEUED] = seen.link.requeued;
  values[STATS_FLOW_UP] = seen.link.state == LINK_LANE_UP;
  values[STATS_FLOW_OUTSTANDING] = seen.link.outstanding_bytes;
  values[STATS_FLOW_RATE] = seen.link.ps_per_byte ? PS_PER_S / seen.link.ps_per_byte : 0;
  values[STATS_FLOW_RTT] = seen.transport.rtt_us;
  values[STATS_FLOW_RTT_MIN] = seen.transport.rtt_min_us;
  values[STATS_FLOW_DELIVERY] = seen.transport.delivery_rate_bytes;
  values[STATS_FLOW_WINDOW] = seen.transport.congestion_window_bytes;
  values[STATS_FLOW_LIMIT] =
      seen.link.state == LINK_LANE_UP ? seen.link.limit : POLICY_LIMIT_UNKNOWN;
}

static uint64_t since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* What came of compression, and what its engine has decided. */
static void take_compression(uint64_t *values, const struct link_coding *coding,
                             const struct compression *decision) {
  values[STATS_CONNECTION_CODED] = coding->coded;
  values[STATS_CONNECTION_RAW] = coding->raw;
  values[STATS_CONNECTION_UNTRIED] = coding->untried;
  values[STATS_CONNECTION_BEFORE] = coding->bytes_before;
  values[STATS_CONNECTION_AFTER] = coding->bytes_after;
  values[STATS_CONNECTION_CODEC_TIME] = coding->took_ns;
  values[STATS_CONNECTION_COMPRESSES] = decision->is_on;
  values[STATS_CONNECTION_COMPRESSION_TURNS] = decision->turns;
}

static void take_connection(struct stats_document *document, struct engine *engine,
                            struct connection *connection, uint64_t now_ns) {
  struct connection_snapshot seen;
  connection_snapshot(connection, now_ns, &seen);
  struct stats_connection *added = stats_document_add_connection(document);
  if (!added) {
    return;
  }
  added->number = seen.number;
  added->is_sender = seen.is_sender;
  added->is_detached = seen.is_detached;
  added->error = seen.error;
  memcpy(added->peer, seen.peer, sizeof added->peer);
  memcpy(added->nic, seen.nic, sizeof added->nic);
  struct stall_facts facts;
  stall_find_facts(&seen, now_ns, &facts);
  added->stall = stall_classify(&facts);
  added->request = seen.oldest.number;
  added->request_bytes = seen.oldest.bytes;
  added->request_moved = seen.oldest.moved;
  uint64_t *values = added->values;
  values[STATS_CONNECTION_POSTED] = seen.posted;
  values[STATS_CONNECTION_COMPLETED] = seen.completed;
  values[STATS_CONNECTION_BYTES] = seen.bytes;
  values[STATS_CONNECTION_CREDIT_WAITS] = seen.link.stalls;
  values[STATS_CONNECTION_REQUEUED] = seen.link.chunks_requeued;
  values[STATS_CONNECTION_LOSSES] = seen.link.losses;
  values[STATS_CONNECTION_SLOW_RECONNECTS] = seen.link.slow_reconnects;
  values[STATS_CONNECTION_STALLS] = seen.link.stalls_cut;
  values[STATS_CONNECTION_CHECKSUM_ERRORS] = seen.checksum_errors;
  values[STATS_CONNECTION_PINGS] = seen.link.pings_sent;
  values[STATS_CONNECTION_TAIL_PINGS] = seen.link.tail_pings;
  values[STATS_CONNECTION_REPEATS] = seen.link.repeats;
  values[STATS_CONNECTION_REPEATED_BYTES] = seen.link.repeated_bytes;
  values[STATS_CONNECTION_REPEATS_SAVED] = seen.link.repeats_saved_ns;
  values[STATS_CONNECTION_DUPLICATES] = seen.link.duplicates;
  values[STATS_CONNECTION_FLOWS] = seen.link.lanes_wanted;
  values[STATS_CONNECTION_FLOWS_UP] = seen.link.lanes_up;
  values[STATS_CONNECTION_AGE] = since(seen.created_ns, now_ns);
  values[STATS_CONNECTION_HEARD] = facts.silent_ns;
  values[STATS_CONNECTION_WAITING] = facts.is_waiting ? facts.stalled_ns : 0;
  values[STATS_CONNECTION_ENGINE] = engine_shard(engine);
  values[STATS_CONNECTION_BY_THREAD] = !engine_is_polled(engine);
  take_compression(values, &seen.link.coding, &engine_policy_shared(engine)->compression);
  for (unsigned i = 0; i < seen.lanes; i++) {
    take_flow(document, connection, i);
  }
}

static void take_some(struct engine *engine, void *argument) {
  struct stats_collect *collect = argument;
  uint64_t now_ns = clock_now_ns();
  unsigned flows = 0;
  struct connection *connection = NULL;
  while (flows < STATS_FLOWS_PER_STEP && (connection = connection_next(engine, connection))) {
    if (connection_number(connection) > collect->after) {
      take_connection(collect->document, engine, connection, now_ns);
      collect->after = connection_number(connection);
      flows += connection_lane_count(connection);
    }
  }
  collect->is_engine_done = !connection;
}

/* After the connections, so that the totals include all of the above. */
static void take_nics(struct stats_document *document) {
  const struct nic_totals *totals;
  while ((totals = nic_totals_at((unsigned)document->nic_count))) {
    struct stats_nic *nic = &document->nics[document->nic_count++];
    memcpy(nic->name, totals->nic, sizeof nic->name);
    for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
      nic->values[i] = atomic_load_explicit(&totals->counts[i], memory_order_relaxed);
    }
  }
}

int stats_collect_step(struct stats_collect *collect) {
  int error = engine_try_visit(collect->held, collect->engine, take_some, collect);
  if (error == -ENOENT) {
    take_nics(collect->document);
    return 0;
  }
  if (!error && collect->is_engine_done) {
    collect->engine++;
    collect->after = 0;
  }
  return error ? error : -EINPROGRESS;
}
