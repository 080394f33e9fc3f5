/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. Why a connection failed, or what it waits for: one message that names peer,
 * NIC, request, times, errno and what to do. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

/* What an errno of link_status means, behind the peer's name, and what to do about it. The first
 * also goes to other ranks, and into lines that are cut short: a variable that decides stands at
 * its beginning. */
static const struct failure {
  int error;
  const char *what, *advice;
} failures[] = {
  { -ETIMEDOUT, "no path works any more, for STRATUS_LINK_TIMEOUT",
    "Check that host, its NIC and the network between" },
  { -EHOSTDOWN, "silent peer, for STRATUS_LINK_TIMEOUT: not even its host answers",
    "That host is down, or the network swallows the packets" },
  { -ETIME, "stopped peer, for STRATUS_STOPPED_TIMEOUT: its host answers, its process does not",
    "Look there for a debugger, SIGSTOP, or too many processes for the CPUs" },
  { -ECOMM, "flows connect, data does not pass, for STRATUS_LINK_TIMEOUT",
    "Something on the path takes only small packets (MTU), or a firewall forgets flows: "
    "stratus probe finds where" },
  { -ESRCH, "its process is gone: its host answers, and nobody listens there",
    "It ended or was killed: look at that host's log, and at its kernel's for memory. Or its "
    "address "
    "has moved to another host" },
  { -ECONNABORTED, "it gave up", "Its log says why: look there first" },
  { -ESHUTDOWN, "another connection of this communicator has failed",
    "An earlier message of this host says which, and why" },
  { -ECONNRESET, "the connection was closed",
    "Its process ended or gave up the communicator: look at that host's log first" },
  { -EMSGSIZE, "the sender sends more than the receive can hold",
    "Check that all ranks call the same operations with the same counts and types" },
  { -ECANCELED, "memory of a request was deregistered before it was complete",
    "NCCL aborts the communicator, or the application gave a buffer back too early" },
  { -EPROTO, "the protocol was broken",
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

/* The last warning about a peer, where it stands by a hash of its name. */
struct failure_last {
  char peer[CONNECTION_NAME_BYTES];
  uint64_t at_ns;
  int error;
};

/* A dead peer ends all its connections at once: the first one is a warning, the others repeat it
 * and are informational. Connections to the same peer differ only in its port. */
static bool failure_is_new(struct failure_last table[REPORTED_PEERS], const char *peer, int error,
                           uint64_t now_ns) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const char *port = strrchr(peer, ':');
  size_t length = port ? (size_t)(port - peer) : strlen(peer);
  struct failure_last *last = &table[hash_crc32c(0, peer, length) % REPORTED_PEERS];
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

#define TROUBLE_TEXT (CONNECTION_PATH_TEXT + 384)

/* What is seen, and how long it may last. */
static void trouble_describe(struct connection *connection, const struct link_view *link,
                             uint64_t now_ns, char text[TROUBLE_TEXT]) {
  char path[CONNECTION_PATH_TEXT];
  double seconds = failure_seconds_since(connection->health.since_ns, now_ns);
  switch (connection->health.trouble) {
  case LINK_STUCK:
    snprintf(text, TROUBLE_TEXT,
             "data does not pass: for %.1f s nothing was acknowledged, and %u flows connected "
             "meanwhile and brought nothing across. Small packets pass and large ones do not "
             "(MTU), or a firewall forgets flows: stratus probe finds where. It goes on when data "
             "passes again, and is given up after %.0f s (STRATUS_LINK_TIMEOUT)",
             seconds, link->vain_lanes,
             (double)connection->config.link.timeout_ns / (double)NS_PER_S);
    break;
  case LINK_STOPPED:
    snprintf(text, TROUBLE_TEXT,
             "it is stopped, or gets no CPU: its host answers, its process has not for %.1f s. It "
             "is given up after %.0f s (STRATUS_STOPPED_TIMEOUT). Look there for a debugger, "
             "SIGSTOP, or too many processes for the CPUs",
             seconds, (double)connection->config.link.stopped_timeout_ns / (double)NS_PER_S);
    break;
  default:
    snprintf(text, TROUBLE_TEXT,
             "no answer for %.1f s, nor from its host: last answer %.1f s ago, %u of %u flows up; "
             "%s. It goes on when the path is there again, and is given up after %.0f s "
             "(STRATUS_LINK_TIMEOUT)",
             seconds, failure_seconds_since(link->heard_ns, now_ns), link->lanes_up,
             link->lanes_wanted, connection->config.setup->path_text(connection, path),
             (double)connection->config.link.timeout_ns / (double)NS_PER_S);
    break;
  }
}

static void trouble_report(struct connection *connection, const struct link_view *link,
                           uint64_t now_ns) {
  static struct failure_last last[REPORTED_PEERS];
  char request[REQUEST_TEXT], text[TROUBLE_TEXT];
  failure_describe_request(connection, now_ns, request);
  trouble_describe(connection, link, now_ns, text);
  int kind = (int)connection->health.trouble;
  bool is_new = failure_is_new(last, connection->config.peer, kind, now_ns);
  LOG_AT(is_new ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "waiting for %s on %s: %s; %s, %llu pings sent",
         connection->config.peer, connection->config.nic, text, request,
         (unsigned long long)link->counts.pings_sent);
}

static const uint64_t trouble_reports_ns[] = TROUBLE_REPORTS_NS;

uint64_t connection_next_report_ns(const struct connection *connection) {
  bool is_last = connection->reports >= sizeof trouble_reports_ns / sizeof *trouble_reports_ns;
  return !connection->health.trouble || is_last
             ? LINK_NO_DEADLINE
             : connection->health.since_ns + trouble_reports_ns[connection->reports];
}

void connection_watch_peer(struct connection *connection, uint64_t now_ns) {
  struct link_health *known = &connection->health;
  struct link_health health = link_health(connection->link, now_ns);
  if (!health.trouble && !known->trouble) {
    return;
  }
  struct link_view link;
  link_view(connection->link, &link);
  if (health.trouble && health.trouble != known->trouble) {
    *known = health;
    connection->reports = 0;
  } else if (!health.trouble &&
             (link.heard_ns > known->since_ns || link_status(connection->link))) {
    if (!link_status(connection->link)) {
      LOG_INFO("%s answers again, after %.1f s", connection->config.peer,
               failure_seconds_since(known->since_ns, now_ns));
    }
    *known = health;
  }
  if (now_ns >= connection_next_report_ns(connection)) {
    connection->reports++;
    trouble_report(connection, &link, now_ns);
  }
}

#define CAUSE_TEXT (WIRE_MAX_REASON_BYTES + CONNECTION_NAME_BYTES + 384)

/* Who failed first and why, as far as it is known here, and what to do: how the message begins,
 * since a framework shows it to its user. */
static void failure_describe_cause(const struct connection *connection,
                                   const struct link_view *link, int error, char text[CAUSE_TEXT]) {
  const struct failure *failure = failure_of(error);
  if (!link->peer_error) {
    snprintf(text, CAUSE_TEXT, "%s: %s. %s", connection->config.peer, failure->what,
             failure->advice);
  } else if (link->peer_reason[0]) {
    snprintf(text, CAUSE_TEXT, "%s. Look at that host's log first. So says %s, which gave up",
             link->peer_reason, connection->config.peer);
  } else {
    snprintf(text, CAUSE_TEXT, "%s: %s, its reason: %s. %s", connection->config.peer, failure->what,
             failure_of(link->peer_error)->what, failure->advice);
  }
}

void connection_report_failure(struct connection *connection, int error,
                               char root[WIRE_MAX_REASON_BYTES + 1]) {
  static struct failure_last last[REPORTED_PEERS];
  struct link_view link;
  uint64_t now_ns = clock_now_ns();
  uint64_t done = atomic_load(&connection->completed), posted = atomic_load(&connection->posted);
  char request[REQUEST_TEXT], cause[CAUSE_TEXT];
  engine_lock(connection->engine);
  link_view(connection->link, &link);
  failure_describe_request(connection, now_ns, request);
  engine_unlock(connection->engine);
  failure_describe_cause(connection, &link, error, cause);
  /* What follows from another failure is no news. */
  bool is_new = error != -ESHUTDOWN && failure_is_new(last, connection->config.peer, error, now_ns);
  LOG_AT(is_new ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
         "lost %s. Connection %s %s on %s: %s; %llu of %llu requests done; last frame of the peer "
         "%.1f s ago, %llu pings sent; errno %d",
         cause, connection->is_sender ? "to" : "from", connection->config.peer,
         connection->config.nic, request, (unsigned long long)done, (unsigned long long)posted,
         failure_seconds_since(link.heard_ns, now_ns), (unsigned long long)link.counts.pings_sent,
         -error);
  if (link.peer_error && link.peer_reason[0]) { /* who heard it from a peer hands it on */
    snprintf(root, WIRE_MAX_REASON_BYTES + 1, "%s", link.peer_reason);
  } else {
    snprintf(root, WIRE_MAX_REASON_BYTES + 1, "%s: %s", connection->config.peer,
             failure_of(link.peer_error ? link.peer_error : error)->what);
  }
}

/* When a connection failed last, by the thread that drives it; threads may share one. */
static _Atomic uint64_t failed_ns[FAILED_DRIVERS];

static _Atomic uint64_t *failed_of(const struct connection *connection) {
  uintptr_t driver = atomic_load_explicit(&connection->driver, memory_order_relaxed);
  return driver ? &failed_ns[(driver * UINT64_C(0x9e3779b97f4a7c15) >> 58) % FAILED_DRIVERS] : NULL;
}

void connection_note_failure(const struct connection *connection) {
  _Atomic uint64_t *failed = failed_of(connection);
  if (failed) {
    atomic_store_explicit(failed, clock_now_ns(), memory_order_relaxed);
  }
}

bool connection_has_failed_sibling(const struct connection *connection) {
  const _Atomic uint64_t *failed = failed_of(connection);
  uint64_t at_ns = failed ? atomic_load_explicit(failed, memory_order_relaxed) : 0;
  return at_ns && clock_now_ns() < at_ns + FAILED_LATELY_NS;
}
