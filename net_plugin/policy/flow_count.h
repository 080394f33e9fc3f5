/* SPDX-License-Identifier: Apache-2.0 */
/* flow_count: how many flows the connections of an engine use, from what limits them (limit.h).
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * Level 0 is one flow of each path, FLOW_COUNT_GUESS the first guess of the connection, and each
 * further level twice as many. At the end of each window of bulk traffic:
 *
 *   the network is the limit      climb: one level more. Where that is faster, one level back, to
 *                                 see whether it was for its flows or because a job begins slowly
 *                                 (TCP, new memory). If for its flows they are capped: up, no
 *                                 level 0 for long, and the next climb. Else no climb until the
 *                                 speed is another, or for a pause: bursts may have misled it.
 *                                 Few flows (FLOW_COUNT_FEW) are not compared again
 *   the network is not the limit  level 0, since fewer flows cost less. Short messages pass in a
 *                                 burst where flows are capped, so that the network does not seem
 *                                 to be the limit. Then level 0 is much slower, which shows within
 *                                 milliseconds: back, climb, and not to level 0 again for a pause
 *
 * Packets that are lost while there are many flows are another reason to try level 0: where seven
 * hosts send to an eighth, whose switch has room for few packets, each further flow loses more. Not
 * where there are few: a policer drops packets of each flow alone.
 *
 * Level 0 is compared with the guess now and then: one flow that is capped does not seem to be
 * limited by the network where messages are short, and a ring of hosts may have misled the
 * comparison.
 *
 * Speed is what a connection delivers while it has anything in flight (limit_speed). Throughput
 * would not do: it is as low as what the application, and the other hosts, ask for.
 *
 * The connections of an engine share one count: they share a NIC, and a new connection starts with
 * what the others have learned. The flows of the first guess stay open, and take over at once where
 * one breaks. */
#ifndef NET_PLUGIN_POLICY_FLOW_COUNT_H
#define NET_PLUGIN_POLICY_FLOW_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limit.h"

enum flow_count_state {
  FLOW_COUNT_STEADY,
  FLOW_COUNT_DESCENDED, /* a level less than `from` was taken: is it as fast? */
  FLOW_COUNT_RETURNED,  /* it was not: more flows help, perhaps still more do */
  FLOW_COUNT_CLIMBING,  /* a level more than `from` was taken: is it faster? */
};

struct flow_count {
  bool is_learned; /* some connection joined: others use their first guess */
  enum flow_count_state state;
  unsigned level;
  unsigned most;    /* the highest level that some connection can have */
  unsigned flows;   /* that are up, of all connections */
  unsigned changes; /* of the level: links drop what they measured before */

  unsigned calm; /* windows in a row in which the network was not the limit */
  uint64_t mean; /* of limit_wire_speed at this level, older ones counting less; 0: none yet */

  /* Packets that were acknowledged, and that were sent again, older ones counting less. */
  uint64_t packets, retransmits;
  bool was_crowded; /* the reason for DESCENDED */

  unsigned from;    /* the level that the state tells of */
  uint64_t before;  /* the speed there, in KB/s */
  uint64_t sum;     /* of the speeds of the windows since */
  unsigned windows; /* how many these are */
  unsigned end;     /* no climb above this level: there the last one ended, or it is `most` */
  uint64_t usual;   /* the speed there; 0: no climb has ended */
  unsigned others;  /* windows in a row whose speed was another */

  uint64_t ns;        /* of all windows so far */
  uint64_t due_ns;    /* level 0 is not taken before, on the scale of ns */
  uint64_t pause_ns;  /* until it is taken again after it was too few */
  uint64_t capped_ns; /* more flows were faster: it is taken before only where packets are lost */

  uint64_t retry_ns;       /* after a climb has ended: the next one is tried then */
  uint64_t retry_pause_ns; /* until it is tried once more */

  unsigned kept; /* the level that stays open until keep_ns, though it is not used */
  uint64_t keep_ns;
};

void flow_count_init(struct flow_count *count);
/* A connection came whose highest level is this one. */
void flow_count_join(struct flow_count *count, unsigned most);

/* ---- facts ---- */

/* Flows came up (1), went away (-1). */
static inline void flow_count_changed(struct flow_count *count, int flows) {
  count->flows += (unsigned)flows;
}
/* So much of the window has passed. */
void flow_count_part(struct flow_count *count, const struct limit_window *part, uint64_t now_ns);
/* A window of bulk traffic at this level is over, which took so long. */
void flow_count_window(struct flow_count *count, const struct limit_window *window, uint64_t ns,
                       uint64_t now_ns);

/* ---- decisions ---- */

/* The level whose flows are to be open now. */
static inline unsigned flow_count_open(const struct flow_count *count, uint64_t now_ns) {
  return count->kept > count->level && now_ns < count->keep_ns ? count->kept : count->level;
}
/* The number of flows is what it will be for a while. */
static inline bool flow_count_is_steady(const struct flow_count *count) {
  return count->state == FLOW_COUNT_STEADY;
}

#endif
