/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. connection_pump is the heart: it takes what the progress thread posted to the
 * link, carries out the link's orders, writes what the link wants written, and publishes what
 * completed. It runs after every fact. */
#include "net_plugin/engine/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/tcp/tcp_lane.h"

#define REQUESTS LINK_WINDOW
/* A lane that brought this much or less at a time is likely to bring more of the kind. */
#define HOT_BYTES (16u << 10)
/* Of so many polls of a lane that is alone, one looks at everything else, too. */
#define HOT_POLLS 16
/* How long a goodbye may take once everything is delivered. */
#define GOODBYE_NS (1 * NS_PER_S)

/* Where a lane is watched: one per lane of the link, whether it is open or not. */
struct lane_slot {
  struct engine_source source;
  struct lane *lane; /* NULL: none open */
  struct connection *connection;
};

struct connection {
  struct engine *engine;
  struct link *link;
  size_t link_bytes;
  uint64_t timeout_ns; /* as the link's */
  unsigned lanes;
  bool is_sender;
  const struct connection_setup *setup;
  void *setup_data;
  char peer[CONNECTION_NAME_BYTES], nic[CONNECTION_NAME_BYTES];

  /* guarded by the engine lock */
  struct lane_slot *slots; /* by lane */
  uint64_t opened;         /* lanes that are open */
  uint64_t writable;       /* lanes that take a frame now */
  uint64_t blocked;        /* lanes whose path did not take the last frame whole */
  int hot_lane;            /* where the next small message is likely to arrive; -1: anywhere */
  unsigned hot_polls;
  uint64_t taken;     /* posts given to the link */
  uint64_t published; /* completions made visible */
  bool is_detached, is_saying_goodbye, is_running;
  struct engine_timer timer;
  uint64_t linger_ns;  /* detached: what is not delivered by then is dropped */
  uint64_t goodbye_ns; /* saying goodbye: the lanes are closed at the latest then */
  struct list_node node;

  /* shared */
  _Atomic uint64_t posted;    /* written by the progress thread */
  _Atomic uint64_t completed; /* written by the engine */
  atomic_int error;           /* negative errno, written by the engine */
  struct engine_task task;

  /* progress thread */
  bool is_error_reported;
  struct request requests[REQUESTS];
};

static void connection_pump(struct connection *connection, uint64_t now_ns);

/* ---- lanes ---- */

static uint64_t lane_bit(unsigned lane) {
  return UINT64_C(1) << lane;
}

static void drop_lane(struct connection *connection, unsigned index) {
  struct lane_slot *slot = &connection->slots[index];
  connection->writable &= ~lane_bit(index);
  connection->blocked &= ~lane_bit(index);
  if (slot->lane) {
    engine_unwatch(connection->engine, &slot->source);
    slot->lane->ops->fini(slot->lane);
    slot->lane = NULL;
    connection->opened &= ~lane_bit(index);
  }
}

static void lane_broke(struct connection *connection, unsigned index, int error, uint64_t now_ns) {
  struct lane *lane = connection->slots[index].lane;
  uint32_t epoch = lane->epoch;
  drop_lane(connection, index);
  if (error != -EPIPE && !connection->is_detached) { /* -EPIPE: the peer leaves, its BYE is near */
    LOG_INFO("flow %u to %s on %s lost: %s; its data moves to the others, the flow is dialled anew",
             index, connection->peer, connection->nic, strerror(-error));
  }
  link_lane_lost(connection->link, index, epoch, now_ns);
}

/* What the epoll set should report, and whether the lane takes a frame. */
static void update_lane(struct connection *connection, unsigned index) {
  struct lane_slot *slot = &connection->slots[index];
  uint32_t events = EPOLLIN | (slot->lane->has_unwritten ? (uint32_t)EPOLLOUT : 0);
  engine_rewatch(connection->engine, &slot->source, events);
  connection->writable &= ~lane_bit(index);
  connection->blocked &= ~lane_bit(index);
  connection->writable |= slot->lane->can_write ? lane_bit(index) : 0;
  connection->blocked |= slot->lane->has_unwritten ? lane_bit(index) : 0;
}

/* Does what the events ask for, and what follows from it. */
static void serve_lane(struct connection *connection, unsigned index, uint32_t events,
                       uint64_t now_ns) {
  struct lane *lane = connection->slots[index].lane;
  size_t got = 0;
  int error = 0;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    error = lane->ops->read(lane, now_ns, &got);
  }
  if (got) {
    connection->hot_lane = got <= HOT_BYTES ? (int)index : -1;
  }
  if (!error && (events & EPOLLOUT)) {
    error = lane->ops->resume(lane, now_ns);
  } else if (!error && !got && !connection->is_saying_goodbye) {
    return; /* nothing there, nothing changed */
  }
  if (error) {
    lane_broke(connection, index, error, now_ns);
  } else {
    update_lane(connection, index);
  }
  connection_pump(connection, now_ns);
}

static void lane_ready(struct engine_source *source, uint32_t events) {
  struct lane_slot *slot = (struct lane_slot *)source;
  serve_lane(slot->connection, slot->lane->index, events, clock_now_ns());
}

