/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. What NCCL's threads see of a connection: requests, errors, inline progress. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/ablation.h"
#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"

/* Who posts a small message within HOLD_GAP_NS of having sent the last one goes on to do so, as a
 * rule: what it posts is held until it is enough, or until it has asked twice and brought no more,
 * and goes out in one system call. A ping-pong is never so quick, nor is a thread for which it
 * takes long to ask twice. Not where there may be queue pairs, which take each message by itself.
 */
#define HOLD_GAP_NS 2000
#define HOLD_POSTS 8
#define HOLD_BYTES (64u << 10)
#define HOLD_LARGEST_BYTES (16u << 10)

static bool may_hold(struct connection *connection, size_t bytes) {
  if (bytes > HOLD_LARGEST_BYTES || ablation_off(ABLATION_HOLD) ||
      (!connection->held && clock_now_ns() - connection->told_ns >= HOLD_GAP_NS)) {
    return false;
  }
  connection->held++;
  connection->held_bytes += bytes;
  return connection->held < HOLD_POSTS && connection->held_bytes < HOLD_BYTES;
}

static void tell_posts(struct connection *connection) {
  connection->held = 0;
  connection->held_bytes = 0;
  engine_submit(connection->engine, &connection->task);
  connection->told_ns = clock_now_ns();
}

/* Posts are held. Have others come since it was asked last? */
static bool has_more_posts(struct connection *connection) {
  uint64_t tested = connection->tested;
  connection->tested = atomic_load_explicit(&connection->posted, memory_order_relaxed);
  return connection->tested != tested;
}

struct request *connection_post(struct connection *connection, void *data, size_t bytes,
                                const void *registration, const struct rdma_memory *memory) {
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
  atomic_store_explicit(&connection->posted, number + 1, memory_order_release);
  /* Receives are posted several in a row, and then waited for: the link, which tells the peer of
   * them, gets them together then. */
  if (!connection->is_sender && !ablation_off(ABLATION_UNTAKEN)) {
    connection->has_untaken = true;
  } else if (connection->target_keys || !connection->is_sender) {
    engine_submit(connection->engine, &connection->task);
  } else if (!may_hold(connection, bytes)) {
    tell_posts(connection);
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

#define ONE_WARNING_NS (10 * NS_PER_S)

/* What a status means, and what to do about it. */
static const struct ending {
  int error;
  const char *what, *advice;
} endings[] = {
  { -ETIMEDOUT, "no path works any more",
    "Check that host, its NIC and the network between (STRATUS_LINK_TIMEOUT sets how long to "
    "try)" },
  { -EHOSTDOWN, "silent peer: its flows are up, but not even its host answers",
    "That host is down, or the network swallows the packets (STRATUS_LINK_TIMEOUT sets how long to "
    "wait)" },
  { -ETIME, "stopped peer: its host answers, its process does not",
    "Look there for a debugger, SIGSTOP, or too many processes for the CPUs "
    "(STRATUS_STOPPED_TIMEOUT sets how long to wait)" },
  { -ECONNABORTED, "the peer gave up", "Its log says why: look there first" },
  { -ECONNRESET, "the peer closed the connection",
    "Its process ended or gave up the communicator: look at that host's log first" },
  { -EMSGSIZE, "the peer sends more than the receive can hold",
    "Check that all ranks call the same operations with the same counts and types" },
  { -ECANCELED, "memory of a request was deregistered before it was complete",
    "NCCL aborts the communicator, or the application gave a buffer back too early" },
  { -EPROTO, "the peer broke the protocol",
    "Install the same release of stratus on every host; if it is, report this" },
  { -ENOTRECOVERABLE, "an RDMA device of this host does not stop writing",
    "An earlier message names the device and the call: look at the kernel's log, and reload its "
    "driver or leave it out (NCCL_IB_HCA)" },
  { 0, "this host gave up", "Earlier messages of this host say why" },
};

static const struct ending *ending_of(int error) {
  const struct ending *ending = endings;
  while (ending->error && ending->error != error) {
    ending++;
  }
  return ending;
}

static double seconds_since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? (double)(now_ns - then_ns) / (double)NS_PER_S : 0;
}

/* What was said of a peer last, and when. */
struct said {
  char peer[CONNECTION_NAME_BYTES];
  uint64_t at_ns;
  int error;
};

/* A dead peer ends all its connections at once: the first one is worth a warning, the others say
 * the same. The peer without its port tells them apart. */
static bool is_first_time(struct said *last, const char *peer, int error, uint64_t now_ns) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char *port = strrchr(peer, ':');
  size_t length = port ? (size_t)(port - peer) : strlen(peer);
  pthread_mutex_lock(&lock);
  bool is_same =
      error == last->error && strncmp(last->peer, peer, length) == 0 && last->peer[length] == 0;
  bool is_first = !is_same || now_ns >= last->at_ns + ONE_WARNING_NS;
  if (is_first) {
    snprintf(last->peer, sizeof last->peer, "%.*s", (int)length, peer);
    last->at_ns = now_ns;
    last->error = error;
  }
  pthread_mutex_unlock(&lock);
  return is_first;
}

