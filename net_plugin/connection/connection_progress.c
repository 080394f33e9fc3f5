/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. What a thread of NCCL that waits polls, cheapest first:
 *
 *   progress_cq_peek   RDMA only: are all completion queues empty? Then nothing else is done
 *   progress_hot_lane  the lane that brought the last bytes: one system call for a small message
 *   progress_rdma      each RDMA lane: a read of memory
 *   progress_other     one more TCP lane: the hot lane's successor, or the next in turn
 *   engine_poll        the epoll set, in one of 16 polls, and when a deadline has come */
#include <sys/epoll.h>

#include "common/ablation.h"
#include "common/clock.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

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
  if (connection->remote_keys == 0 || connection->has_untaken || ablation_off(ABLATION_CQ_PEEK) ||
      ++connection->peeks % PEEKS_PER_POLL == 0 || !engine_is_polled(engine) ||
      !engine_try_lock(engine)) {
    return false;
  }
  bool is_quiet = connection_is_quiet(connection);
  engine_unlock(engine);
  return is_quiet;
}

/* Where the next small message, or its acknowledgement, is likely to arrive. */
static void progress_hot_lane(struct connection *connection, int hot, uint64_t now_ns) {
  if (hot >= 0 && connection->slots[hot].lane) {
    progress_lane(connection, (unsigned)hot, now_ns);
  }
}

/* Until something completes. */
static void progress_rdma(struct connection *connection, int hot, uint64_t completed,
                          uint64_t now_ns) {
  for (uint64_t lanes = connection->rdma_lanes; lanes && connection->published == completed;
       lanes &= lanes - 1) {
    int index = __builtin_ctzll(lanes);
    if (index != hot && connection->slots[index].lane) {
      progress_lane(connection, (unsigned)index, now_ns);
    }
  }
}

/* The open lane after `index`, round and round; -1: none. */
static int next_lane(const struct connection *connection, unsigned index) {
  uint64_t after = index < 63 ? connection->opened >> (index + 1) << (index + 1) : 0;
  uint64_t lanes = after ? after : connection->opened;
  return lanes ? __builtin_ctzll(lanes) : -1;
}

/* The hot lane's successor, where a sender that spreads messages goes next, alternates with the one
 * whose turn it is. */
static void progress_other(struct connection *connection, int hot, uint64_t now_ns) {
  bool is_successor = ++connection->other_polls % 2 == 0 && connection->hot_lane >= 0;
  unsigned after = is_successor ? (unsigned)connection->hot_lane : connection->other_lane;
  int next = next_lane(connection, after);
  if (next >= 0 && !is_successor) {
    connection->other_lane = (unsigned)next;
  }
  if (next >= 0 && next != hot) {
    progress_lane(connection, (unsigned)next, now_ns);
  }
}

/* The epoll set costs as much as reading a flow, and the kernel's receive path waits for its lock
 * meanwhile. So the lanes are polled first, and the set seldom. */
static void progress_locked(struct connection *connection, uint64_t now_ns) {
  uint64_t completed = connection->published;
  int hot = ablation_off(ABLATION_HOT) ? -1 : connection->hot_lane;
  progress_hot_lane(connection, hot, now_ns);
  progress_rdma(connection, hot, completed, now_ns);
  if (connection->published == completed && (connection->opened & ~connection->rdma_lanes) &&
      !ablation_off(ABLATION_HOT) && !ablation_off(ABLATION_OTHER)) {
    progress_other(connection, hot, now_ns);
  }
  /* Also after a success: others have deadlines, too. */
  if (engine_poll_is_due(connection->engine, connection_is_all_rdma(connection), now_ns)) {
    engine_poll(connection->engine);
  }
}

void connection_progress(struct connection *connection) {
  if (connection_coalesces(connection) || progress_cq_peek(connection)) {
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