void connection_lane_opened(struct connection *connection, unsigned index, uint32_t epoch, int fd,
                            uint64_t received_before) {
  uint64_t now_ns = clock_now_ns();
  struct lane_slot *slot = &connection->slots[index];
  if (slot->lane && slot->lane->epoch >= epoch) {
    close(fd); /* overtaken by a later dial */
    return;
  }
  drop_lane(connection, index);
  struct lane *lane = tcp_lane_open(connection->link, index, epoch, fd);
  int error = lane ? engine_watch(connection->engine, &slot->source, fd, EPOLLIN) : -ENOMEM;
  if (error) {
    LOG_WARN("cannot use a new flow to %s: %s", connection->peer, strerror(-error));
    if (lane) {
      lane->ops->fini(lane);
    } else {
      close(fd);
    }
    link_lane_lost(connection->link, index, epoch, now_ns);
  } else {
    slot->lane = lane;
    connection->opened |= lane_bit(index);
    link_lane_up(connection->link, index, epoch, received_before, now_ns);
    update_lane(connection, index);
  }
  connection_pump(connection, now_ns);
}

void connection_lane_failed(struct connection *connection, unsigned lane, uint32_t epoch) {
  uint64_t now_ns = clock_now_ns();
  link_lane_lost(connection->link, lane, epoch, now_ns);
  connection_pump(connection, now_ns);
}

void connection_fail(struct connection *connection, int error) {
  link_fail(connection->link, error);
  connection_pump(connection, clock_now_ns());
}

bool connection_lane_fenced(struct connection *connection, unsigned lane, uint32_t new_epoch,
                            uint64_t *received) {
  if (connection->is_sender) {
    return false;
  }
  *received = link_lane_fence(connection->link, lane, new_epoch, clock_now_ns());
  if (*received == UINT64_MAX) {
    return false;
  }
  drop_lane(connection, lane);
  return true;
}

/* ---- the pump ---- */

static void take_posts(struct connection *connection, uint64_t now_ns) {
  uint64_t posted = atomic_load_explicit(&connection->posted, memory_order_acquire);
  while (connection->taken < posted && !connection->is_detached) {
    struct request *request = &connection->requests[connection->taken % REQUESTS];
    int error = connection->is_sender
                    ? link_send_posted(connection->link, request->data, request->bytes, now_ns)
                    : link_receive_posted(connection->link, request->data, request->bytes, now_ns);
    if (error) {
      break; /* full: when something completes; failed: publish says so */
    }
    connection->taken++;
  }
}

static void carry_out_orders(struct connection *connection, uint64_t now_ns) {
  struct link_order order;
  while (link_next_order(connection->link, &order, now_ns)) {
    struct lane *lane = connection->slots[order.lane].lane;
    if (order.kind == LINK_ORDER_OPEN) {
      connection->setup->open_lane(connection, order.lane, order.epoch);
    } else if (lane && lane->epoch <= order.epoch) {
      drop_lane(connection, order.lane);
    }
  }
}

static void write_frames(struct connection *connection, uint64_t now_ns) {
  int index;
  while (connection->writable &&
         (index = link_pick_lane(connection->link, connection->writable)) >= 0) {
    struct lane *lane = connection->slots[index].lane;
    struct link_frame frame;
    if (!link_next_frame(connection->link, (unsigned)index, &frame, now_ns)) {
      break;
    }
    int error = lane->ops->write(lane, &frame, now_ns);
    if (error) {
      lane_broke(connection, (unsigned)index, error, now_ns);
    } else if (!lane->can_write) {
      update_lane(connection, (unsigned)index);
    }
  }
}

