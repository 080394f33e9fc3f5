/* SPDX-License-Identifier: Apache-2.0 */
/* flow_count: how many flows the connections of an engine use, learned from their throughput.
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * The count is the first guess of a connection with FLOW_COUNT_GUESS doublings, half of it with one
 * less, and so on. It is found by hill climbing, under bulk load:
 *
 *   watching --due--> opening --flows are up--> windows, in pairs --decided--> watching
 *
 * A try compares the count with its double, or with its half. The windows of a pair, one with each
 * count, come in random order. Pairs that differ clearly decide; otherwise the medians do.
 * Twice as many flows must gain FLOW_COUNT_GAIN_PERCENT, and be ahead in every pair: capped flows
 * give nearly 100. Half as many are kept if they give FLOW_COUNT_KEEP_PERCENT: fewer flows cost
 * less CPU, cache and descriptors. Fewer than the first guess must gain FLOW_COUNT_GAIN_PERCENT in
 * every try, upwards or downwards, or the guess comes back. A try that changes the count is
 * followed by the next one in the same direction at once. One that does not is followed by one in
 * the other direction, after a pause that is doubled each time. So the number of tries, and of
 * changes, is bounded whatever noise there is.
 *
 * The connections of an engine share one count, and the throughput is that of all of them: they
 * share a NIC. A connection that looked at itself would count as gain what it takes from others. It
 * also means that a new connection starts with what the others have learned.
 *
 * A connection uses at least one flow of each path. Those of the first guess stay open, and take
 * over at once where one breaks.
 *
 * Time counts while anything is in flight. A window counts if most of its bytes were acknowledged
 * while their connection had FLOW_COUNT_BACKLOG_BYTES in flight. After a change of flows the window
 * waits until those that are not used have drained, and those that are used are up. */
#ifndef NET_PLUGIN_POLICY_FLOW_COUNT_H
#define NET_PLUGIN_POLICY_FLOW_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limits.h"

enum flow_count_way { FLOW_COUNT_LESS, FLOW_COUNT_MORE };

struct flow_count {
  unsigned doublings; /* what is learned */
  unsigned most;      /* doublings that some connection can have */
  unsigned flows;     /* that are up, of all connections */
  unsigned kept;      /* doublings that stay open until keep_ns, though they are not used */
  uint64_t keep_ns;
  bool is_growth_next; /* the direction of the next try */

  uint64_t outstanding_bytes; /* sent and not acknowledged */
  uint64_t last_ns;
  uint64_t busy_ns;     /* under bulk load, so far */
  uint64_t due_ns;      /* the next try, on the scale of busy_ns */
  uint64_t interval_ns; /* from the last try that changed nothing to the next; 0: none yet */
  uint64_t window_ns, window_bytes, backlog_bytes; /* backlog: acknowledged while there was one */
  uint64_t best_rate;                              /* of a watched window since the last try */
  unsigned poor_windows;                           /* in a row, that were much slower */

  bool is_trying;
  unsigned base; /* doublings of the smaller count that is tried; the larger one has one more */
  enum flow_count_way way; /* of this window */
  bool is_settling, is_more_first;
  uint64_t settle_ns, settled_ns; /* in all; without a connection that is not ready */
  unsigned window, discards;      /* windows done, windows given up */
  uint64_t rates[2][FLOW_COUNT_PAIRS];
  uint64_t random;
};

/* seed: of the order of windows. */
void flow_count_init(struct flow_count *count, uint64_t seed);
/* A connection came that can have so many doublings. */
void flow_count_join(struct flow_count *count, unsigned doublings);

/* ---- facts ---- */

/* Flows came up (1), went away (-1). */
static inline void flow_count_changed(struct flow_count *count, int flows) {
  count->flows += (unsigned)flows;
}
void flow_count_sent(struct flow_count *count, uint64_t bytes, uint64_t now_ns);
/* backlog_bytes: what its connection had in flight before. is_ready: all flows that it is to use
 * are up, and the others have nothing in flight. */
void flow_count_acked(struct flow_count *count, uint64_t bytes, uint64_t backlog_bytes,
                      bool is_ready, uint64_t now_ns);
/* So much is not in flight any more, and was not acknowledged. */
void flow_count_dropped(struct flow_count *count, uint64_t bytes);

/* Something else is being tried: no try begins for a window's time. */
static inline void flow_count_wait(struct flow_count *count) {
  uint64_t due_ns = count->busy_ns + FLOW_COUNT_WINDOW_NS;
  count->due_ns = count->due_ns > due_ns ? count->due_ns : due_ns;
}

/* ---- decisions ---- */

/* Doublings that are used now. */
static inline unsigned flow_count_used(const struct flow_count *count) {
  return count->is_trying ? count->base + (count->way == FLOW_COUNT_MORE) : count->doublings;
}
/* Doublings that are to be open now. */
static inline unsigned flow_count_open(const struct flow_count *count, uint64_t now_ns) {
  unsigned open = count->is_trying ? count->base + 1 : count->doublings;
  return count->kept > open && now_ns < count->keep_ns ? count->kept : open;
}

#endif