#define REQUEST_TEXT 128

/* The oldest request; locked. */
static void describe_request(const struct connection *connection, uint64_t now_ns,
                             char text[REQUEST_TEXT]) {
  struct link_message_view oldest;
  snprintf(text, REQUEST_TEXT, "no request was waiting");
  if (link_view_oldest(connection->link, &oldest)) {
    snprintf(text, REQUEST_TEXT, "request %llu, %llu of %llu bytes %s, waited %.1f s",
             (unsigned long long)oldest.number, (unsigned long long)oldest.moved,
             (unsigned long long)oldest.bytes, connection->is_sender ? "acknowledged" : "received",
             seconds_since(oldest.posted_ns, now_ns));
  }
}

void connection_tell_stopped(struct connection *connection, uint64_t now_ns) {
  static struct said last;
  struct link_view link;
  char request[REQUEST_TEXT];
  bool is_stopped = link_is_peer_stopped(connection->link, now_ns);
  if (is_stopped == (connection->stopped_ns != 0)) {
    return;
  }
  link_view(connection->link, &link);
  if (is_stopped) {
    connection->stopped_ns = now_ns;
    describe_request(connection, now_ns, request);
    bool is_first = is_first_time(&last, connection->peer, -ETIME, now_ns);
    LOG_AT(is_first ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
           "%s is stopped, or gets no CPU: its host answers on %s, its process has not for %.1f s, "
           "asked %llu times; %s. It has until %.0f s (STRATUS_STOPPED_TIMEOUT). Look there for a "
           "debugger, SIGSTOP, or too many processes for the CPUs",
           connection->peer, connection->nic, seconds_since(link.heard_ns, now_ns),
           (unsigned long long)link.pings_sent, request,
           (double)connection->stopped_timeout_ns / (double)NS_PER_S);
  } else if (link.heard_ns > connection->stopped_ns) {
    LOG_INFO("%s goes on, %.1f s after it was reported to be stopped", connection->peer,
             seconds_since(connection->stopped_ns, now_ns));
    connection->stopped_ns = 0;
  }
}

/* One message that names peer, NIC, address, request, times and errno. */
static void report_error(struct connection *connection, int error) {
  static struct said last;
  struct link_view link;
  const struct ending *ending = ending_of(error);
  uint64_t now_ns = clock_now_ns();
  uint64_t done = atomic_load(&connection->completed), posted = atomic_load(&connection->posted);
  char request[REQUEST_TEXT], reason[96] = "";
  engine_lock(connection->engine);
  link_view(connection->link, &link);
  describe_request(connection, now_ns, request);
  engine_unlock(connection->engine);
  if (link.peer_error) {
    snprintf(reason, sizeof reason, ", its reason: %s", strerror(-link.peer_error));
  }
  bool is_first = is_first_time(&last, connection->peer, error, now_ns);
  LOG_AT(is_first ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
         "connection %s %s on %s failed: %s (%s%s). %s; %llu of %llu requests done; peer last "
         "heard %.1f s ago, asked %llu times. %s",
         connection->is_sender ? "to" : "from", connection->peer, connection->nic, ending->what,
         strerror(-error), reason, request, (unsigned long long)done, (unsigned long long)posted,
         seconds_since(link.heard_ns, now_ns), (unsigned long long)link.pings_sent, ending->advice);
}

int connection_error(struct connection *connection) {
  int error = atomic_load_explicit(&connection->error, memory_order_acquire);
  if (error && !connection->is_error_reported) {
    connection->is_error_reported = true;
    report_error(connection, error);
  }
  return error;
}