static void publish(struct connection *connection) {
  struct link_completion completion;
  while (!connection->is_detached && link_next_completion(connection->link, &completion)) {
    connection->requests[connection->published % REQUESTS].bytes = (size_t)completion.bytes;
    connection->published++;
    atomic_store_explicit(&connection->completed, connection->published, memory_order_release);
  }
  int status = link_status(connection->link);
  if (status) {
    atomic_store_explicit(&connection->error, status, memory_order_release);
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

/* Everything is delivered: close the lanes and wait a little for the peer to do the same. */
static void say_goodbye(struct connection *connection, uint64_t now_ns) {
  if (!connection->is_saying_goodbye) {
    connection->is_saying_goodbye = true;
    connection->goodbye_ns = now_ns + GOODBYE_NS;
    connection->writable = 0;
    for (unsigned i = 0; i < connection->lanes; i++) {
      struct lane *lane = connection->slots[i].lane;
      if (lane) {
        lane->ops->close(lane);
        engine_rewatch(connection->engine, &connection->slots[i].source, EPOLLIN);
      }
    }
  }
  if (are_lanes_closed(connection) || now_ns >= connection->goodbye_ns) {
    connection_destroy(connection);
  } else {
    engine_timer_set(connection->engine, &connection->timer, connection->goodbye_ns);
  }
}

static void set_timer(struct connection *connection) {
  uint64_t deadline_ns = link_next_deadline_ns(connection->link);
  if (connection->is_detached && connection->linger_ns < deadline_ns) {
    deadline_ns = connection->linger_ns;
  }
  if (deadline_ns == LINK_NO_DEADLINE) {
    engine_timer_stop(&connection->timer);
  } else {
    engine_timer_set(connection->engine, &connection->timer, deadline_ns);
  }
}

static void connection_pump(struct connection *connection, uint64_t now_ns) {
  if (connection->is_running) {
    return; /* called back by set-up from inside: the loop below sees what changed */
  }
  if (connection->is_saying_goodbye) {
    say_goodbye(connection, now_ns);
    return;
  }
  connection->is_running = true;
  take_posts(connection, now_ns);
  carry_out_orders(connection, now_ns);
  write_frames(connection, now_ns);
  carry_out_orders(connection, now_ns); /* a write may have found a lane broken */
  publish(connection);
  connection->is_running = false;
  if (connection->is_detached && link_is_finished(connection->link)) {
    say_goodbye(connection, now_ns);
    return;
  }
  if (connection->blocked && connection->published == connection->taken) {
    engine_leave_to_thread(connection->engine);
  }
  set_timer(connection);
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct connection *connection = LIST_ENTRY(timer, struct connection, timer);
  if (!connection->is_saying_goodbye) {
    link_time_passed(connection->link, now_ns);
    if (connection->is_detached && now_ns >= connection->linger_ns) {
      link_fail(connection->link, -ETIMEDOUT);
    }
  }
  connection_pump(connection, now_ns);
}

static void task_run(struct engine_task *task) {
  connection_pump(LIST_ENTRY(task, struct connection, task), clock_now_ns());
}

/* ---- life ---- */

int connection_new(struct engine *engine, const struct connection_config *config,
                   struct connection **result) {
  struct connection *connection = calloc(1, sizeof *connection);
  if (!connection) {
    return -ENOMEM;
  }
  connection->lanes = config->link.lanes;
  connection->slots = calloc(connection->lanes, sizeof *connection->slots);
  connection->link_bytes = link_memory_bytes(&config->link);
  /* Zero pages on demand: the eager buffers of a connection that never uses them cost nothing. */
  void *memory = mmap(NULL, connection->link_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!connection->slots || memory == MAP_FAILED) {
    free(connection->slots);
    free(connection);
    return -ENOMEM;
  }
  connection->link = link_init(memory, &config->link, clock_now_ns());
  connection->engine = engine;
  connection->timeout_ns = config->link.timeout_ns;
  connection->is_sender = config->link.role == LINK_SENDER;
  connection->setup = config->setup;
  memcpy(connection->peer, config->peer, sizeof connection->peer);
  memcpy(connection->nic, config->nic, sizeof connection->nic);
  connection->hot_lane = -1;
  connection->timer.expired = timer_expired;
  connection->task.run = task_run;
  for (unsigned i = 0; i < connection->lanes; i++) {
    connection->slots[i].source = (struct engine_source){ .ready = lane_ready, .fd = -1 };
    connection->slots[i].connection = connection;
  }
  for (unsigned i = 0; i < REQUESTS; i++) {
    connection->requests[i].connection = connection;
  }
  list_push_back(&engine_lists(engine)->connections, &connection->node);
  *result = connection;
  return 0;
}

void connection_destroy(struct connection *connection) {
  connection->is_running = true; /* callbacks from set-up must not pump what is going away */
  connection->setup->gone(connection);
  for (unsigned i = 0; i < connection->lanes; i++) {
    drop_lane(connection, i);
  }
  engine_timer_stop(&connection->timer);
  list_remove(&connection->node);
  munmap(connection->link, connection->link_bytes);
  free(connection->slots);
  free(connection);
}

struct connection *connection_next(struct engine *engine, const struct connection *after) {
  struct list *list = &engine_lists(engine)->connections;
  struct list_node *node = after ? after->node.next : list->head.next;
  return node == &list->head ? NULL : LIST_ENTRY(node, struct connection, node);
}

void connection_set_setup_data(struct connection *connection, void *data) {
  connection->setup_data = data;
}

void *connection_setup_data(const struct connection *connection) {
  return connection->setup_data;
}

void connection_detach(struct connection *connection) {
  struct engine *engine = connection->engine;
  engine_lock(engine);
  engine_run_tasks(engine); /* what was posted before must not run when the memory is gone */
  uint64_t now_ns = clock_now_ns();
  connection->is_detached = true;
  connection->linger_ns = now_ns + connection->timeout_ns;
  link_user_detached(connection->link, now_ns);
  connection_pump(connection, now_ns);
  engine_unlock(engine);
}

/* ---- the progress thread's side ---- */

struct request *connection_post(struct connection *connection, void *data, size_t bytes) {
  uint64_t number = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  struct request *request = &connection->requests[number % REQUESTS];
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
    is_alone = connection->opened == lane_bit((unsigned)hot);
    serve_lane(connection, (unsigned)hot, EPOLLIN, now_ns);
  }
  bool is_turn = !is_alone || ++connection->hot_polls % HOT_POLLS == 0;
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
