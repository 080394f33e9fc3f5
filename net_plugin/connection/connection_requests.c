/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. Request slots: NCCL's progress thread fills them, the engine completes them. */
#include <pthread.h>

#include "common/ablation.h"
#include "common/clock.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

/* True: the post is kept back, and more may follow. */
static bool coalesce_post(struct connection *connection, size_t bytes) {
  if (bytes > COALESCE_MESSAGE_BYTES_MAX || ablation_off(ABLATION_COALESCE) ||
      (!connection->coalesced && clock_now_ns() - connection->submitted_ns >= COALESCE_GAP_NS)) {
    return false;
  }
  connection->coalesced++;
  connection->coalesced_bytes += bytes;
  return connection->coalesced < COALESCE_POSTS_MAX &&
         connection->coalesced_bytes < COALESCE_BYTES_MAX;
}

static void submit_posts(struct connection *connection) {
  connection->coalesced = 0;
  connection->coalesced_bytes = 0;
  engine_submit(connection->engine, &connection->task);
  connection->submitted_ns = clock_now_ns();
}

bool connection_coalesces(struct connection *connection) {
  if (!connection->coalesced) {
    return false;
  }
  uint64_t posted = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  if (connection->polled_posts == posted) {
    submit_posts(connection);
  }
  connection->polled_posts = posted;
  return true;
}

struct request *connection_post(struct connection *connection, void *data, size_t bytes,
                                const void *registration, const struct lane_memory *memory) {
  uint64_t number = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  struct request *request = &connection->requests[number % CONNECTION_REQUESTS];
  if (request->is_in_use) {
    return NULL;
  }
  request->is_in_use = true;
  request->number = number;
  request->data = data;
  request->registration = registration;
  request->memory = memory;
  request->bytes = bytes;
  atomic_store_explicit(&connection->driver, (uintptr_t)pthread_self(), memory_order_relaxed);
  atomic_store_explicit(&connection->posted, number + 1, memory_order_release);
  /* Receives are posted several in a row, then polled: the first poll submits them together, so
   * that one WINDOW frame announces all of them. */
  if (!connection->is_sender) {
    connection->has_untaken = true;
  } else if (connection->remote_keys) {
    engine_submit(connection->engine, &connection->task);
  } else if (!coalesce_post(connection, bytes)) {
    submit_posts(connection);
  }
  return request;
}

bool connection_is_done(const struct request *request) {
  return atomic_load_explicit(&request->connection->completed, memory_order_acquire) >
         request->number;
}

void connection_release(struct request *request) {
  request->is_in_use = false;
}

bool connection_is_sender(const struct connection *connection) {
  return connection->is_sender;
}

void connection_set_owner(struct connection *connection, const void *owner) {
  connection->owner = owner;
}

const void *connection_owner(const struct connection *connection) {
  return connection->owner;
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