/* Reads from the lane, and writes what it did not take before. */
static void try_lane(struct connection *connection, unsigned index, uint64_t now_ns) {
  bool is_blocked = (connection->blocked & connection_lane_bit(index)) != 0;
  connection->slots[index].lane->is_awaited = true;
  connection_serve_lane(connection, index, EPOLLIN | (is_blocked ? (uint32_t)EPOLLOUT : 0), now_ns);
}

/* The open lane after `index`, round and round; -1: none. */
static int next_lane(const struct connection *connection, unsigned index) {
  uint64_t after = index < 63 ? connection->opened >> (index + 1) << (index + 1) : 0;
  uint64_t lanes = after ? after : connection->opened;
  return lanes ? __builtin_ctzll(lanes) : -1;
}

/* Besides the hot lane: its successor and, every other time, the one whose turn it is. */
static int other_lane(struct connection *connection) {
  connection->tries++;
  if (connection->hot_lane >= 0 && connection->tries % 2 == 0) {
    return next_lane(connection, (unsigned)connection->hot_lane);
  }
  int next = next_lane(connection, connection->tried_lane);
  connection->tried_lane = next >= 0 ? (unsigned)next : connection->tried_lane;
  return next;
}

/* Asking an RDMA lane is a look into memory: each of them is asked, until something completes. */
static void try_direct_lanes(struct connection *connection, int hot, uint64_t completed,
                             uint64_t now_ns) {
  for (uint64_t lanes = connection->direct; lanes && connection->published == completed;
       lanes &= lanes - 1) {
    int index = __builtin_ctzll(lanes);
    if (index != hot && connection->slots[index].lane) {
      try_lane(connection, (unsigned)index, now_ns);
    }
  }
}

/* Where queue pairs carry the data, most looks find nothing: a glance at the queues says so, and
 * does no more. Not each time: there are deadlines, and devices that are lost. */
#define GLANCES_PER_LOOK 16 /* a power of two */

static bool sees_nothing(struct connection *connection) {
  struct engine *engine = connection->engine;
  if (connection->target_keys == 0 || connection->has_untaken || ablation_off(ABLATION_GLANCE) ||
      ++connection->glances % GLANCES_PER_LOOK == 0 || !engine_glance_begin(engine)) {
    return false;
  }
  bool is_quiet = connection_is_quiet(connection);
  engine_unlock(engine);
  return is_quiet;
}

/* Who waits asks the lanes directly, most of the time: the one that brought the last bytes, then
 * the one after it, where a sender that spreads messages goes next, or one of the others in turn.
 * Asking the epoll set costs as much as asking a flow, and the network's side of the kernel waits
 * for its lock meanwhile. */
void connection_progress(struct connection *connection) {
  if (connection->held) {
    if (!has_more_posts(connection)) {
      tell_posts(connection);
    }
    return;
  }
  if (sees_nothing(connection)) {
    return;
  }
  struct engine *engine = connection->engine;
  uint64_t now_ns = clock_now_ns();
  bool has_untaken = connection->has_untaken;
  connection->has_untaken = false;
  if (!engine_progress_begin(engine, now_ns)) {
    if (has_untaken) {
      engine_submit(engine, &connection->task); /* to whoever has the lock, or to the thread */
    }
    engine_nap(engine, now_ns);
    return;
  }
  if (has_untaken) {
    connection_pump(connection, now_ns);
  }
  uint64_t completed = connection->published;
  int hot = ablation_off(ABLATION_HOT) ? -1 : connection->hot_lane;
  if (hot >= 0 && connection->slots[hot].lane) {
    try_lane(connection, (unsigned)hot, now_ns);
  }
  try_direct_lanes(connection, hot, completed, now_ns);
  if (connection->published == completed && (connection->opened & ~connection->direct) &&
      !ablation_off(ABLATION_HOT) && !ablation_off(ABLATION_OTHER)) {
    int next = other_lane(connection);
    if (next >= 0 && next != hot) {
      try_lane(connection, (unsigned)next, now_ns);
    }
  }
  /* Also after a success: others have deadlines, too. */
  if (engine_is_turn(engine, connection_is_all_direct(connection), now_ns)) {
    engine_poll(engine);
  }
  engine_unlock(engine);
  engine_nap(engine, now_ns);
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
