/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. connection_pump is the heart: it takes what the progress thread posted to the
 * link, carries out the link's orders, writes what the link wants written, and publishes what
 * completed. It runs after a fact, and once after all that a round of polls or events has read. */
#include "net_plugin/connection/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"
#include "net_plugin/lane/lane_memory.h"

static int take_post(struct connection *connection, const struct request *request,
                     uint64_t now_ns) {
  if (connection->is_sender) {
    return link_send_posted(connection->link, request->data, request->bytes, request->memory,
                            now_ns);
  }
  /* How the peer's devices get to the data. */
  struct wire_remote_buffer target = { .address = (uintptr_t)request->data,
                                       .bytes = request->bytes };
  bool has_target = connection->config.link.remote_keys > 0 && request->memory &&
                    lane_memory_covers(request->memory, request->data, request->bytes);
  for (unsigned i = 0; has_target && i < connection->config.link.remote_keys; i++) {
    target.keys[i] = lane_memory_remote_key(request->memory, connection->keys[i]);
  }
  return link_receive_posted(connection->link, request->data, request->bytes,
                             has_target ? &target : NULL, now_ns);
}

/* Of those before number `posted`; how many. */
static uint64_t take_posts(struct connection *connection, uint64_t posted, uint64_t now_ns) {
  if (connection->taken < posted) {
    engine_note_activity(now_ns);
  }
  uint64_t before = connection->taken;
  while (connection->taken < posted && !connection->is_released) {
    struct request *request = &connection->requests[connection->taken % CONNECTION_REQUESTS];
    int error = take_post(connection, request, now_ns);
    if (error) {
      break; /* full: when something completes; failed: connection_publish says so */
    }
    connection->taken++;
  }
  return connection->taken - before;
}

/* Logs what the link closes by its own decision; other closes are logged where they begin. */
static void log_close(const struct connection *connection, const struct link_order *order) {
  if (order->reason != LINK_CLOSE_OVER && !connection->is_released) {
    LOG_INFO("flow %u to %s on %s reconnects: %s", order->lane, connection->config.peer,
             connection->config.nic, link_close_reason_text(order->reason));
  }
}

static void carry_out(struct connection *connection, const struct link_order *order) {
  struct lane *lane = connection->slots[order->lane].lane;
  if (order->kind == LINK_ORDER_OPEN) {
    connection->config.setup->open_lane(connection, order->lane, order->epoch);
  } else if (order->kind == LINK_ORDER_MOVE) {
    lane->ops->move(lane, order->payload);
  } else if (lane && lane->epoch <= order->epoch) {
    log_close(connection, order);
    connection_drop_lane(connection, order->lane);
  }
}

void connection_carry_out_orders(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  struct link_step step;
  struct link_ready ready = { .taken = connection->ready.taken };
  while (link_step(connection->link, &ready, now_ns, &step) == LINK_STEP_ORDER) {
    carry_out(connection, &step.order);
  }
}

/* The lane has taken a frame, or written what it had gathered. */
static void frame_taken(struct connection *connection, unsigned index, int error, uint64_t now_ns) {
  if (error) {
    connection_lane_takes_nothing(connection, index, error, now_ns);
  } else if (!connection->slots[index].lane->can_write) {
    connection_update_lane(connection, index);
  }
}

static void write_frame(struct connection *connection, struct link_step *step, bool has_followers,
                        uint64_t now_ns) {
  struct lane *lane = connection->slots[step->lane].lane;
  if (step->frame.wants_coding) {
    /* On the thread that writes, whoever's that is: what is written takes it about as long in the
     * kernel, and the lane's queue drains meanwhile. */
    uint64_t begin_ns = clock_now_ns();
    struct policy_encoded encoded = link_encode(connection->link, step->lane, &step->frame);
    encoded.took_ns = clock_now_ns() - begin_ns;
    link_encoded(connection->link, &encoded);
  }
  if (step->frame.length > 0 && connection->is_sender) {
    connection->hot_lane = (int)step->lane; /* where its acknowledgement will come */
  }
  lane->has_followers = has_followers;
  frame_taken(connection, step->lane, lane->ops->write(lane, &step->frame), now_ns);
}

/* Carries out what the link orders, writes what it wants written and publishes what completed,
 * until it waits; *step is the last answer. */
