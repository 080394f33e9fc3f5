/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_count.h. */
#include "net_plugin/policy/flow_count.h"

#include <string.h>

#include "common/random.h"

void flow_count_init(struct flow_count *count, uint64_t day_ns, uint64_t seed) {
  memset(count, 0, sizeof *count);
  count->time.day_ns = day_ns;
  count->is_next_at_once = true;
  count->level = count->most = FLOW_COUNT_GUESS;
  count->guess = 1;
  count->due_ns = FLOW_COUNT_FIRST_NS;
  count->is_growth_next = true;
  count->random = seed + 1;
}

void flow_count_join(struct flow_count *count, unsigned most, unsigned guess) {
  count->most = most > count->most ? most : count->most;
  count->guess = guess > count->guess ? guess : count->guess;
}

/* ---- tries ---- */

static void clear_window(struct flow_count *count) {
  count->window_ns = count->window_flow_ns = count->window_bytes = count->backlog_bytes = 0;
}

static void start_window(struct flow_count *count) {
  if (count->window % 2 == 0) {
    count->is_more_first = (random_next(&count->random) & 1) != 0;
  }
  bool is_second = count->window % 2 != 0;
  count->way = count->is_more_first != is_second ? FLOW_COUNT_MORE : FLOW_COUNT_LESS;
  clear_window(count);
  count->is_settling = true;
  count->settle_ns = count->settled_ns = 0;
}

static bool may_grow(const struct flow_count *count) {
  bool are_open = count->level < FLOW_COUNT_GUESS; /* of the guess: they stay open */
  return count->level < count->most && (are_open || 2 * count->flows <= FLOW_COUNT_FLOWS_MAX);
}

static void start_try(struct flow_count *count) {
  try_time_begin(&count->time, &count->random);
  bool grows = count->is_growth_next ? may_grow(count) : count->level == 0;
  if (grows ? !may_grow(count) : count->level == 0) {
    count->due_ns = count->busy_ns + FLOW_COUNT_INTERVAL_NS; /* there is nothing to try */
    return;
  }
  count->is_growth_next = grows;
  count->is_trying = true;
  count->base = grows ? count->level : count->level - 1;
  count->window = count->discards = 0;
  memset(count->delivered_bytes, 0, sizeof count->delivered_bytes);
  start_window(count);
}

/* Flows that were in use and are not any more stay open for a while. Those of a vain try are
 * closed: they would be in the way of receivers that look where the next message comes. */
static void end_try(struct flow_count *count, enum flow_count_way winner, uint64_t now_ns) {
  unsigned level = count->base + (winner == FLOW_COUNT_MORE);
  if (level < count->level) {
    count->kept = count->level;
    count->keep_ns = now_ns + FLOW_COUNT_KEEP_NS;
  }
  count->is_trying = count->is_settling = false;
  count->best_rate = count->poor_windows = 0;
  clear_window(count);
  bool goes_on = level != count->level && level > 0;
  bool is_first = count->interval_ns == 0 && level == FLOW_COUNT_GUESS && count->is_growth_next;
  count->level = level;
  count->due_ns = count->busy_ns;
  count->is_next_at_once = goes_on || is_first;
  if (goes_on) {
    return;
  }
  count->is_growth_next = !count->is_growth_next;
  if (is_first) {
    return;
  }
  uint64_t interval_ns = count->interval_ns == 0 ? FLOW_COUNT_INTERVAL_NS : 2 * count->interval_ns;
  count->interval_ns =
      interval_ns < FLOW_COUNT_INTERVAL_MAX_NS ? interval_ns : FLOW_COUNT_INTERVAL_MAX_NS;
  count->due_ns += count->interval_ns;
}

/* What the median of all pairs can be at least and at most, by those that are complete. */
struct bounds {
  uint64_t least, most;
};

static struct bounds median_bounds(const uint64_t *rates, unsigned pairs) {
  uint64_t sorted[FLOW_COUNT_PAIRS];
  for (unsigned i = 0; i < pairs; i++) {
    unsigned at = i;
    for (; at > 0 && sorted[at - 1] > rates[i]; at--) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = rates[i];
  }
  unsigned left = FLOW_COUNT_PAIRS - pairs, middle = FLOW_COUNT_PAIRS / 2;
  return (struct bounds){ .least = left <= middle ? sorted[middle - left] : 0,
                          .most = pairs > middle ? sorted[middle] : UINT64_MAX };
}

static bool is_below_guess(const struct flow_count *count) {
  return count->base < FLOW_COUNT_GUESS;
}

