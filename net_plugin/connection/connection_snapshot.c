/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_snapshot.h. Also the counters of NICs (nic_totals.h): each snapshot adds what is
 * new since the last one; one is taken whenever statistics are read, a lane closes, or the
 * connection ends. */
#include "net_plugin/connection/connection_snapshot.h"

#include <string.h>

#include "net_plugin/connection/connection_state.h"
#include "net_plugin/engine/observer.h"

static void count_up(struct nic_totals *totals, uint64_t added[NIC_COUNTER_COUNT],
                     enum nic_counter counter, uint64_t value) {
  if (value > added[counter]) {
    atomic_fetch_add_explicit(&totals->counts[counter], value - added[counter],
                              memory_order_relaxed);
    added[counter] = value;
  }
}

static void count_lane(struct lane_slot *slot, const struct lane_snapshot *seen) {
  count_up(slot->totals, slot->added, NIC_BYTES_SENT, seen->link.bytes_sent);
  count_up(slot->totals, slot->added, NIC_BYTES_RECEIVED, seen->link.bytes_received);
  count_up(slot->totals, slot->added, NIC_WIRE_BYTES_SENT, seen->transport.bytes_written);
  count_up(slot->totals, slot->added, NIC_WIRE_BYTES_RECEIVED, seen->transport.bytes_read);
  count_up(slot->totals, slot->added, NIC_RETRANSMITS, seen->transport.retransmits);
  count_up(slot->totals, slot->added, NIC_LOSSES, seen->link.losses);
  count_up(slot->totals, slot->added, NIC_SLOW_RECONNECTS, seen->link.slow_reconnects);
  count_up(slot->totals, slot->added, NIC_STALLS_CUT, seen->link.stalls_cut);
  count_up(slot->totals, slot->added, NIC_REQUEUED, seen->link.requeued);
}

static void count_connection(struct connection *connection,
                             const struct connection_snapshot *seen) {
  struct nic_totals *totals = connection->totals;
  uint64_t *added = connection->added;
  count_up(totals, added, seen->is_sender ? NIC_MESSAGES_SENT : NIC_MESSAGES_RECEIVED,
           seen->completed);
  count_up(totals, added, NIC_CREDIT_WAITS, seen->link.stalls);
  count_up(totals, added, NIC_CHECKSUM_ERRORS, seen->checksum_errors);
  const struct link_coding *coding = &seen->link.coding;
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

/* A post that the link has not taken: its window is full of unacknowledged messages. */
static bool snapshot_waiting_post(struct connection *connection, uint64_t posted,
                                  struct link_message_view *oldest) {
  if (connection->taken == posted || connection->is_released) {
    return false;
  }
  *oldest = (struct link_message_view){
    .number = connection->taken,
    .bytes = connection->requests[connection->taken % CONNECTION_REQUESTS].bytes,
  };
  return true;
}

void connection_snapshot(struct connection *connection, uint64_t now_ns,
                         struct connection_snapshot *snapshot) {
  engine_assert_locked(connection->engine);
  memset(snapshot, 0, sizeof *snapshot);
  snapshot->number = connection->number;
  snapshot->is_sender = connection->is_sender;
  snapshot->is_detached = connection->is_detached;
  memcpy(snapshot->peer, connection->peer, sizeof snapshot->peer);
  memcpy(snapshot->nic, connection->nic, sizeof snapshot->nic);
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
    snapshot->bytes += connection->is_sender ? lane.bytes_acked : lane.bytes_received;
    snapshot->limited[lane.limit] += lane.state == LINK_LANE_UP;
  }
  struct link_message_view *oldest = &snapshot->oldest;
  snapshot->has_oldest = link_view_oldest(connection->link, oldest) ||
                         snapshot_waiting_post(connection, snapshot->posted, oldest);
  const struct connection_watch *watch = &connection->watch;
  snapshot->reports = watch->reports;
  snapshot->still_ns = oldest->posted_ns ? oldest->posted_ns : now_ns;
  if (watch->since_ns) {
    bool is_same = oldest->number == watch->number && oldest->moved == watch->moved;
    uint64_t since_ns = is_same ? watch->since_ns : watch->checked_ns;
    snapshot->still_ns = since_ns > oldest->posted_ns ? since_ns : oldest->posted_ns;
    snapshot->still_losses = snapshot->link.losses - watch->losses;
  }
  count_connection(connection, snapshot);
}

uint64_t connection_number(const struct connection *connection) {
  return connection->number;
}

/* ---- the watch: while requests wait, the observer is called each watch_period_ns ---- */

static void watch_again(struct connection *connection, uint64_t now_ns) {
  uint64_t period_ns = engine_observer()->watch_period_ns;
  connection->watch.checked_ns = now_ns;
  if (period_ns) {
    engine_timer_set(connection->engine, &connection->watch.timer, now_ns + period_ns);
  }
}

static void watch_note(struct connection_watch *watch, uint64_t now_ns,
                       const struct link_message_view *oldest, uint64_t losses) {
  watch->losses = losses;
  watch->number = oldest->number;
  watch->moved = oldest->moved;
  watch->since_ns = now_ns;
  watch->reports = 0;
}

static void watch_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct connection *connection = LIST_ENTRY(timer, struct connection, watch.timer);
  struct connection_watch *watch = &connection->watch;
  struct connection_snapshot seen;
  connection_snapshot(connection, now_ns, &seen);
  if (!seen.has_oldest || seen.is_detached || seen.error) {
    watch->since_ns = 0;
    return; /* the next post that waits starts it again */
  }
  if (seen.oldest.number != watch->number || seen.oldest.moved != watch->moved) {
    watch_note(watch, now_ns, &seen.oldest, seen.link.losses);
  } else if (engine_observer()->connection_waits(connection, now_ns)) {
    watch->reports++;
  }
  watch_again(connection, now_ns);
}

void connection_watch_start(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct link_message_view oldest;
  if (engine_observer()->watch_period_ns == 0 || !link_view_oldest(connection->link, &oldest)) {
    return;
  }
  connection->watch.timer.expired = watch_expired;
  struct link_view link;
  link_view(connection->link, &link);
  watch_note(&connection->watch, now_ns, &oldest, link.losses);
  watch_again(connection, now_ns);
}

void connection_report_end(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct connection_snapshot last;
  struct lane_snapshot lane;
  connection_snapshot(connection, now_ns, &last);
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection_snapshot_lane(connection, i, &lane);
  }
  engine_timer_stop(&connection->watch.timer);
  engine_observer()->connection_ending(connection, now_ns);
}
