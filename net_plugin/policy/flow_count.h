/* SPDX-License-Identifier: Apache-2.0 */
/* flow_count: how many flows the connections of an engine use, learned from their throughput.
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * Level 0 is one flow of each path, FLOW_COUNT_GUESS the first guess of the connection, and each
 * further level twice as many. The level is found by hill climbing, under bulk load:
 *
 *   watching --due--> opening --flows are up--> windows, in pairs --decided--> watching
 *
 * A try compares the level with the next or the last one. The windows of a pair, one with each
 * level, come in random order. The medians decide, or the first two pairs if more flows are far
 * ahead. Twice as many flows must gain FLOW_COUNT_GAIN_PERCENT, and be ahead in every pair: capped
 * flows give nearly 100. Half as many are kept if they give FLOW_COUNT_KEEP_PERCENT: fewer flows
 * cost less CPU, cache and descriptors. A try that changes the level is followed by the next one in
 * the same direction at once. One that does not is followed by one in the other direction, at first
 * at once, then after a pause that is doubled each time, on all hosts at the same time
 * (try_time.h). So the number of tries, and of changes, is bounded whatever noise there is.
 *
 * What is compared is the throughput, but below the first guess the capacity: the rate of a mean
 * flow while it is busy, times the number of flows. Throughput does not tell flows that are capped,
 * and needed whenever their connection is alone, from flows that share a full NIC: with both, fewer
 * flows deliver as much as long as other connections fill the NIC. The rate of a flow stays what it
 * is in the first case, and grows in the second. The guess is used if it has
 * FLOW_COUNT_CAPACITY_PERCENT more capacity than one flow, or delivers FLOW_COUNT_GAIN_PERCENT
 * more, whichever way the try goes. There is nothing between the two: a few flows that fill the NIC
 * together may be capped, and be too few alone.
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
#include "net_plugin/policy/try_time.h"

enum flow_count_way { FLOW_COUNT_LESS, FLOW_COUNT_MORE };

struct flow_count {
  unsigned level; /* what is learned */
  unsigned most;  /* the highest level that some connection can have */
  unsigned guess; /* flows of the first guess for each one of level 0 */
  unsigned flows; /* that are up, of all connections */
  unsigned kept;  /* the level that stays open until keep_ns, though it is not used */
  uint64_t keep_ns;
  bool is_growth_next; /* the direction of the next try */

  uint64_t outstanding_bytes; /* sent and not acknowledged */
  unsigned busy_flows;        /* that have some of it */
  uint64_t last_ns;
  uint64_t elapsed_ns, elapsed_flow_ns; /* until last_ns, of no window yet; of busy flows */
  uint64_t busy_ns;                     /* under bulk load, so far */
  uint64_t due_ns;                      /* the next try, on the scale of busy_ns */
  uint64_t interval_ns; /* from the last try that changed nothing to the next; 0: none yet */
  bool is_next_at_once; /* the next try follows the last one, or is the first */
  struct try_time time; /* of the next one otherwise */
  uint64_t window_ns, window_flow_ns;   /* flow_ns: the sum of the busy flows' times */
  uint64_t window_bytes, backlog_bytes; /* backlog: acknowledged while there was one */
  uint64_t best_rate;                   /* of a watched window since the last try */
  unsigned poor_windows;                /* in a row, that were much slower */

  bool is_trying;
  unsigned base; /* the lower one of the levels that are tried; the other one is the next */
  enum flow_count_way way; /* of this window */
  bool is_settling, is_more_first;
  uint64_t settle_ns, settled_ns;      /* in all; without a connection that is not ready */
  unsigned window, discards;           /* windows done, windows given up */
  uint64_t rates[2][FLOW_COUNT_PAIRS]; /* throughput or capacity of the windows */
  uint64_t delivered_bytes[2];         /* in all windows of the try */
  uint64_t random;
};

/* day_ns: the time of day at 0 of the clock. seed: of the order of windows. */
void flow_count_init(struct flow_count *count, uint64_t day_ns, uint64_t seed);
/* A connection came whose highest level is this one. guess: see above. */
void flow_count_join(struct flow_count *count, unsigned most, unsigned guess);

/* ---- facts ---- */

/* Flows came up (1), went away (-1). */
static inline void flow_count_changed(struct flow_count *count, int flows) {
  count->flows += (unsigned)flows;
}
void flow_count_sent(struct flow_count *count, uint64_t bytes, uint64_t now_ns);
/* A flow has something in flight now (1), or nothing any more (-1). */
void flow_count_busy(struct flow_count *count, int flows, uint64_t now_ns);
/* backlog_bytes: what its connection had in flight before. is_ready: all flows that it is to use
 * are up, and the others have nothing in flight. */
void flow_count_acked(struct flow_count *count, uint64_t bytes, uint64_t backlog_bytes,
                      bool is_ready, uint64_t now_ns);
/* So much, of so many flows, is not in flight any more, and was not acknowledged. */
void flow_count_dropped(struct flow_count *count, uint64_t bytes, unsigned flows);

/* Something else is being tried: no try begins at the end of this window, which may be nearly twice
 * as long as it is to be. */
static inline void flow_count_wait(struct flow_count *count) {
  uint64_t due_ns = count->busy_ns + 2 * FLOW_COUNT_WINDOW_NS;
  count->due_ns = count->due_ns > due_ns ? count->due_ns : due_ns;
}

/* ---- decisions ---- */

/* The level that is used now. */
static inline unsigned flow_count_used(const struct flow_count *count) {
  return count->is_trying ? count->base + (count->way == FLOW_COUNT_MORE) : count->level;
}
/* The level whose flows are to be open now. */
static inline unsigned flow_count_open(const struct flow_count *count, uint64_t now_ns) {
  unsigned open = count->is_trying ? count->base + 1 : count->level;
  return count->kept > open && now_ns < count->keep_ns ? count->kept : open;
}

#endif
