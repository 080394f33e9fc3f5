/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. The lanes of a connection: what the epoll set reports of them, and their end.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

static void drop_lane(struct connection *connection, unsigned index, bool has_left) {
  engine_assert_locked(connection->engine);
  struct lane_slot *slot = &connection->slots[index];
  connection->ready.writable &= ~lane_bit(index);
  connection->ready.taken &= ~lane_bit(index);
  if (slot->lane) {
    connection_lane_ending(connection, index);
    engine_count_lanes(connection->engine, connection_is_rdma(connection, index), -1);
    engine_unwatch(connection->engine, &slot->source);
    int error = slot->lane->ops->fini(slot->lane);
    slot->lane = NULL;
    connection->opened &= ~lane_bit(index);
    connection->rdma_lanes &= ~lane_bit(index);
    if (connection->config.setup_data) {
      connection->config.setup->lane_closed(connection, index, has_left);
    }
    if (error) {
      link_fail(connection->link, error); /* so it does not send CLOSED */
    }
  }
}

void connection_drop_lane(struct connection *connection, unsigned index) {
  drop_lane(connection, index, false);
}

void connection_lane_broke(struct connection *connection, unsigned index, int error,
                           uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct lane *lane = connection->slots[index].lane;
  uint32_t epoch = lane->epoch;
  drop_lane(connection, index, error == -EPIPE);
  if (error == -EPIPE) { /* the peer leaves, its BYE is near */
    link_lane_left(connection->link, index, epoch, now_ns);
    return;
  }
  if (error == -EBADMSG) {
    connection->checksum_errors++;
    LOG_WARN_EVERY(DAMAGE_INTERVAL_NS,
                   "flow %u to %s on %s brought damaged bytes; they are sent again. Something "
                   "between the hosts changes data: look at NICs, cables and memory",
                   index, connection->config.peer, connection->config.nic);
  } else if (!connection->is_released) {
    LOG_INFO("flow %u to %s on %s lost: %s; its data moves to the others, the flow reconnects",
             index, connection->config.peer, connection->config.nic, strerror(-error));
  }
  link_lane_lost(connection->link, index, epoch, now_ns);
}

void connection_lane_takes_nothing(struct connection *connection, unsigned index, int error,
                                   uint64_t now_ns) {
  struct lane *lane = connection->slots[index].lane;
  size_t got = 1;
  int end = 0;
  for (unsigned i = 0; i < LAST_READS && got > 0 && !end && !link_status(connection->link); i++) {
    end = lane->ops->read(lane, now_ns, &got);
  }
  connection_lane_broke(connection, index, error, now_ns);
}

bool connection_is_quiet(const struct connection *connection) {
  engine_assert_locked(connection->engine);
  if (!connection_is_all_rdma(connection) || connection_blocked(connection)) {
    return false;
  }
  for (uint64_t lanes = connection->rdma_lanes; lanes; lanes &= lanes - 1) {
    struct lane *lane = connection->slots[__builtin_ctzll(lanes)].lane;
    if (lane->ops->has_news(lane)) {
      return false;
    }
  }
  return true;
}

void connection_look_for_host(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  for (uint64_t lanes = connection->opened; lanes; lanes &= lanes - 1) {
    const struct lane *lane = connection->slots[__builtin_ctzll(lanes)].lane;
    uint64_t answered_ns = lane->ops->answered_ns(lane, now_ns);
    if (answered_ns) {
      link_host_answered(connection->link, answered_ns, now_ns);
    }
  }
}

void connection_update_lane(struct connection *connection, unsigned index) {
  engine_assert_locked(connection->engine);
  struct lane_slot *slot = &connection->slots[index];
  /* A link that has failed reads no more. */
  uint32_t events = link_status(connection->link) ? 0 : (uint32_t)EPOLLIN;
  events |= slot->lane->has_unwritten ? (uint32_t)EPOLLOUT : 0;
  engine_rewatch(connection->engine, &slot->source, events);
  uint64_t bit = lane_bit(index);
  struct link_ready *ready = &connection->ready;
  ready->writable = (ready->writable & ~bit) | (slot->lane->can_write ? bit : 0);
  ready->taken = (ready->taken & ~bit) | (lane_has_taken(slot->lane) ? bit : 0);
}

void connection_publish(struct connection *connection) {
  engine_assert_locked(connection->engine);
  for (uint64_t bytes; link_next_completion(connection->link, &bytes);) {
    connection->requests[connection->published % CONNECTION_REQUESTS].bytes = (size_t)bytes;
    connection->published++;
    atomic_store_explicit(&connection->completed, connection->published, memory_order_release);
  }
  int none = 0, status = link_status(connection->link);
  if (status && atomic_compare_exchange_strong(&connection->error, &none, status)) {
    connection_note_failure(connection); /* the first error stays */
  }
}

