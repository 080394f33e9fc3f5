/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_snapshot.h. Also the counters of NICs (nic_totals.h): each snapshot adds what is
 * new since the last one; one is taken whenever statistics are read, a lane closes, or the
 * connection ends. */
#include "net_plugin/connection/connection_snapshot.h"

#include <string.h>

#include "common/log.h"
#include "net_plugin/connection/connection_state.h"

static void count_up(struct nic_totals *totals, uint64_t added[NIC_COUNTER_COUNT],
                     enum nic_counter counter, uint64_t value) {
  if (value > added[counter]) {
    atomic_fetch_add_explicit(&totals->counts[counter], value - added[counter],
                              memory_order_relaxed);
    added[counter] = value;
  }
}

static void count_lane(struct lane_slot *slot, const struct lane_snapshot *seen) {
  count_up(slot->totals, slot->added, NIC_BYTES_SENT, seen->link.counts.bytes_sent);
  count_up(slot->totals, slot->added, NIC_BYTES_RECEIVED, seen->link.counts.bytes_received);
  count_up(slot->totals, slot->added, NIC_WIRE_BYTES_SENT, seen->transport.bytes_written);
  count_up(slot->totals, slot->added, NIC_WIRE_BYTES_RECEIVED, seen->transport.bytes_read);
  count_up(slot->totals, slot->added, NIC_RETRANSMITS, seen->transport.retransmits);
  count_up(slot->totals, slot->added, NIC_LOSSES, seen->link.counts.losses);
  count_up(slot->totals, slot->added, NIC_SLOW_RECONNECTS, seen->link.counts.slow_reconnects);
  count_up(slot->totals, slot->added, NIC_STALLS_CUT, seen->link.counts.stalls_cut);
  count_up(slot->totals, slot->added, NIC_REQUEUED, seen->link.counts.requeued);
}

static void count_connection(struct connection *connection,
                             const struct connection_snapshot *seen) {
  struct nic_totals *totals = connection->totals;
  uint64_t *added = connection->added;
  count_up(totals, added, seen->is_sender ? NIC_MESSAGES_SENT : NIC_MESSAGES_RECEIVED,
           seen->completed);
  count_up(totals, added, NIC_CREDIT_WAITS, seen->link.counts.stalls);
  count_up(totals, added, NIC_CHECKSUM_ERRORS, seen->checksum_errors);
  const struct link_coding *coding = &seen->link.counts.coding;
  count_up(totals, added, NIC_CODED_BEFORE, seen->is_sender ? coding->bytes_before : 0);
  count_up(totals, added, NIC_CODED_AFTER, seen->is_sender ? coding->bytes_after : 0);
  count_up(totals, added, NIC_CODEC_NS, coding->took_ns);
  count_up(totals, added, NIC_CONNECTIONS, 1);
  count_up(totals, added, NIC_FAILED, seen->error != 0);
}

void connection_snapshot_lane(struct connection *connection, unsigned index,
                              struct lane_snapshot *snapshot) {
  struct lane_slot *slot = &connection->slots[index];
  memset(snapshot, 0, sizeof *snapshot);
  snapshot->index = index;
  memcpy(snapshot->nic, slot->totals->nic, sizeof snapshot->nic);
  link_view_lane(connection->link, index, &snapshot->link);
  if (slot->lane) {
    slot->lane->ops->stats(slot->lane, &snapshot->transport);
  }
  snapshot->transport.bytes_written += slot->past.bytes_written;
  snapshot->transport.bytes_read += slot->past.bytes_read;
  snapshot->transport.retransmits += slot->past.retransmits;
  count_lane(slot, snapshot);
}

void connection_lane_ending(struct connection *connection, unsigned index) {
  engine_assert_locked(connection->engine);
  struct lane_snapshot last;
  connection_snapshot_lane(connection, index, &last);
  struct lane_slot *slot = &connection->slots[index];
  slot->past.bytes_written = last.transport.bytes_written;
  slot->past.bytes_read = last.transport.bytes_read;
  slot->past.retransmits = last.transport.retransmits;
}

void connection_lane_starting(struct connection *connection, unsigned index) {
  engine_assert_locked(connection->engine);
  struct lane_slot *slot = &connection->slots[index];
  struct lane_stats stats;
  slot->lane->ops->stats(slot->lane, &stats);
  struct nic_totals *totals = nic_totals_by_address(&stats.local);
  slot->totals = totals ? totals : connection->totals;
}

/* The two times may come from different clock reads: never negative. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

void connection_snapshot(struct connection *connection, uint64_t now_ns,
                         struct connection_snapshot *snapshot) {
  engine_assert_locked(connection->engine);
  memset(snapshot, 0, sizeof *snapshot);
  snapshot->number = connection->number;
  snapshot->is_sender = connection->is_sender;
  snapshot->is_detached = connection->is_detached;
  memcpy(snapshot->peer, connection->config.peer, sizeof snapshot->peer);
  memcpy(snapshot->nic, connection->config.nic, sizeof snapshot->nic);
  snapshot->created_ns = connection->created_ns;
  snapshot->error = atomic_load(&connection->error);
  snapshot->lanes = connection->lanes;
  snapshot->posted = atomic_load_explicit(&connection->posted, memory_order_acquire);
  snapshot->completed = connection->published;
  snapshot->checksum_errors = connection->checksum_errors;
  link_view(connection->link, &snapshot->link);
  for (unsigned i = 0; i < connection->lanes; i++) {
    struct link_lane_view lane;
    link_view_lane(connection->link, i, &lane);
    snapshot->bytes += connection->is_sender ? lane.bytes_acked : lane.counts.bytes_received;
    snapshot->limited[lane.limit] += lane.state == LINK_LANE_UP;
  }
  uint64_t heard_ns = snapshot->link.heard_ns ? snapshot->link.heard_ns : connection->created_ns;
  snapshot->silent_ns = since(heard_ns, now_ns);
  struct link_message_view *oldest = &snapshot->oldest;
  snapshot->is_waiting =
      link_view_oldest(connection->link, oldest) && !snapshot->is_detached && !snapshot->error;
  snapshot->stalled_ns = snapshot->is_waiting ? since(oldest->still_ns, now_ns) : 0;
  snapshot->stalled_losses =
      connection->watch.next_ns ? snapshot->link.losses - connection->watch.losses : 0;
  count_connection(connection, snapshot);
}

uint64_t connection_number(const struct connection *connection) {
  return connection->number;
}

void connection_report_end(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct connection_snapshot last;
  struct lane_snapshot lane;
  connection_snapshot(connection, now_ns, &last);
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection_snapshot_lane(connection, i, &lane);
  }
  bool is_uneventful = !last.link.losses && !last.checksum_errors && !last.error;
  LOG_AT(
      is_uneventful ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO,
      "connection %llu %s %s on %s closed after %.1f s: %llu messages, %.3f GB, %llu flow failures "
      "(%llu stalled, %llu slow), %llu chunks failed over, %llu checksum errors",
      (unsigned long long)last.number, last.is_sender ? "to" : "from", last.peer, last.nic,
      (double)(now_ns - last.created_ns) * 1e-9, (unsigned long long)last.completed,
      (double)last.bytes * 1e-9, (unsigned long long)last.link.losses,
      (unsigned long long)last.link.stalls_cut, (unsigned long long)last.link.slow_reconnects,
      (unsigned long long)last.link.chunks_requeued, (unsigned long long)last.checksum_errors);
}
