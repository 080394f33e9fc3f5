/* SPDX-License-Identifier: Apache-2.0 */
/* stall: classifies a request that makes no progress: a fault, or backpressure because the peer's
 * program has not posted its side.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_OBSERVE_STALL_H
#define NET_PLUGIN_OBSERVE_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/connection/connection_snapshot.h"

enum stall_kind {
  STALL_NONE,           /* no request, or it makes progress */
  STALL_AWAITS_RECEIVE, /* the peer has not posted the receive for this send */
  STALL_AWAITS_SEND,    /* the peer has not begun to send what this receive is for */
  /* faults: */
  STALL_NO_FLOW,     /* no flow is up */
  STALL_PEER_SILENT, /* flows are up, and the peer sends nothing, not even keepalives */
  STALL_SEND_STUCK,  /* the peer has posted the receive, and does not acknowledge the data */
  STALL_HALF_ARRIVED /* the rest of a message is missing */
};

struct stall_facts {
  bool is_waiting, is_sender, has_credit;
  uint64_t stalled_ns; /* time without progress; valid if is_waiting */
  uint64_t done_bytes;
  uint64_t silent_ns; /* since anything was received from the peer */
  unsigned flows_up;
  bool is_network_limited; /* most of those of which it is known what limits them */
  uint64_t flows_lost;     /* since it stalled */
};

void stall_find_facts(const struct connection_snapshot *seen, uint64_t now_ns,
                      struct stall_facts *facts);
enum stall_kind stall_classify(const struct stall_facts *facts);
static inline bool stall_is_fault(enum stall_kind kind) {
  return kind >= STALL_NO_FLOW;
}
/* For people: "the peer has not posted its receive". */
const char *stall_reason(enum stall_kind kind);

/* The first report is due after interval_ns, each following one after twice the time; 0: never. */
bool stall_is_due(uint64_t stalled_ns, unsigned reports, uint64_t interval_ns);

/* One log line: which request is stalled, for how long, by whom and why, and what limits the flows.
 * Returns text. */
enum { STALL_TEXT_MAX = 768 };
const char *stall_describe(const struct connection_snapshot *seen, uint64_t now_ns,
                           const char *host, char text[STALL_TEXT_MAX]);

#endif
