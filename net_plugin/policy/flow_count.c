/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_count.h. */
#include "net_plugin/policy/flow_count.h"

#include <string.h>

#include "common/random.h"

void flow_count_init(struct flow_count *count, uint64_t seed) {
  memset(count, 0, sizeof *count);
  count->doublings = count->most = FLOW_COUNT_GUESS;
  count->due_ns = FLOW_COUNT_FIRST_NS;
  count->is_growth_next = true;
  count->random = seed + 1;
}

void flow_count_join(struct flow_count *count, unsigned doublings) {
  count->most = doublings > count->most ? doublings : count->most;
}

/* ---- tries ---- */

static void start_window(struct flow_count *count) {
  if (count->window % 2 == 0) {
    count->is_more_first = (random_next(&count->random) & 1) != 0;
  }
  bool is_second = count->window % 2 != 0;
  count->way = count->is_more_first != is_second ? FLOW_COUNT_MORE : FLOW_COUNT_LESS;
  count->window_ns = count->window_bytes = count->backlog_bytes = 0;
  count->is_settling = true;
  count->settle_ns = count->settled_ns = 0;
}

static bool may_grow(const struct flow_count *count) {
  return count->doublings < count->most && 2 * count->flows <= FLOW_COUNT_FLOWS_MAX;
}

static void start_try(struct flow_count *count) {
  bool grows = count->is_growth_next ? may_grow(count) : count->doublings == 0;
  if (grows ? !may_grow(count) : count->doublings == 0) {
    count->due_ns = count->busy_ns + FLOW_COUNT_INTERVAL_NS; /* there is nothing to try */
    return;
  }
  count->is_growth_next = grows;
  count->is_trying = true;
  count->base = grows ? count->doublings : count->doublings - 1;
  count->window = count->discards = 0;
  start_window(count);
}

/* Flows that were in use and are not any more stay open for a while. Those of a vain try are
 * closed: they would be in the way of receivers that look where the next message comes. */
static void end_try(struct flow_count *count, enum flow_count_way winner, uint64_t now_ns) {
  unsigned doublings = count->base + (winner == FLOW_COUNT_MORE);
  if (doublings < count->doublings) {
    count->kept = count->doublings;
    count->keep_ns = now_ns + FLOW_COUNT_KEEP_NS;
  }
  count->is_trying = count->is_settling = false;
  count->best_rate = count->poor_windows = 0;
  count->window_ns = count->window_bytes = count->backlog_bytes = 0;
  if (doublings != count->doublings) {
    count->doublings = doublings;
    count->due_ns = count->busy_ns;
    return;
  }
  uint64_t interval_ns = count->interval_ns == 0 ? FLOW_COUNT_INTERVAL_NS : 2 * count->interval_ns;
  count->interval_ns =
      interval_ns < FLOW_COUNT_INTERVAL_MAX_NS ? interval_ns : FLOW_COUNT_INTERVAL_MAX_NS;
  count->due_ns = count->busy_ns + count->interval_ns;
  count->is_growth_next = !count->is_growth_next;
}

static uint64_t median(const uint64_t rates[FLOW_COUNT_PAIRS]) {
  uint64_t sorted[FLOW_COUNT_PAIRS];
  for (unsigned i = 0; i < FLOW_COUNT_PAIRS; i++) {
    unsigned at = i;
    for (; at > 0 && sorted[at - 1] > rates[i]; at--) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = rates[i];
  }
  return sorted[FLOW_COUNT_PAIRS / 2];
}

static bool is_below_guess(const struct flow_count *count) {
  return count->base < FLOW_COUNT_GUESS;
}

/* In every pair of windows so far. */
static bool is_always_ahead(const struct flow_count *count, uint64_t percent) {
  for (unsigned i = 0; i < count->window / 2; i++) {
    if (count->rates[FLOW_COUNT_MORE][i] * 100 < count->rates[FLOW_COUNT_LESS][i] * percent) {
      return false;
    }
  }
  return true;
}

/* All pairs of windows are complete. */
static bool needs_more(const struct flow_count *count) {
  uint64_t less = median(count->rates[FLOW_COUNT_LESS]);
  uint64_t more = median(count->rates[FLOW_COUNT_MORE]);
  if (is_below_guess(count)) { /* in doubt as many as the guess, whichever way the try goes */
    return less * 100 < more * (100 + FLOW_COUNT_GAIN_PERCENT);
  }
  if (count->is_growth_next) {
    return more * 100 >= less * (100 + FLOW_COUNT_GAIN_PERCENT) && is_always_ahead(count, 100);
  }
  return less * 100 < more * FLOW_COUNT_KEEP_PERCENT;
}

