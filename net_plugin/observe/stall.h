/* SPDX-License-Identifier: Apache-2.0 */
/* stall: who waits for whom. A request that has not moved for a while is a fault, or only tells
 * that the peer's program is busy elsewhere; which one, is decided here.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_OBSERVE_STALL_H
#define NET_PLUGIN_OBSERVE_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "net_plugin/connection/connection_snapshot.h"

/* While something is outstanding, a peer that works answers a PING at least every 2.5 s (link/). */
#define STALL_SILENT_NS (4 * NS_PER_S)

/* What moved less long ago counts as moving: the engine looks once a second (observe.c). */
#define STALL_LEAST_NS (2 * NS_PER_S)

enum stall_kind {
  STALL_NONE,           /* nothing waits, or it moves */
  STALL_AWAITS_RECEIVE, /* the peer has not posted the receive for this send */
  STALL_AWAITS_SEND,    /* the peer has not begun to send what this receive is for */
  /* faults: */
  STALL_NO_FLOW,     /* no flow is up */
  STALL_PEER_SILENT, /* flows are up, and nothing comes from the peer, not even signs of life */
  STALL_SEND_STUCK,  /* the peer wants it, and it does not get through */
  STALL_HALF_ARRIVED /* the rest of a message does not come */
};

struct stall_facts {
  bool is_waiting, is_sender, has_credit;
  uint64_t still_for_ns; /* so long nothing has moved; valid if something waits */
  uint64_t moved_bytes;
  uint64_t silent_ns; /* since the peer was heard last */
  unsigned flows_up;
};

void stall_find_facts(const struct connection_snapshot *seen, uint64_t now_ns,
                      struct stall_facts *facts);
enum stall_kind stall_classify(const struct stall_facts *facts);
static inline bool stall_is_fault(enum stall_kind kind) {
  return kind >= STALL_NO_FLOW;
}
/* "the peer has not posted its receive": what is waited for. */
const char *stall_reason(enum stall_kind kind);

/* The first report is due after interval_ns, each further one after twice the time; 0: never. */
bool stall_is_due(uint64_t still_for_ns, unsigned reports, uint64_t interval_ns);

/* One line: who waits for whom, since when, and why. Returns text. */
enum { STALL_TEXT_MAX = 768 };
const char *stall_describe(const struct connection_snapshot *seen, uint64_t now_ns,
                           const char *host, char text[STALL_TEXT_MAX]);

#endif
