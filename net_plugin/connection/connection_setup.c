/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. What set-up tells a connection of its lanes, and asks. */
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"

/* Its peer may have used it already. */
static void path_drop(struct connection *connection, const struct lane_path *path) {
  int error = endpoint_stop(path->endpoint);
  lane_path_drop(path);
  if (error) {
    link_fail(connection->link, error);
  }
}

/* Of no use any more, or overtaken by a later dial, or able to write where the user has left. */
static bool is_too_late(const struct connection *connection, unsigned index, uint32_t epoch,
                        const struct lane_path *path) {
  const struct lane *lane = connection->slots[index].lane;
  bool is_unsafe = path->endpoint && connection->is_released && !connection->is_sender;
  return connection->is_closing_lanes || is_unsafe || (lane && lane->epoch >= epoch);
}

void connection_lane_opened(struct connection *connection, unsigned index, uint32_t epoch,
                            const struct lane_path *path) {
  engine_assert_locked(connection->engine);
  uint64_t now_ns = clock_now_ns();
  struct lane_slot *slot = &connection->slots[index];
  struct lane *lane = NULL;
  if (is_too_late(connection, index, epoch, path)) {
    path_drop(connection, path);
    return;
  }
  connection_drop_lane(connection, index);
  int error = lane_open(path, connection->link, index, epoch, connection->is_sender, &lane);
  if (error) {
    path_drop(connection, path);
  } else {
    error = engine_watch(connection->engine, &slot->source, lane->fd, EPOLLIN);
  }
  /* The peer has it, whatever comes here: it was up, and is lost. */
  link_lane_up(connection->link, index, epoch, now_ns);
  if (error) {
    LOG_WARN("cannot use a new flow to %s: %s", connection->config.peer, strerror(-error));
    int fini_error = lane ? lane->ops->fini(lane) : 0;
    if (fini_error) {
      link_fail(connection->link, fini_error);
    }
    link_lane_lost(connection->link, index, epoch, now_ns);
  } else {
    slot->lane = lane;
    connection_lane_starting(connection, index);
    connection->opened |= lane_bit(index);
    engine_count_lanes(connection->engine, path->endpoint != NULL, 1);
    if (path->endpoint) {
      connection->rdma_lanes |= lane_bit(index);
      link_lane_is_rdma(connection->link, index);
    }
    connection_update_lane(connection, index);
  }
  connection_pump(connection, now_ns);
}

unsigned connection_remote_keys(const struct connection *connection) {
  return connection->config.link.remote_keys;
}

uint8_t connection_key_index(struct connection *connection, struct lane_domain domain) {
  engine_assert_locked(connection->engine);
  for (unsigned i = 0; i < WIRE_REMOTE_KEYS; i++) {
    if (connection->keys[i].id == domain.id) {
      return (uint8_t)i;
    }
  }
  /* In turn: what the peer knows of the device that had the key before is long out of use. */
  unsigned index = connection->next_key++ % WIRE_REMOTE_KEYS;
  connection->keys[index] = domain;
  return (uint8_t)index;
}

unsigned connection_open_lanes(const struct connection *connection) {
  engine_assert_locked(connection->engine);
  return (unsigned)__builtin_popcountll(connection->opened);
}

bool connection_is_peer_closed(const struct connection *connection) {
  engine_assert_locked(connection->engine);
  return link_is_peer_closed(connection->link);
}

bool connection_lane_is_flow(const struct connection *connection, unsigned lane) {
  engine_assert_locked(connection->engine);
  return (connection->opened & ~connection->rdma_lanes & lane_bit(lane)) != 0;
}

void connection_lane_outdated(struct connection *connection, unsigned lane) {
  uint64_t now_ns = clock_now_ns();
  link_lane_outdated(connection->link, lane, now_ns);
  connection_pump(connection, now_ns);
}

void connection_lane_failed(struct connection *connection, unsigned lane, uint32_t epoch) {
  uint64_t now_ns = clock_now_ns();
  link_lane_lost(connection->link, lane, epoch, now_ns);
  connection_pump(connection, now_ns);
}

void connection_lane_refused(struct connection *connection, unsigned lane, uint32_t epoch) {
  uint64_t now_ns = clock_now_ns();
  link_lane_refused(connection->link, lane, epoch, now_ns);
  connection_pump(connection, now_ns);
}

void connection_fail(struct connection *connection, int error) {
  link_fail(connection->link, error);
  connection_pump(connection, clock_now_ns());
}

bool connection_has_failed(const struct connection *connection) {
  engine_assert_locked(connection->engine);
  return link_status(connection->link) != 0;
}

bool connection_lane_fenced(struct connection *connection, unsigned lane, uint32_t new_epoch) {
  engine_assert_locked(connection->engine);
  if (connection->is_sender) {
    return false;
  }
  if (!link_lane_fence(connection->link, lane, new_epoch, clock_now_ns())) {
    return false;
  }
  connection_drop_lane(connection, lane);
  return !link_status(connection->link);
}

bool connection_takes_codec(const struct connection *connection, unsigned lane) {
  return connection->config.link.policy.compress != POLICY_COMPRESS_OFF &&
         !connection->slots[lane].has_no_coding;
}

void connection_lane_is_raw(struct connection *connection, unsigned lane) {
  link_lane_is_raw(connection->link, lane);
}