/* A sender that spreads messages goes round the same lanes again and again, so a receiver polls the
 * lane on which a frame began the last time after one had come on this lane. Ping-pong between two
 * emulated hosts, 4 flows, 64 and 256 KiB: 29.7 and 52.7 us a message, 40.1 and 65.3 where the
 * lane that brought the last bytes is polled first; one flow 30.0 and 53.3 (stratus perf --test
 * latency, medians of 5 rounds). */
static void note_arrival(struct connection *connection, unsigned index, bool was_mid_frame) {
  if (connection->last_lane >= 0 && !was_mid_frame) {
    connection->followers[connection->last_lane] = (uint8_t)index;
  }
  bool stays = connection->is_sender || connection->slots[index].lane->is_mid_frame;
  connection->last_lane = (int)index;
  connection->hot_lane = stays ? (int)index : connection->followers[index];
  connection->idle_polls = 0;
}

void connection_serve_lane(struct connection *connection, unsigned index, uint32_t events,
                           uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct lane *lane = connection->slots[index].lane;
  size_t got = 0;
  bool was_mid_frame = lane->is_mid_frame, could_write = lane->can_write,
       had_taken = lane_has_taken(lane);
  int error = 0;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    error = lane->ops->read(lane, now_ns, &got);
  }
  if (got) {
    engine_note_activity(now_ns);
    note_arrival(connection, index, was_mid_frame);
    connection_publish(connection); /* the other lanes of this round may have much to read first */
  }
  bool was_read = error == 0;
  if (was_read && (events & EPOLLOUT)) {
    error = lane->ops->resume(lane);
  } else if (!error && !got && lane->can_write == could_write &&
             lane_has_taken(lane) == had_taken && !connection->is_closing_lanes) {
    return; /* nothing there, nothing changed */
  }
  engine_defer(connection->engine, &connection->arrived);
  if (connection->is_closing_lanes) {
    if (lane->ops->is_closed(lane)) {
      connection_drop_lane(connection, index); /* the end of its stream stays readable */
    }
    return;
  }
  if (error && !link_status(connection->link)) {
    (was_read ? connection_lane_takes_nothing : connection_lane_broke)(connection, index, error,
                                                                       now_ns);
  } else {
    connection_update_lane(connection, index); /* a failed link may have a last word for it */
  }
}

void connection_lane_ready(struct engine_source *source, uint32_t events) {
  struct lane_slot *slot = (struct lane_slot *)source;
  slot->lane->is_polled = false;
  connection_serve_lane(slot->connection, slot->lane->index, events, clock_now_ns());
}

/* ---- memory for compressed chunks: mapped lane by lane when a chunk needs it, so that a
 * connection on which nothing is compressed, as on most, takes no address space for it. Where
 * memory is not to be had a lane does without; the connection never ends for it ---- */

static void unmap_coding(struct lane_slot *slot) {
  if (slot->coding) {
    munmap(slot->coding, slot->coding_bytes);
  }
  slot->coding = NULL;
  slot->coding_bytes = 0;
}

/* As much as this chunk needs, not the longest possible: of 64 lanes 9 MiB with chunks of 128 KiB,
 * which is usual, and 33 with 512 KiB. */
void *connection_coding_memory(void *owner, unsigned lane, size_t bytes) {
  struct connection *connection = owner;
  struct lane_slot *slot = &connection->slots[lane];
  if (slot->coding_bytes < bytes && !slot->has_no_coding) {
    size_t grown = (bytes + CODING_GRAIN_BYTES - 1) & ~(CODING_GRAIN_BYTES - 1);
    unmap_coding(slot);
    void *memory = mmap(NULL, grown, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    slot->has_no_coding = memory == MAP_FAILED;
    slot->coding = slot->has_no_coding ? NULL : memory;
    slot->coding_bytes = slot->has_no_coding ? 0 : grown;
  }
  if (!slot->coding) {
    LOG_WARN_EVERY(
        CODING_WARN_INTERVAL_NS,
        "no memory to compress, expand or copy chunks of flow %u to %s on %s: they go as they "
        "are. Raise ulimit -v or vm.overcommit_ratio, or set STRATUS_COMPRESS=off",
        lane, connection->config.peer, connection->config.nic);
  }
  return slot->coding;
}

void connection_free_coding(struct connection *connection) {
  for (unsigned i = 0; i < connection->lanes; i++) {
    unmap_coding(&connection->slots[i]);
  }
}
