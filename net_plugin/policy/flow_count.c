/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_count.h. */
#include "net_plugin/policy/flow_count.h"

#include <string.h>

void flow_count_init(struct flow_count *count) {
  memset(count, 0, sizeof *count);
  count->level = count->most = count->end = FLOW_COUNT_GUESS;
  count->guess = 1;
  count->pause_ns = FLOW_COUNT_PAUSE_NS;
}

void flow_count_join(struct flow_count *count, unsigned most, unsigned guess) {
  count->is_learned = true;
  count->most = most > count->most ? most : count->most;
  count->guess = guess > count->guess ? guess : count->guess;
  count->end = count->most; /* another peer, perhaps another path */
}

static void flow_count_use(struct flow_count *count, unsigned level, uint64_t now_ns) {
  if (level < count->level) {
    count->kept = count->level;
    count->keep_ns = now_ns + FLOW_COUNT_KEEP_NS;
  }
  count->changes += level != count->level;
  count->level = level;
}

static bool flow_count_may_open(const struct flow_count *count) {
  bool are_open = count->level < FLOW_COUNT_GUESS; /* of the guess: they stay open */
  return count->level < count->most && (are_open || 2 * count->flows <= FLOW_COUNT_FLOWS_MAX);
}

static void flow_count_climb_to(struct flow_count *count, unsigned level, uint64_t capacity,
                                uint64_t now_ns) {
  count->is_climbing = true;
  count->from = count->level;
  count->before = capacity;
  flow_count_use(count, level, now_ns);
}

static void flow_count_end_climb(struct flow_count *count, uint64_t capacity) {
  count->is_climbing = false;
  count->end = count->level;
  count->usual = capacity;
  count->others = 0;
}

/* The window after a step of a climb. */
static void flow_count_step(struct flow_count *count, uint64_t capacity, uint64_t now_ns) {
  unsigned gain =
      count->from < FLOW_COUNT_GUESS ? FLOW_COUNT_FIRST_GAIN_PERCENT : FLOW_COUNT_GAIN_PERCENT;
  if (capacity / (100 + gain) < count->before / 100) {
    flow_count_use(count, count->from, now_ns);
    flow_count_end_climb(count, count->before);
  } else if (flow_count_may_open(count) && count->level < count->end) {
    flow_count_climb_to(count, count->level + 1, capacity, now_ns);
  } else {
    flow_count_end_climb(count, capacity);
  }
}

/* Where the last climb ended, the network gives more, or less, than it did then. */
static void flow_count_compare(struct flow_count *count, uint64_t capacity) {
  bool is_other = capacity * 100 < count->usual * FLOW_COUNT_OTHER_PERCENT ||
                  count->usual * 100 < capacity * FLOW_COUNT_OTHER_PERCENT;
  count->others = count->level == count->end && is_other ? count->others + 1 : 0;
  if (count->others == FLOW_COUNT_OTHER_WINDOWS) {
    count->end = count->most;
    count->others = 0;
  }
}

/* The network is the limit at level 0, which was taken since it was not at another level. */
static void flow_count_return(struct flow_count *count, uint64_t capacity, uint64_t now_ns) {
  unsigned back = count->back;
  count->back = 0;
  count->due_ns = count->ns + count->pause_ns;
  uint64_t pause_ns = 2 * count->pause_ns;
  count->pause_ns = pause_ns < FLOW_COUNT_PAUSE_MAX_NS ? pause_ns : FLOW_COUNT_PAUSE_MAX_NS;
  flow_count_climb_to(count, back, capacity, now_ns);
}

void flow_count_window(struct flow_count *count, const struct limit_sum *sum, uint64_t ns,
                       uint64_t now_ns) {
  bool is_network = limit_network_percent(sum) >= LIMIT_NETWORK_PERCENT;
  uint64_t capacity = limit_flow_rate(sum) * flow_count_flows(count, count->level);
  count->ns += ns;
  if (count->is_climbing) {
    flow_count_step(count, capacity, now_ns);
    return;
  }
  if (is_network && count->level == 0 && count->back > 0) {
    flow_count_return(count, capacity, now_ns);
    return;
  }
  flow_count_compare(count, capacity);
  if (is_network && count->level < count->end && flow_count_may_open(count)) {
    flow_count_climb_to(count, count->level + 1, capacity, now_ns);
  } else if (!is_network && count->level > 0 && count->ns >= count->due_ns) {
    count->back = count->level;
    flow_count_use(count, 0, now_ns);
  }
}