/* A pair of windows is complete. */
static void judge_pair(struct flow_count *count, uint64_t now_ns) {
  unsigned pairs = count->window / 2;
  uint64_t less = count->rates[FLOW_COUNT_LESS][pairs - 1];
  uint64_t more = count->rates[FLOW_COUNT_MORE][pairs - 1];
  if (pairs >= FLOW_COUNT_CLEAR_PAIRS && is_always_ahead(count, FLOW_COUNT_CLEAR_PERCENT)) {
    end_try(count, FLOW_COUNT_MORE, now_ns);
  } else if (less * 100 >= more * FLOW_COUNT_CLEAR_PERCENT && !is_below_guess(count)) {
    end_try(count, FLOW_COUNT_LESS, now_ns);
  } else if (pairs == FLOW_COUNT_PAIRS) {
    end_try(count, needs_more(count) ? FLOW_COUNT_MORE : FLOW_COUNT_LESS, now_ns);
  } else {
    start_window(count);
  }
}

/* ---- windows ---- */

/* KB/s, about. */
static uint64_t rate_of(uint64_t bytes, uint64_t ns) {
  return bytes * 1000 / (ns / 1000);
}

/* What became much slower than it was after the last try is tried again soon. */
static void watch(struct flow_count *count, uint64_t rate) {
  bool is_poor = rate * 100 < count->best_rate * FLOW_COUNT_POOR_PERCENT;
  count->best_rate = rate > count->best_rate ? rate : count->best_rate;
  count->poor_windows = is_poor ? count->poor_windows + 1 : 0;
  if (count->poor_windows == FLOW_COUNT_POOR_WINDOWS && count->interval_ns != 0) {
    count->due_ns -= count->interval_ns - FLOW_COUNT_INTERVAL_NS;
    count->interval_ns = FLOW_COUNT_INTERVAL_NS;
    count->is_growth_next = true;
    count->best_rate = rate;
  }
}

static void end_window(struct flow_count *count, uint64_t now_ns) {
  uint64_t ns = count->window_ns, rate = rate_of(count->window_bytes, ns);
  bool is_bulk = count->backlog_bytes * 2 >= count->window_bytes && count->window_bytes > 0;
  if (!count->is_trying) {
    count->window_ns = count->window_bytes = count->backlog_bytes = 0;
    count->busy_ns += is_bulk ? ns : 0;
    if (is_bulk) {
      watch(count, rate);
    }
    if (is_bulk && count->busy_ns >= count->due_ns) {
      start_try(count);
    }
    return;
  }
  count->busy_ns += ns;
  if (!is_bulk) {
    count->discards++;
    if (count->discards == FLOW_COUNT_DISCARDS) {
      end_try(count, count->is_growth_next ? FLOW_COUNT_LESS : FLOW_COUNT_MORE, now_ns);
    } else {
      start_window(count);
    }
    return;
  }
  count->rates[count->way][count->window / 2] = rate;
  count->window++;
  if (count->window % 2 == 0) {
    judge_pair(count, now_ns);
  } else {
    start_window(count);
  }
}

/* Ends when no connection has shown for a while that it is not ready, or when that takes long. */
static void settle(struct flow_count *count, uint64_t elapsed_ns, bool is_ready) {
  count->settle_ns += elapsed_ns;
  count->settled_ns = is_ready ? count->settled_ns + elapsed_ns : 0;
  count->is_settling =
      count->settled_ns < FLOW_COUNT_SETTLED_NS && count->settle_ns < FLOW_COUNT_SETTLE_MAX_NS;
}

/* Busy time that has passed. */
static uint64_t advance(struct flow_count *count, uint64_t now_ns) {
  /* Threads read the clock before they take the lock, so it may seem to go back a little. */
  uint64_t elapsed_ns = now_ns > count->last_ns ? now_ns - count->last_ns : 0;
  count->last_ns += elapsed_ns;
  elapsed_ns = count->outstanding_bytes > 0 ? elapsed_ns : 0;
  return elapsed_ns < FLOW_COUNT_WINDOW_NS ? elapsed_ns : FLOW_COUNT_WINDOW_NS;
}

void flow_count_sent(struct flow_count *count, uint64_t bytes, uint64_t now_ns) {
  if (count->outstanding_bytes == 0) {
    advance(count, now_ns); /* what was idle until now */
  }
  count->outstanding_bytes += bytes;
}

void flow_count_acked(struct flow_count *count, uint64_t bytes, uint64_t backlog_bytes,
                      bool is_ready, uint64_t now_ns) {
  uint64_t elapsed_ns = advance(count, now_ns);
  flow_count_dropped(count, bytes);
  if (count->is_settling) {
    settle(count, elapsed_ns, is_ready);
    return;
  }
  count->window_ns += elapsed_ns;
  count->window_bytes += bytes;
  count->backlog_bytes += backlog_bytes >= FLOW_COUNT_BACKLOG_BYTES ? bytes : 0;
  if (count->window_ns >= FLOW_COUNT_WINDOW_NS) {
    end_window(count, now_ns);
  }
}

void flow_count_dropped(struct flow_count *count, uint64_t bytes) {
  count->outstanding_bytes -= bytes < count->outstanding_bytes ? bytes : count->outstanding_bytes;
}
