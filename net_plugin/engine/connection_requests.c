/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. What NCCL's threads see of a connection: requests, errors, inline progress. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/engine/connection_state.h"

/* Of so many polls of a lane that is alone, one looks at everything else, too. */
#define HOT_POLLS 16

struct request *connection_post(struct connection *connection, void *data, size_t bytes) {
  uint64_t number = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  struct request *request = &connection->requests[number % CONNECTION_REQUESTS];
  if (request->is_in_use) {
    return NULL;
  }
  request->is_in_use = true;
  request->number = number;
  request->data = data;
  request->bytes = bytes;
  atomic_store_explicit(&connection->posted, number + 1, memory_order_release);
  engine_submit(connection->engine, &connection->task);
  return request;
}

bool connection_is_done(const struct request *request) {
  return atomic_load_explicit(&request->connection->completed, memory_order_acquire) >
         request->number;
}

void connection_release(struct request *request) {
  request->is_in_use = false;
}

int connection_error(struct connection *connection) {
  int error = atomic_load_explicit(&connection->error, memory_order_acquire);
  if (error && !connection->is_error_reported) {
    connection->is_error_reported = true;
    uint64_t done = atomic_load(&connection->completed), posted = atomic_load(&connection->posted);
    LOG_WARN("connection %s %s on %s failed: %s; %llu of %llu requests done. %s",
             connection->is_sender ? "to" : "from", connection->peer, connection->nic,
             strerror(-error), (unsigned long long)done, (unsigned long long)posted,
             error == -ETIMEDOUT
                 ? "No path works: check that host, its NIC and the network between "
                   "(STRATUS_LINK_TIMEOUT sets how long to try)"
                 : "Look at that host's log first");
  }
  return error;
}

/* While small messages come in, the lane that brought the last one is asked directly: that is one
 * system call per message, where asking the epoll set first makes it two. */
void connection_progress(struct connection *connection) {
  struct engine *engine = connection->engine;
  uint64_t now_ns = clock_now_ns();
  if (!engine_progress_begin(engine, now_ns)) {
    return;
  }
  uint64_t completed = connection->published;
  int hot = connection->hot_lane;
  bool is_alone = false;
  if (hot >= 0 && connection->slots[hot].lane) {
    is_alone = connection->opened == connection_lane_bit((unsigned)hot);
    connection_serve_lane(connection, (unsigned)hot, EPOLLIN, now_ns);
  }
  bool is_turn = !is_alone || connection->blocked || ++connection->hot_polls % HOT_POLLS == 0;
  if (connection->published == completed && is_turn) {
    engine_poll(engine);
  }
  engine_unlock(engine);
}

bool connection_is_sender(const struct connection *connection) {
  return connection->is_sender;
}

unsigned connection_lane_count(const struct connection *connection) {
  return connection->lanes;
}

void connection_view_lane(struct connection *connection, unsigned lane,
                          struct link_lane_view *view) {
  engine_lock(connection->engine);
  link_view_lane(connection->link, lane, view);
  engine_unlock(connection->engine);
}
