/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. How the user's memory becomes the user's again. NCCL deregisters a buffer,
 * frees it, and closes the connection, in this order, also when it aborts and requests are in
 * flight (sendProxyFree, recvProxyFree in src/transport/net.cc at v2.30.7). All of it happens under
 * the engine lock, so that no thread is inside a system call with the memory when it is done. */
#include <errno.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

/* What has not been taken needs its memory for certain. Nothing completes while the lock is held,
 * so no slot is reused meanwhile. */
static bool needs_memory(const struct connection *connection, const struct request *request) {
  return request->number < connection->taken ? link_needs_memory(connection->link, request->number)
                                             : request->bytes > 0;
}

/* The oldest request that was posted with it and needs it; NULL: none. */
static const struct request *find_user(const struct connection *connection,
                                       const void *registration) {
  uint64_t posted = atomic_load_explicit(&connection->posted, memory_order_acquire);
  for (uint64_t number = connection->published; number < posted; number++) {
    const struct request *request = &connection->requests[number % CONNECTION_REQUESTS];
    if (request->registration == registration && needs_memory(connection, request)) {
      return request;
    }
  }
  return NULL;
}

/* No device reads or writes the memory any more. A link that has failed no longer knows which lanes
 * could. */
static void stop_devices(struct connection *connection, uint64_t now_ns) {
  connection_carry_out_orders(connection, now_ns);
  for (unsigned i = 0; i < connection->lanes && link_status(connection->link); i++) {
    if (connection_is_rdma(connection, i)) {
      connection_drop_lane(connection, i);
    }
  }
}

/* From here on the link and its lanes know nothing of the user's memory. */
static void release_memory(struct connection *connection, uint64_t now_ns) {
  if (!connection->is_released) {
    connection->is_released = true;
    bool is_short = connection->config.link.timeout_ns < LINGER_NS;
    connection->linger_ns = now_ns + (is_short ? connection->config.link.timeout_ns : LINGER_NS);
    link_user_detached(connection->link, now_ns);
    stop_devices(connection, now_ns);
  }
}

void connection_withdraw(struct connection *connection, const void *registration) {
  if (atomic_load_explicit(&connection->completed, memory_order_acquire) ==
      atomic_load_explicit(&connection->posted, memory_order_acquire)) {
    return;
  }
  engine_lock(connection->engine);
  const struct request *request =
      connection->is_released ? NULL : find_user(connection, registration);
  if (request) {
    uint64_t now_ns = clock_now_ns();
    int none = 0;
    LOG_INFO("connection %s %s on %s ends: the memory of request %llu, %zu bytes, was deregistered "
             "before it was complete, as when NCCL aborts",
             connection->is_sender ? "to" : "from", connection->config.peer, connection->config.nic,
             (unsigned long long)request->number, request->bytes);
    release_memory(connection, now_ns);
    atomic_compare_exchange_strong(&connection->error, &none, -ECANCELED);
    connection_pump(connection, now_ns);
  }
  engine_unlock(connection->engine);
}

static void detach(struct connection *connection, uint64_t now_ns) {
  release_memory(connection, now_ns);
  connection->is_detached = true;
  connection_pump(connection, now_ns);
}

void connection_detach(struct connection *connection) {
  if (!connection) {
    return;
  }
  struct engine *engine = connection->engine;
  engine_lock(engine);
  connection->is_running = true; /* its own task, if that is queued, has nothing to do */
  engine_run_tasks(engine);      /* it must not run when the connection is gone */
  connection->is_running = false;
  engine_leave_to_thread(engine); /* for the close: NCCL does not poll for it */
  detach(connection, clock_now_ns());
  engine_unlock(engine);
}

void connection_detach_all(struct engine *engine) {
  engine_assert_locked(engine);
  engine_run_tasks(engine);
  struct connection *next = connection_next(engine, NULL);
  while (next) {
    struct connection *connection = next;
    next = connection_next(engine, connection); /* this one may be freed */
    detach(connection, clock_now_ns());
  }
}