static void run_link(struct connection *connection, bool has_followers, uint64_t now_ns,
                     struct link_step *step) {
  bool has_moved = false;   /* payload */
  uint64_t written = 0;     /* lanes that may have gathered frames */
  bool has_flushed = false; /* which may complete messages, or find a lane broken */
  do {
    enum link_step_kind kind;
    while ((kind = link_step(connection->link, &connection->ready, now_ns, step)) !=
           LINK_STEP_WAIT) {
      if (kind == LINK_STEP_ORDER) {
        carry_out(connection, &step->order);
      } else {
        written |= lane_bit(step->lane);
        has_moved |= step->frame.length > 0;
        write_frame(connection, step, has_followers, now_ns);
      }
    }
    connection_publish(connection);
    /* There are no more frames: these lanes write what they have gathered. */
    for (has_flushed = false; written; written &= written - 1) {
      unsigned index = (unsigned)__builtin_ctzll(written);
      struct lane *lane = connection->slots[index].lane;
      if (lane && lane->can_write && lane->has_unwritten) {
        has_flushed = true;
        frame_taken(connection, index, lane->ops->resume(lane), now_ns);
      }
    }
  } while (has_flushed);
  if (has_moved) {
    engine_note_activity(now_ns);
  }
}

static bool are_lanes_closed(const struct connection *connection) {
  for (unsigned i = 0; i < connection->lanes; i++) {
    const struct lane *lane = connection->slots[i].lane;
    if (lane && !lane->ops->is_closed(lane)) {
      return false;
    }
  }
  return true;
}

/* Everything is sent: closes the lanes and waits for the peer to do the same, for CLOSE_TIMEOUT_NS.
 * A connection that failed stays, without lanes, until its user has seen why. */
static void close_lanes(struct connection *connection, uint64_t now_ns) {
  if (!connection->is_closing_lanes) {
    connection->is_closing_lanes = true;
    connection->close_deadline_ns = now_ns + CLOSE_TIMEOUT_NS;
    connection->ready = (struct link_ready){ .taken = connection->opened };
    for (unsigned i = 0; i < connection->lanes; i++) {
      struct lane *lane = connection->slots[i].lane;
      if (lane) {
        lane->ops->close(lane);
        engine_rewatch(connection->engine, &connection->slots[i].source, EPOLLIN);
      }
    }
  }
  if (!are_lanes_closed(connection) && now_ns < connection->close_deadline_ns) {
    engine_timer_set(connection->engine, &connection->timer, connection->close_deadline_ns);
    return;
  }
  if (connection->is_detached) {
    connection_destroy(connection);
    return;
  }
  engine_timer_stop(&connection->timer);
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection_drop_lane(connection, i);
  }
}

/* Nothing is left to do but to close the lanes. */
static bool is_over(struct connection *connection, uint64_t now_ns) {
  if (!link_status(connection->link)) {
    return connection->is_released && link_is_finished(connection->link);
  }
  if (!connection->last_word_ns) {
    connection->last_word_ns = now_ns + CLOSE_TIMEOUT_NS;
  }
  return !link_has_last_word(connection->link) || now_ns >= connection->last_word_ns;
}

static void measure_lanes(struct connection *connection, uint64_t now_ns) {
  uint64_t wanted = link_wants_measured(connection->link, now_ns) & connection->opened;
  for (; wanted; wanted &= wanted - 1) {
    unsigned index = (unsigned)__builtin_ctzll(wanted);
    const struct lane *lane = connection->slots[index].lane;
    struct policy_transport transport;
    bool is_measured = lane->ops->measure(lane, &transport);
    link_lane_measured(connection->link, index, is_measured ? &transport : NULL, now_ns);
  }
}

void connection_pump(struct connection *connection, uint64_t now_ns) {
  engine_assert_locked(connection->engine);
  if (connection->is_running) {
    return; /* called back by set-up from inside: the loop below sees what changed */
  }
  if (connection->is_closing_lanes) {
    close_lanes(connection, now_ns);
    return;
  }
  connection->is_running = true;
  struct link_step step;
  measure_lanes(connection, now_ns);
  uint64_t posted = atomic_load_explicit(&connection->posted, memory_order_acquire);
  uint64_t posts = take_posts(connection, posted, now_ns);
  do { /* what the lanes have taken may make room for posts that found none */
    run_link(connection, posts > 1, now_ns, &step);
    posts = connection->taken < posted ? take_posts(connection, posted, now_ns) : 0;
  } while (posts > 0);
  connection->is_running = false;
  if (is_over(connection, now_ns)) {
    close_lanes(connection, now_ns);
    return;
  }
  if (connection->health.trouble) {
    connection_watch_peer(connection, now_ns);
  }
  if (connection_blocked(connection) && connection->published == connection->taken) {
    engine_leave_to_thread(connection->engine);
  }
  posted = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  if (connection->published != posted && !connection->watch.next_ns) {
    connection_watch_start(connection, now_ns);
  }
  const uint64_t clocks_ns[] = {
    connection_next_report_ns(connection),
    connection->watch.next_ns ? connection->watch.next_ns : LINK_NO_DEADLINE,
    connection->is_released ? connection->linger_ns : LINK_NO_DEADLINE,
    connection->last_word_ns ? connection->last_word_ns : LINK_NO_DEADLINE,
  };
  uint64_t deadline_ns = step.deadline_ns;
  for (unsigned i = 0; i < sizeof clocks_ns / sizeof *clocks_ns; i++) {
    deadline_ns = clocks_ns[i] < deadline_ns ? clocks_ns[i] : deadline_ns;
  }
  if (deadline_ns == LINK_NO_DEADLINE) {
    engine_timer_stop(&connection->timer);
  } else {
    engine_timer_set(connection->engine, &connection->timer, deadline_ns);
  }
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct connection *connection = LIST_ENTRY(timer, struct connection, timer);
  if (!connection->is_closing_lanes) {
    if (link_wants_evidence(connection->link, now_ns)) {
      connection_look_for_host(connection, now_ns);
    }
    link_time_passed(connection->link, now_ns);
    connection_watch_peer(connection, now_ns);
    if (connection->watch.next_ns && now_ns >= connection->watch.next_ns) {
      connection_watch_stall(connection, now_ns);
    }
    if (connection->is_released && now_ns >= connection->linger_ns) {
      link_fail(connection->link, -ETIMEDOUT);
    }
  }
  connection_pump(connection, now_ns);
}

