/* SPDX-License-Identifier: Apache-2.0 */
/* See stall.h. */
#include "net_plugin/observe/stall.h"

#include <stdio.h>

#include "net_plugin/observe/limits.h"

static double seconds(uint64_t ns) {
  return (double)ns * 1e-9;
}

/* The two times may come from different clock reads: never negative. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns) {
  return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Most flows of which it is known what limits them. */
static bool is_network_limited(const struct connection_snapshot *seen) {
  unsigned others = 0;
  for (unsigned limit = POLICY_LIMIT_UNKNOWN + 1; limit < POLICY_LIMIT_NETWORK; limit++) {
    others += seen->limited[limit];
  }
  return seen->limited[POLICY_LIMIT_NETWORK] > others;
}

void stall_find_facts(const struct connection_snapshot *seen, uint64_t now_ns,
                      struct stall_facts *facts) {
  uint64_t heard_ns = seen->link.heard_ns ? seen->link.heard_ns : seen->created_ns;
  *facts = (struct stall_facts){
    .is_waiting = seen->has_oldest && !seen->is_detached && !seen->error,
    .is_sender = seen->is_sender,
    .has_credit = seen->oldest.number < seen->link.credited,
    .stalled_ns = since(seen->still_ns, now_ns),
    .done_bytes = seen->oldest.moved,
    .silent_ns = since(heard_ns, now_ns),
    .flows_up = seen->link.lanes_up,
    .is_network_limited = is_network_limited(seen),
    .flows_lost = seen->still_losses,
  };
}

enum stall_kind stall_classify(const struct stall_facts *facts) {
  if (!facts->is_waiting || facts->stalled_ns < STALL_LEAST_NS) {
    return STALL_NONE;
  }
  if (facts->flows_up == 0) {
    return STALL_NO_FLOW;
  }
  if (facts->silent_ns >= STALL_SILENT_NS) {
    return STALL_PEER_SILENT;
  }
  if (facts->is_sender) {
    return facts->has_credit ? STALL_SEND_STUCK : STALL_AWAITS_RECEIVE;
  }
  return facts->done_bytes ? STALL_HALF_ARRIVED : STALL_AWAITS_SEND;
}

const char *stall_reason(enum stall_kind kind) {
  switch (kind) {
  case STALL_NONE:
    return "nothing";
  case STALL_AWAITS_RECEIVE:
    return "the peer has not posted its receive";
  case STALL_AWAITS_SEND:
    return "the peer has not begun to send";
  case STALL_NO_FLOW:
    return "no flow is up";
  case STALL_PEER_SILENT:
    return "the peer is silent";
  case STALL_SEND_STUCK:
    return "the peer has posted its receive and does not acknowledge the data";
  case STALL_HALF_ARRIVED:
    return "the rest of the message is missing";
  }
  return "unknown";
}

/* What the user can check. */
static const char *advice(enum stall_kind kind, const struct stall_facts *facts) {
  switch (kind) {
  case STALL_NO_FLOW:
    return "Check the NICs of both hosts and the network between them";
  case STALL_PEER_SILENT:
    return "Check that the process there is running and not stopped, and the network of its host";
  case STALL_SEND_STUCK:
  case STALL_HALF_ARRIVED:
    return "Check the network between the hosts for packet loss, and the log of that host";
  default:
    if (facts->flows_lost > 0) {
      return "Flows were lost meanwhile: look at the network first (packet loss, MTU, a firewall "
             "that forgets flows); else the peer's program is busy or waits itself";
    }
    return facts->is_network_limited
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

bool stall_is_due(uint64_t stalled_ns, unsigned reports, uint64_t interval_ns) {
  uint64_t intervals = interval_ns ? stalled_ns / interval_ns : 0;
  return intervals >> (reports < 63 ? reports : 63) > 0;
}

const char *stall_describe(const struct connection_snapshot *seen, uint64_t now_ns,
                           const char *host, char text[STALL_TEXT_MAX]) {
  struct stall_facts facts;
  char limits[96];
  stall_find_facts(seen, now_ns, &facts);
  enum stall_kind kind = stall_classify(&facts);
  snprintf(text, STALL_TEXT_MAX,
           "%s %s waits for %s: %s %llu of connection %llu has stalled for %.1f s with %llu of "
           "%llu bytes done: %s; last data from the peer %.1f s ago, %u of %u flows up%s. %s",
           host, seen->nic, seen->peer, seen->is_sender ? "send" : "receive",
           (unsigned long long)seen->oldest.number, (unsigned long long)seen->number,
           seconds(since(seen->still_ns, now_ns)), (unsigned long long)seen->oldest.moved,
           (unsigned long long)seen->oldest.bytes, stall_reason(kind), seconds(facts.silent_ns),
           seen->link.lanes_up, seen->link.lanes_wanted, limits_text(seen, limits),
           advice(kind, &facts));
  return text;
}
