/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_snapshot.h. A request that makes no progress: a fault, or backpressure because the
 * peer's program has not posted its side. While requests wait, a watch looks at the oldest; a peer
 * in trouble (connection_failure.c) has reports of its own. */
#include <stdio.h>
#include <unistd.h>

#include "common/log.h"
#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

enum stall_kind stall_classify(const struct connection_snapshot *seen) {
  if (seen->stalled_ns < STALL_LEAST_NS) {
    return STALL_NONE;
  }
  if (seen->link.lanes_up == 0) {
    return STALL_NO_FLOW;
  }
  if (seen->silent_ns >= STALL_SILENT_NS) {
    return STALL_PEER_SILENT;
  }
  if (seen->is_sender) {
    bool has_credit = seen->oldest.number < seen->link.credited;
    return has_credit ? STALL_SEND_STUCK : STALL_AWAITS_RECEIVE;
  }
  return seen->oldest.moved ? STALL_HALF_ARRIVED : STALL_AWAITS_SEND;
}

const char *stall_reason(enum stall_kind kind) {
  static const char *const reasons[] = {
    [STALL_NONE] = "nothing",
    [STALL_AWAITS_RECEIVE] = "the peer has not posted its receive",
    [STALL_AWAITS_SEND] = "the peer has not begun to send",
    [STALL_NO_FLOW] = "no flow is up",
    [STALL_PEER_SILENT] = "the peer is silent",
    [STALL_SEND_STUCK] = "the peer has posted its receive and does not acknowledge the data",
    [STALL_HALF_ARRIVED] = "the rest of the message is missing",
  };
  return reasons[kind];
}

/* Most flows of which it is known what limits them. */
static bool is_network_limited(const struct connection_snapshot *seen) {
  unsigned others = 0;
  for (unsigned limit = POLICY_LIMIT_UNKNOWN + 1; limit < POLICY_LIMIT_NETWORK; limit++) {
    others += seen->limited[limit];
  }
  return seen->limited[POLICY_LIMIT_NETWORK] > others;
}

/* What the user can check. */
static const char *advice(enum stall_kind kind, const struct connection_snapshot *seen) {
  switch (kind) {
  case STALL_NO_FLOW:
    return "Check the NICs of both hosts and the network between them";
  case STALL_PEER_SILENT:
    return "Check that the process there is running and not stopped, and the network of its host";
  case STALL_SEND_STUCK:
  case STALL_HALF_ARRIVED:
    return "Check the network between the hosts for packet loss, and the log of that host";
  default:
    if (seen->stalled_losses > 0) {
      return "Flows were lost meanwhile: look at the network first (packet loss, MTU, a firewall "
             "that forgets flows); else the peer's program is busy or waits itself";
    }
    return is_network_limited(seen)
               ? "The network is what limits these flows; the peer's program is busy, "
                 "or waits itself, perhaps for the network"
               : "The network is fine; the peer's program is busy or waits itself";
  }
}

/* " (limited by: network 5, CPU 1)", or nothing. */
static const char *limits_text(const struct connection_snapshot *seen, char text[96]) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned limit = POLICY_LIMIT_NETWORK; limit > POLICY_LIMIT_UNKNOWN; limit--) {
    if (seen->limited[limit] > 0) {
      used +=
          (size_t)snprintf(text + used, 96 - used, "%s%s %u", used > 0 ? ", " : " (limited by: ",
                           link_limit_name((enum policy_limit)limit), seen->limited[limit]);
    }
  }
  if (used > 0) {
    snprintf(text + used, 96 - used, ")");
  }
  return text;
}

const char *stall_describe(const struct connection_snapshot *seen, char text[STALL_TEXT_MAX]) {
  char limits[96], host[65] = "";
  enum stall_kind kind = stall_classify(seen);
  gethostname(host, sizeof host - 1);
  snprintf(text, STALL_TEXT_MAX,
           "%s %s waits for %s: %s %llu of connection %llu has stalled for %.1f s with %llu of "
           "%llu bytes done: %s; last data from the peer %.1f s ago, %u of %u flows up%s. %s",
           host, seen->nic, seen->peer, seen->is_sender ? "send" : "receive",
           (unsigned long long)seen->oldest.number, (unsigned long long)seen->number,
           (double)seen->stalled_ns * 1e-9, (unsigned long long)seen->oldest.moved,
           (unsigned long long)seen->oldest.bytes, stall_reason(kind),
           (double)seen->silent_ns * 1e-9, seen->link.lanes_up, seen->link.lanes_wanted,
           limits_text(seen, limits), advice(kind, seen));
  return text;
}

/* ---- the watch ---- */

static void report(const struct connection_snapshot *seen, uint64_t now_ns, bool is_fault) {
  static struct log_limit limits[2];
  uint64_t others = 0;
  if (!log_limit_pass(&limits[is_fault], now_ns, STALL_REPORT_INTERVAL_NS, &others)) {
    return;
  }
  char text[STALL_TEXT_MAX], more[64] = "";
  if (others) {
    snprintf(more, sizeof more, " (and %llu more reports of this kind)",
             (unsigned long long)others);
  }
  LOG_AT(is_fault ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "%s%s", stall_describe(seen, text), more);
}

/* Something has moved, or is waiting now. */
static void watch_anew(struct connection *connection, uint64_t still_ns, uint64_t losses) {
  connection->watch.still_ns = still_ns;
  connection->watch.losses = losses;
  connection->watch.report_after_ns = connection->config.stall_report_ns;
}

static void check_later(struct connection *connection, uint64_t now_ns) {
  uint64_t period_ns = connection->config.stall_report_ns / STALL_CHECKS_PER_REPORT;
  connection->watch.next_ns = now_ns + (period_ns < STALL_CHECK_NS ? period_ns : STALL_CHECK_NS);
}

void connection_watch_start(struct connection *connection, uint64_t now_ns) {
  struct link_message_view oldest;
  struct link_view link;
  if (connection->config.stall_report_ns && link_view_oldest(connection->link, &oldest)) {
    link_view(connection->link, &link);
    watch_anew(connection, oldest.still_ns, link.losses);
    check_later(connection, now_ns);
  }
}

void connection_watch_stall(struct connection *connection, uint64_t now_ns) {
  struct connection_watch *watch = &connection->watch;
  struct connection_snapshot seen;
  connection_snapshot(connection, now_ns, &seen);
  if (!seen.is_waiting) {
    watch->next_ns = 0;
    return; /* the next post that waits starts it again */
  }
  enum stall_kind kind = stall_classify(&seen);
  if (seen.oldest.still_ns != watch->still_ns) {
    watch_anew(connection, seen.oldest.still_ns, seen.link.losses);
  } else if (kind != STALL_NONE && seen.stalled_ns >= watch->report_after_ns &&
             !connection->health.trouble) {
    report(&seen, now_ns, kind >= STALL_SEND_STUCK);
    watch->report_after_ns *= 2;
  }
  check_later(connection, now_ns);
}