static void task_run(struct engine_task *task) {
  connection_pump(LIST_ENTRY(task, struct connection, task), clock_now_ns());
}

static void arrived_run(struct engine_deferred *deferred) {
  connection_pump(LIST_ENTRY(deferred, struct connection, arrived), clock_now_ns());
}

/* ---- life ---- */

static _Atomic uint64_t connections_made;

int connection_new(struct engine *engine, const struct connection_config *config,
                   struct connection **result) {
  engine_assert_locked(engine);
  struct connection *connection = calloc(1, sizeof *connection);
  if (!connection) {
    return -ENOMEM;
  }
  connection->lanes = config->link.policy.lanes;
  connection->slots = calloc(connection->lanes, sizeof *connection->slots);
  connection->link_bytes = link_memory_bytes(&config->link);
  /* Zero pages on demand: the eager buffers of a connection that never uses them cost nothing. */
  void *memory = mmap(NULL, connection->link_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!connection->slots || memory == MAP_FAILED) {
    if (memory != MAP_FAILED) {
      munmap(memory, connection->link_bytes);
    }
    free(connection->slots);
    free(connection);
    return -ENOMEM;
  }
  connection->config = *config;
  connection->config.link.coding_memory = connection_coding_memory;
  connection->config.link.coding_owner = connection;
  connection->link = link_init(memory, &connection->config.link, clock_now_ns());
  connection->engine = engine;
  connection->is_sender = config->link.role == LINK_SENDER;
  connection->hot_lane = connection->last_lane = -1;
  connection->number = atomic_fetch_add(&connections_made, 1) + 1;
  connection->created_ns = clock_now_ns();
  connection->totals = nic_totals_of(engine_nic(engine));
  connection->timer.expired = timer_expired;
  connection->task.run = task_run;
  connection->arrived.run = arrived_run;
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection->slots[i].source =
        (struct engine_source){ .ready = connection_lane_ready, .fd = -1 };
    connection->slots[i].totals = connection->totals;
    connection->slots[i].connection = connection;
  }
  for (unsigned i = 0; i < CONNECTION_REQUESTS; i++) {
    connection->requests[i].connection = connection;
  }
  if (connection->config.link.remote_keys) {
    lane_memory_want(true);
  }
  list_push_back(&engine_lists(engine)->connections, &connection->node);
  *result = connection;
  return 0;
}

void connection_destroy(struct connection *connection) {
  engine_assert_locked(connection->engine);
  connection_report_end(connection, clock_now_ns());
  connection->is_running = true; /* callbacks from set-up must not pump what is going away */
  connection->config.setup->gone(connection);
  connection->config.setup_data = NULL;
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection_drop_lane(connection, i);
  }
  engine_timer_stop(&connection->timer);
  engine_cancel(&connection->arrived);
  list_remove(&connection->node);
  if (connection->config.link.remote_keys) {
    lane_memory_want(false);
  }
  link_end(connection->link);
  munmap(connection->link, connection->link_bytes);
  connection_free_coding(connection);
  free(connection->slots);
  free(connection);
}

struct connection *connection_next(struct engine *engine, const struct connection *after) {
  engine_assert_locked(engine);
  struct list *list = &engine_lists(engine)->connections;
  struct list_node *node = after ? after->node.next : list->head.next;
  return node == &list->head ? NULL : LIST_ENTRY(node, struct connection, node);
}

void *connection_setup_data(const struct connection *connection) {
  return connection->config.setup_data;
}
