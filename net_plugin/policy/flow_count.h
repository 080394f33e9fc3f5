/* SPDX-License-Identifier: Apache-2.0 */
/* flow_count: how many flows the connections of an engine use, from what limits them (limit.h).
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * Level 0 is one flow of each path, FLOW_COUNT_GUESS the first guess of the connection, and each
 * further level twice as many. At the end of each window of bulk traffic:
 *
 *   the network is the limit      -> climb: one level more; again while capacity grows; back one
 *                                    level where it does not, and no climb until that changes
 *   the network is not the limit  -> level 0, since fewer flows cost less; if the network is the
 *                                    limit there, back, and not to level 0 again for a pause
 *
 * What flows that are capped have in common with flows that share a full NIC is that the network is
 * the limit; what tells them apart is the capacity, the rate of one flow while it is in flight
 * times the flows: capped flows keep their rate when there are more of them. Throughput would not
 * do: it is as low as what the application, and the other hosts, ask for.
 *
 * The connections of an engine share one count: they share a NIC, and a new connection starts with
 * what the others have learned. Those of the first guess stay open, and take over at once where one
 * breaks. */
#ifndef NET_PLUGIN_POLICY_FLOW_COUNT_H
#define NET_PLUGIN_POLICY_FLOW_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limit.h"
#include "net_plugin/policy/limits.h"

struct flow_count {
  bool is_learned; /* some connection joined: others use their first guess */
  unsigned level;
  unsigned most;    /* the highest level that some connection can have */
  unsigned guess;   /* flows of the first guess for each one of level 0 */
  unsigned flows;   /* that are up, of all connections */
  unsigned changes; /* of the level: links drop what they measured before */

  bool is_climbing;
  unsigned from;   /* the level before the climb's last step */
  uint64_t before; /* the capacity there */
  unsigned end;    /* the level at which the last climb ended; `most`: none did */
  uint64_t usual;  /* the capacity there; 0: not known */
  unsigned others; /* windows in a row whose capacity was another */

  unsigned back;     /* level 0 was taken instead of this level; 0: it was not, or for good */
  uint64_t ns;       /* of all windows so far */
  uint64_t due_ns;   /* level 0 is not taken before, on the scale of ns */
  uint64_t pause_ns; /* until it is taken again after it was too few */

  unsigned kept; /* the level that stays open until keep_ns, though it is not used */
  uint64_t keep_ns;
};

void flow_count_init(struct flow_count *count);
/* A connection came whose highest level is this one. guess: see above. */
void flow_count_join(struct flow_count *count, unsigned most, unsigned guess);

/* ---- facts ---- */

/* Flows came up (1), went away (-1). */
static inline void flow_count_changed(struct flow_count *count, int flows) {
  count->flows += (unsigned)flows;
}
/* A window of bulk traffic at this level is over, which took so long. */
void flow_count_window(struct flow_count *count, const struct limit_sum *sum, uint64_t ns,
                       uint64_t now_ns);

/* ---- decisions ---- */

/* The level whose flows are to be open now. */
static inline unsigned flow_count_open(const struct flow_count *count, uint64_t now_ns) {
  return count->kept > count->level && now_ns < count->keep_ns ? count->kept : count->level;
}
/* Flows of a connection at this level, for each one of level 0. */
static inline unsigned flow_count_flows(const struct flow_count *count, unsigned level) {
  return level < FLOW_COUNT_GUESS ? 1 : count->guess << (level - FLOW_COUNT_GUESS);
}
/* More flows may help: nobody knows yet whether they do. */
static inline bool flow_count_may_climb(const struct flow_count *count) {
  return count->is_climbing || count->level < count->end;
}

#endif