static bool is_growth(const struct flow_count *count) {
  return count->is_growth_next && !is_below_guess(count);
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

static bool is_worth_it(const struct flow_count *count, uint64_t less, uint64_t more) {
  if (is_growth(count) || is_below_guess(count)) {
    uint64_t gain = is_below_guess(count) ? FLOW_COUNT_CAPACITY_PERCENT : FLOW_COUNT_GAIN_PERCENT;
    return more / (100 + gain) >= less / 100;
  }
  return less / FLOW_COUNT_KEEP_PERCENT < more / 100;
}

static bool delivers_more(const struct flow_count *count) {
  const uint64_t *bytes = count->delivered_bytes;
  return bytes[FLOW_COUNT_MORE] * 100 >= bytes[FLOW_COUNT_LESS] * (100 + FLOW_COUNT_GAIN_PERCENT);
}

/* A pair of windows is complete. A try ends as soon as further pairs cannot change what the medians
 * say. */
static void judge_pair(struct flow_count *count, uint64_t now_ns) {
  unsigned pairs = count->window / 2;
  const uint64_t *less = count->rates[FLOW_COUNT_LESS], *more = count->rates[FLOW_COUNT_MORE];
  struct bounds less_bounds = median_bounds(less, pairs), more_bounds = median_bounds(more, pairs);
  bool are_ahead =
      pairs >= FLOW_COUNT_CLEAR_PAIRS && is_always_ahead(count, FLOW_COUNT_CLEAR_PERCENT);
  bool is_behind = is_growth(count) && !is_always_ahead(count, 100);
  bool is_surely_worth_it = is_worth_it(count, less_bounds.most, more_bounds.least) &&
                            (!is_growth(count) || pairs == FLOW_COUNT_PAIRS);
  if (are_ahead || (is_surely_worth_it && !is_behind)) {
    end_try(count, FLOW_COUNT_MORE, now_ns);
  } else if (is_behind || !is_worth_it(count, less_bounds.least, more_bounds.most)) {
    bool is_missed = is_below_guess(count) && delivers_more(count);
    end_try(count, is_missed ? FLOW_COUNT_MORE : FLOW_COUNT_LESS, now_ns);
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
    count->is_next_at_once = true;
    count->is_growth_next = true;
    count->best_rate = rate;
  }
}

/* Of as many flows as one has at level 0. */
static uint64_t capacity_of(const struct flow_count *count) {
  uint64_t flow_ns = count->window_flow_ns > 1000 ? count->window_flow_ns : 1000;
  uint64_t flows = count->way == FLOW_COUNT_MORE ? count->guess : 1;
  return rate_of(count->window_bytes, flow_ns) * flows;
}

static bool is_bulk_window(const struct flow_count *count) {
  return count->backlog_bytes * 2 >= count->window_bytes && count->window_bytes > 0;
}

static void look_for_try(struct flow_count *count) {
  uint64_t pause_ns = count->is_next_at_once ? 0 : count->interval_ns;
  if (count->busy_ns >= count->due_ns &&
      try_time_has_come(&count->time, pause_ns, count->last_ns)) {
    start_try(count);
  }
}

static void end_window(struct flow_count *count, uint64_t now_ns) {
  uint64_t ns = count->window_ns, rate = rate_of(count->window_bytes, ns);
  bool is_bulk = is_bulk_window(count);
  if (!count->is_trying) {
    clear_window(count);
    count->busy_ns += is_bulk ? ns : 0;
    if (is_bulk) {
      watch(count, rate);
      look_for_try(count);
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
  count->delivered_bytes[count->way] += count->window_bytes;
  count->rates[count->way][count->window / 2] = is_below_guess(count) ? capacity_of(count) : rate;
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
static void advance(struct flow_count *count, uint64_t now_ns) {
  /* Threads read the clock before they take the lock, so it may seem to go back a little. */
  uint64_t elapsed_ns = now_ns > count->last_ns ? now_ns - count->last_ns : 0;
  count->last_ns += elapsed_ns;
  elapsed_ns = count->outstanding_bytes > 0 ? elapsed_ns : 0;
  elapsed_ns = elapsed_ns < FLOW_COUNT_WINDOW_NS ? elapsed_ns : FLOW_COUNT_WINDOW_NS;
  count->elapsed_ns += elapsed_ns;
  count->elapsed_flow_ns += elapsed_ns * count->busy_flows;
}

void flow_count_sent(struct flow_count *count, uint64_t bytes, uint64_t now_ns) {
  if (count->outstanding_bytes == 0) {
    advance(count, now_ns); /* what was idle until now */
  }
  count->outstanding_bytes += bytes;
}

void flow_count_busy(struct flow_count *count, int flows, uint64_t now_ns) {
  advance(count, now_ns);
  count->busy_flows += (unsigned)flows;
}

void flow_count_acked(struct flow_count *count, uint64_t bytes, uint64_t backlog_bytes,
                      bool is_ready, uint64_t now_ns) {
  advance(count, now_ns);
  uint64_t elapsed_ns = count->elapsed_ns, flow_ns = count->elapsed_flow_ns;
  count->elapsed_ns = count->elapsed_flow_ns = 0;
  flow_count_dropped(count, bytes, 0);
  if (count->is_settling) {
    settle(count, elapsed_ns, is_ready);
    return;
  }
  count->window_ns += elapsed_ns;
  count->window_flow_ns += flow_ns;
  count->window_bytes += bytes;
  count->backlog_bytes += backlog_bytes >= FLOW_COUNT_BACKLOG_BYTES ? bytes : 0;
  if (count->window_ns >= FLOW_COUNT_WINDOW_NS) {
    end_window(count, now_ns);
  } else if (count->time.slot != 0 && is_bulk_window(count)) {
    look_for_try(count); /* not 20 ms later than other hosts */
  }
}

void flow_count_dropped(struct flow_count *count, uint64_t bytes, unsigned flows) {
  count->outstanding_bytes -= bytes < count->outstanding_bytes ? bytes : count->outstanding_bytes;
  count->busy_flows -= flows < count->busy_flows ? flows : count->busy_flows;
}
