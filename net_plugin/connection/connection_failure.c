/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. Why a connection failed, or waits for a peer that is stopped: one message that
 * names peer, NIC, request, times, errno and what to do. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"

/* A peer that dies ends dozens of connections within seconds. */
#define SAME_REPORT_NS (10 * NS_PER_S)

/* What an errno of link_status means, and what to do about it. */
static const struct failure {
  int error;
  const char *what, *advice;
} failures[] = {
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

static const struct failure *failure_of(int error) {
  const struct failure *failure = failures;
  while (failure->error && failure->error != error) {
    failure++;
  }
  return failure;
}

static double failure_seconds_since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? (double)(now_ns - then_ns) / (double)NS_PER_S : 0;
}

/* The last warning about a peer. */
struct failure_last {
  char peer[CONNECTION_NAME_BYTES];
  uint64_t at_ns;
  int error;
};

/* A dead peer ends all its connections at once: the first one is a warning, the others repeat it
 * and are informational. Connections to the same peer differ only in its port. */
static bool failure_is_new(struct failure_last *last, const char *peer, int error,
                           uint64_t now_ns) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char *port = strrchr(peer, ':');
  size_t length = port ? (size_t)(port - peer) : strlen(peer);
  pthread_mutex_lock(&lock);
  bool is_same =
      error == last->error && strncmp(last->peer, peer, length) == 0 && last->peer[length] == 0;
  bool is_new = !is_same || now_ns >= last->at_ns + SAME_REPORT_NS;
  if (is_new) {
    snprintf(last->peer, sizeof last->peer, "%.*s", (int)length, peer);
    last->at_ns = now_ns;
    last->error = error;
  }
  pthread_mutex_unlock(&lock);
  return is_new;
}

#define REQUEST_TEXT 128

/* The oldest request; locked. */
static void failure_describe_request(const struct connection *connection, uint64_t now_ns,
                                     char text[REQUEST_TEXT]) {
  struct link_message_view oldest;
  snprintf(text, REQUEST_TEXT, "no request was waiting");
  if (link_view_oldest(connection->link, &oldest)) {
    snprintf(text, REQUEST_TEXT, "request %llu, %llu of %llu bytes %s, waited %.1f s",
             (unsigned long long)oldest.number, (unsigned long long)oldest.moved,
             (unsigned long long)oldest.bytes, connection->is_sender ? "acknowledged" : "received",
             failure_seconds_since(oldest.posted_ns, now_ns));
  }
}

void connection_report_stopped(struct connection *connection, uint64_t now_ns) {
  static struct failure_last last;
  struct link_view link;
  char request[REQUEST_TEXT];
  bool is_stopped = link_is_peer_stopped(connection->link, now_ns);
  if (is_stopped == (connection->stopped_ns != 0)) {
    return;
  }
  link_view(connection->link, &link);
  if (is_stopped) {
    connection->stopped_ns = now_ns;
    failure_describe_request(connection, now_ns, request);
    bool is_new = failure_is_new(&last, connection->peer, -ETIME, now_ns);
    LOG_AT(is_new ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
           "%s is stopped, or gets no CPU: its host answers on %s, its process has not for %.1f s, "
           "%llu pings sent; %s. It is given up after %.0f s (STRATUS_STOPPED_TIMEOUT). Look "
           "there for a debugger, SIGSTOP, or too many processes for the CPUs",
           connection->peer, connection->nic, failure_seconds_since(link.heard_ns, now_ns),
           (unsigned long long)link.pings_sent, request,
           (double)connection->stopped_timeout_ns / (double)NS_PER_S);
  } else if (link.heard_ns > connection->stopped_ns) {
    LOG_INFO("%s is running again, %.1f s after it was reported as stopped", connection->peer,
             failure_seconds_since(connection->stopped_ns, now_ns));
    connection->stopped_ns = 0;
  }
}

/* One message that names peer, NIC, address, request, times and errno. */
static void failure_report(struct connection *connection, int error) {
  static struct failure_last last;
  struct link_view link;
  const struct failure *failure = failure_of(error);
  uint64_t now_ns = clock_now_ns();
  uint64_t done = atomic_load(&connection->completed), posted = atomic_load(&connection->posted);
  char request[REQUEST_TEXT], reason[96] = "";
  engine_lock(connection->engine);
  link_view(connection->link, &link);
  failure_describe_request(connection, now_ns, request);
  engine_unlock(connection->engine);
  if (link.peer_error) {
    snprintf(reason, sizeof reason, ", its reason: %s", strerror(-link.peer_error));
  }
  bool is_new = failure_is_new(&last, connection->peer, error, now_ns);
  LOG_AT(is_new ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
         "connection %s %s on %s failed: %s (%s%s). %s; %llu of %llu requests done; last frame "
         "of the peer %.1f s ago, %llu pings sent. %s",
         connection->is_sender ? "to" : "from", connection->peer, connection->nic, failure->what,
         strerror(-error), reason, request, (unsigned long long)done, (unsigned long long)posted,
         failure_seconds_since(link.heard_ns, now_ns), (unsigned long long)link.pings_sent,
         failure->advice);
}

int connection_error(struct connection *connection) {
  int error = atomic_load_explicit(&connection->error, memory_order_acquire);
  if (error && !connection->is_error_reported) {
    connection->is_error_reported = true;
    failure_report(connection, error);
  }
  return error;
}
