/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. Request slots: NCCL's progress thread fills them, the engine completes them.
 * What a thread of NCCL that waits polls, cheapest first:
 *
 *   progress_cq_peek  RDMA only: are all completion queues empty? Then nothing else is done
 *   progress_locked   the hot lane, where the next bytes are likely to be: one system call for a
 *                     small message; each RDMA lane: a read of memory
 *   progress_other    one more TCP lane: the second likeliest, or the next in turn; after some
 *                     polls in vain seldom
 *   engine_poll       the epoll set, every 50 us, and when a deadline has come
 *
 * Messages are published as complete when their lane was read. What else follows from all that was
 * read is done once, afterwards: a WINDOW acknowledges what came on several lanes. */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

/* ---- posts ---- */

/* True: the post is kept back, and more may follow. */
static bool coalesce_post(struct connection *connection, size_t bytes) {
  if (bytes > COALESCE_MESSAGE_BYTES_MAX ||
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

int connection_post(struct connection *connection, void *data, size_t bytes,
                    const void *registration, const struct lane_memory *memory,
                    struct request **result) {
  *result = NULL;
  int error = connection_error(connection);
  if (error) {
    return error;
  }
  uint64_t number = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  struct request *request = &connection->requests[number % CONNECTION_REQUESTS];
  if (request->is_in_use) {
    return 0;
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
  } else if (connection->config.link.remote_keys) {
    engine_submit(connection->engine, &connection->task);
  } else if (!coalesce_post(connection, bytes)) {
    submit_posts(connection);
  }
  *result = request;
  return 0;
}

bool connection_is_done(const struct request *request) {
  return atomic_load_explicit(&request->connection->completed, memory_order_acquire) >
         request->number;
}

/* ---- polls ---- */

/* For a thread that polls. True: posts were kept back to be sent together, and still are, or have
 * just been sent; there is nothing to wait for yet. */
static bool coalesces(struct connection *connection) {
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

/* Writes what the lane did not take before, and reads from it. While the path takes the rest of a
 * frame piece by piece, the lane is not asked for acknowledgements in between: with one frame, what
 * has arrived is read together. */
static void progress_lane(struct connection *connection, unsigned index, uint64_t now_ns) {
  struct lane *lane = connection->slots[index].lane;
  bool is_blocked = !lane_has_taken(lane);
  bool is_moving = is_blocked && lane->is_moving;
  lane->is_polled = true;
  connection_serve_lane(connection, index,
                        (is_moving ? 0 : (uint32_t)EPOLLIN) | (is_blocked ? (uint32_t)EPOLLOUT : 0),
                        now_ns);
}

/* Where queue pairs carry the data, most polls find nothing. True: this one would. */
static bool progress_cq_peek(struct connection *connection) {
  struct engine *engine = connection->engine;
  if (connection->config.link.remote_keys == 0 || connection->has_untaken ||
      ++connection->peeks % PEEKS_PER_POLL == 0 || !engine_is_polled(engine) ||
      !engine_try_lock(engine)) {
    return false;
  }
  bool is_quiet = connection_is_quiet(connection);
  engine_unlock(engine);
  return is_quiet;
}

/* The opened lane after this one, round and round; one is open. */
static unsigned lane_after(const struct connection *connection, unsigned lane) {
  uint64_t after = connection->opened & ~lanes_below(lane + 1);
  return (unsigned)__builtin_ctzll(after ? after : connection->opened);
}

/* The second likeliest lane, which is the last one or the one after it, alternates with the one
 * whose turn it is. */
static void progress_other(struct connection *connection, int hot, uint64_t now_ns) {
  int last = connection->last_lane;
  unsigned other = (unsigned)last;
  if (++connection->other_polls % 2 == 0 || last < 0) {
    other = connection->other_lane = lane_after(connection, connection->other_lane);
  } else if (last == hot) {
    other = lane_after(connection, (unsigned)last);
  }
  if ((int)other != hot && connection->slots[other].lane) {
    progress_lane(connection, other, now_ns);
  }
}

/* The epoll set costs as much as reading a flow, and the kernel's receive path waits for its lock
 * meanwhile. So the lanes are polled first, and the set seldom. */
static void progress_locked(struct connection *connection, uint64_t now_ns) {
  int hot = connection->hot_lane;
  if (hot >= 0 && connection->slots[hot].lane) {
    progress_lane(connection, (unsigned)hot, now_ns);
  }
  for (uint64_t lanes = connection->rdma_lanes; lanes; lanes &= lanes - 1) {
    int index = __builtin_ctzll(lanes);
    if (index != hot && connection->slots[index].lane) {
      progress_lane(connection, (unsigned)index, now_ns);
    }
  }
  connection->idle_polls++;
  bool is_in_turn =
      connection->idle_polls <= OTHER_POLLS || connection->idle_polls % OTHER_POLLS == 0;
  bool is_tcp = (connection->opened & ~connection->rdma_lanes) != 0;
  if (is_in_turn && is_tcp && !connection->arrived.is_queued) {
    progress_other(connection, hot, now_ns);
  }
  /* Also after a success: others have deadlines, too. */
  engine_poll_if_due(connection->engine, connection_is_all_rdma(connection), now_ns);
}

void connection_progress(struct connection *connection) {
  if (coalesces(connection) || progress_cq_peek(connection)) {
    return;
  }
  struct engine *engine = connection->engine;
  uint64_t now_ns = clock_now_ns();
  bool has_untaken = connection->has_untaken;
  connection->has_untaken = false;
  if (engine_progress_begin(engine, now_ns)) {
    if (has_untaken) {
      connection_pump(connection, now_ns);
    }
    progress_locked(connection, now_ns);
    engine_unlock(engine);
  } else if (has_untaken) {
    engine_submit(engine, &connection->task); /* the thread does not know of them */
  }
  engine_idle_sleep(engine, now_ns);
}

int connection_test(struct request *request, bool *is_done) {
  *is_done = connection_is_done(request);
  if (!*is_done) {
    connection_progress(request->connection);
    *is_done = connection_is_done(request);
  }
  if (!*is_done) {
    return connection_error(request->connection);
  }
  request->is_in_use = false;
  return 0;
}

/* ---- the end ---- */

struct ending {
  uintptr_t driver;
  const char *cause;
};

/* NCCL still uses it, by this thread. */
static bool is_driven_by(const struct connection *connection, uintptr_t driver) {
  return !connection->is_released &&
         atomic_load_explicit(&connection->driver, memory_order_relaxed) == driver;
}

static void end_driven(struct engine *engine, void *argument) {
  const struct ending *ending = argument;
  struct connection *next = connection_next(engine, NULL);
  while (next) {
    struct connection *connection = next;
    next = connection_next(engine, connection); /* who has failed may be freed */
    if (is_driven_by(connection, ending->driver) && !link_status(connection->link)) {
      link_fail_because(connection->link, -ESHUTDOWN, ending->cause);
      connection_pump(connection, clock_now_ns());
    }
  }
}

/* NCCL's progress thread ends with the first error that it gets, and with it all connections that
 * it drives: none of them will move again. Their peers are told now, with the reason, or each of
 * them would wait for a timeout of its own, one after the other around a ring. */
static void report_and_spread(struct connection *connection, int error) {
  char cause[WIRE_MAX_REASON_BYTES + 1];
  connection_report_failure(connection, error, cause);
  struct ending ending = { .driver =
                               atomic_load_explicit(&connection->driver, memory_order_relaxed),
                           .cause = cause };
  if (ending.driver) {
    engine_visit_all(end_driven, &ending);
  }
}

int connection_error(struct connection *connection) {
  int error = atomic_load_explicit(&connection->error, memory_order_acquire);
  if (error && !connection->is_error_reported) {
    connection->is_error_reported = true;
    report_and_spread(connection, error);
  }
  return error;
}

/* ---- for others ---- */

bool connection_is_sender(const struct connection *connection) {
  return connection->is_sender;
}

unsigned connection_lane_count(const struct connection *connection) {
  return connection->lanes;
}
