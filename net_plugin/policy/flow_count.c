/* SPDX-License-Identifier: Apache-2.0 */
/* See flow_count.h. */
#include "net_plugin/policy/flow_count.h"

#include <string.h>

void flow_count_init(struct flow_count *count) {
  memset(count, 0, sizeof *count);
  count->level = count->most = count->end = FLOW_COUNT_GUESS;
  count->pause_ns = FLOW_COUNT_PAUSE_NS;
  count->retry_pause_ns = FLOW_COUNT_RETRY_NS;
}

void flow_count_join(struct flow_count *count, unsigned most) {
  count->is_learned = true;
  count->most = most > count->most ? most : count->most;
  count->end = count->most; /* another peer, perhaps another path */
}

static void flow_count_use(struct flow_count *count, unsigned level, uint64_t now_ns) {
  if (level < count->level) {
    count->kept = count->level;
    count->keep_ns = now_ns + FLOW_COUNT_KEEP_NS;
  }
  count->changes += level != count->level;
  count->mean = level != count->level ? 0 : count->mean;
  count->level = level;
}

/* Compares it with another level. speed: of this one. */
static void flow_count_try(struct flow_count *count, enum flow_count_state state, unsigned level,
                           uint64_t speed, uint64_t now_ns) {
  count->state = state;
  count->from = count->level;
  count->before = speed;
  count->sum = count->windows = 0;
  flow_count_use(count, level, now_ns);
}

/* The pause after this one. */
static uint64_t flow_count_longer(uint64_t pause_ns) {
  return 2 * pause_ns < FLOW_COUNT_PAUSE_MAX_NS ? 2 * pause_ns : FLOW_COUNT_PAUSE_MAX_NS;
}

/* Packets are lost, and there are many flows: fewer of them may lose less. */
static bool flow_count_is_crowded(const struct flow_count *count) {
  return count->flows > FLOW_COUNT_FEW &&
         count->retransmits * 100 >= count->packets * FLOW_COUNT_CROWDED_PERCENT;
}

static void flow_count_lost(struct flow_count *count, const struct limit_window *window) {
  const uint64_t kept = FLOW_COUNT_LOSS_WINDOWS - 1, of = FLOW_COUNT_LOSS_WINDOWS;
  count->packets = count->packets * kept / of + window->acked_bytes / FLOW_COUNT_PACKET_BYTES;
  count->retransmits = count->retransmits * kept / of + window->retransmits;
}

/* ---- more flows ---- */

static bool flow_count_may_climb(const struct flow_count *count) {
  bool are_open = count->level < FLOW_COUNT_GUESS; /* of the guess: they stay open */
  bool has_room = 2 * count->flows <= FLOW_COUNT_FLOWS_MAX && !flow_count_is_crowded(count);
  return count->level < count->end && (are_open || has_room);
}

static void flow_count_retry_later(struct flow_count *count) {
  count->retry_ns = count->ns + count->retry_pause_ns;
  count->retry_pause_ns = flow_count_longer(count->retry_pause_ns);
}

static void flow_count_end_climb(struct flow_count *count, uint64_t speed) {
  count->state = FLOW_COUNT_STEADY;
  count->end = count->level;
  count->usual = speed;
  count->others = 0;
  flow_count_retry_later(count);
}

static void flow_count_climb(struct flow_count *count, uint64_t speed, uint64_t now_ns) {
  if (flow_count_may_climb(count)) {
    flow_count_try(count, FLOW_COUNT_CLIMBING, count->level + 1, speed, now_ns);
  } else {
    flow_count_end_climb(count, speed);
  }
}

/* Windows differ, so the mean of some counts, unless the first ones leave no doubt. */
static void flow_count_climbed(struct flow_count *count, uint64_t speed, uint64_t now_ns) {
  bool is_guess = count->from == FLOW_COUNT_GUESS && count->flows <= FLOW_COUNT_FEW;
  bool is_crowded = flow_count_is_crowded(count);
  unsigned percent = is_crowded ? FLOW_COUNT_SURE_PERCENT
                     : is_guess ? FLOW_COUNT_GUESS_GAIN_PERCENT
                                : FLOW_COUNT_GAIN_PERCENT;
  count->sum += speed;
  count->windows++;
  if (is_crowded && count->windows < FLOW_COUNT_CROWDED_WINDOWS) {
    return;
  }
  uint64_t mean = count->sum / count->windows;
  bool is_sure = is_guess || mean < count->before ||
                 (count->windows > 1 && mean * 100 >= count->before * FLOW_COUNT_SURE_PERCENT);
  if (!is_sure && count->windows < FLOW_COUNT_GAIN_WINDOWS) {
    return;
  }
  if (mean * 100 < count->before * percent) {
    flow_count_use(count, count->from, now_ns);
    flow_count_end_climb(count, count->before);
  } else if (is_guess) {
    if (mean * 100 >= count->before * FLOW_COUNT_GAIN_PERCENT) {
      count->capped_ns = count->ns + FLOW_COUNT_PAUSE_MAX_NS;
    }
    count->retry_pause_ns = FLOW_COUNT_RETRY_NS;
    flow_count_climb(count, mean, now_ns);
  } else {
    count->was_crowded = is_crowded;
    flow_count_try(count, FLOW_COUNT_DESCENDED, count->from, mean, now_ns);
  }
}

/* Is the network still as it was when the last climb ended? */
static void flow_count_compare(struct flow_count *count, uint64_t speed) {
  bool is_other = speed * 100 < count->usual * FLOW_COUNT_OTHER_PERCENT ||
                  count->usual * 100 < speed * FLOW_COUNT_OTHER_PERCENT;
  count->others =
      count->usual > 0 && count->level == count->end && is_other ? count->others + 1 : 0;
  if (count->others == FLOW_COUNT_OTHER_WINDOWS) {
    count->end = count->most;
    count->due_ns = count->capped_ns = count->ns;
    count->others = 0;
  }
}

/* ---- fewer flows ---- */

static void flow_count_return(struct flow_count *count, uint64_t now_ns) {
  count->state = FLOW_COUNT_RETURNED;
  if (count->level == 0) {
    count->due_ns = count->ns + count->pause_ns;
    count->pause_ns = flow_count_longer(count->pause_ns);
  } else { /* flows are capped */
    count->capped_ns = count->ns + FLOW_COUNT_PAUSE_MAX_NS;
    count->retry_pause_ns = FLOW_COUNT_RETRY_NS;
  }
  flow_count_use(count, count->from, now_ns);
}

/* By acknowledged chunks: the load is told before the lanes are measured, so that the kernel's
 * count of a part may still be missing. */
void flow_count_part(struct flow_count *count, const struct limit_window *part, uint64_t now_ns) {
  if (count->state == FLOW_COUNT_DESCENDED && count->level == 0 && !count->was_crowded &&
      part->loaded_ns >= FLOW_COUNT_SOON_NS &&
      limit_speed(part) * 100 < count->before * FLOW_COUNT_POOR_PERCENT) {
    flow_count_return(count, now_ns);
  }
}

/* A window in which the number did not change is over. */
static void flow_count_decide(struct flow_count *count, bool is_network, uint64_t now_ns) {
  bool is_retry = count->ns >= count->retry_ns;
  bool is_crowded = flow_count_is_crowded(count);
  count->calm = is_network && !is_crowded ? 0 : count->calm + 1;
  count->end = is_retry ? count->most : count->end;
  bool wants_more = (is_retry && count->level < FLOW_COUNT_GUESS) || (is_network && !is_crowded);
  if (wants_more && flow_count_may_climb(count)) {
    flow_count_climb(count, count->mean, now_ns);
  } else if (count->calm >= FLOW_COUNT_CALM_WINDOWS && count->level > 0 &&
             count->ns >= count->due_ns && (is_crowded || count->ns >= count->capped_ns)) {
    count->was_crowded = is_crowded;
    flow_count_try(count, FLOW_COUNT_DESCENDED, 0, count->mean, now_ns);
  }
}

/* Where packets are lost speeds differ by a factor of ten from window to window. */
static void flow_count_descended(struct flow_count *count, uint64_t speed, uint64_t now_ns) {
  bool was_crowded = count->was_crowded, was_climb = count->level > 0;
  unsigned windows = was_crowded ? FLOW_COUNT_CROWDED_WINDOWS
                     : was_climb ? FLOW_COUNT_GAIN_WINDOWS
                                 : 1;
  count->sum += speed;
  count->windows++;
  uint64_t mean = count->sum / count->windows;
  bool is_poor = was_climb && !was_crowded && count->windows > 1 &&
                 mean * 100 < count->before * FLOW_COUNT_POOR_PERCENT;
  if (count->windows < windows && !is_poor) {
    return;
  }
  unsigned percent = was_crowded ? FLOW_COUNT_CROWDED_KEEP_PERCENT : FLOW_COUNT_KEEP_PERCENT;
  if (mean * 100 < count->before * percent) {
    flow_count_return(count, now_ns);
    return;
  }
  if (was_crowded) {
    count->retry_pause_ns =
        count->retry_pause_ns > FLOW_COUNT_PAUSE_NS ? count->retry_pause_ns : FLOW_COUNT_PAUSE_NS;
  }
  if (was_crowded || was_climb) {
    flow_count_end_climb(count, mean);
  } else {
    count->state = FLOW_COUNT_STEADY;
    count->pause_ns = FLOW_COUNT_PAUSE_NS;
    count->retry_pause_ns = FLOW_COUNT_RETRY_NS;
    flow_count_retry_later(count);
  }
}

void flow_count_window(struct flow_count *count, const struct limit_window *window, uint64_t ns,
                       uint64_t now_ns) {
  uint64_t speed = limit_wire_speed(window);
  count->ns += ns;
  flow_count_lost(count, window);
  switch (count->state) {
  case FLOW_COUNT_CLIMBING:
    flow_count_climbed(count, speed, now_ns);
    break;
  case FLOW_COUNT_RETURNED:
    flow_count_climb(count, speed, now_ns);
    break;
  case FLOW_COUNT_DESCENDED:
    flow_count_descended(count, speed, now_ns);
    break;
  case FLOW_COUNT_STEADY:
    if (!flow_count_is_crowded(count)) {
      flow_count_compare(count, speed);
    }
    count->mean = count->mean > 0 ? (count->mean * 3 + speed) / 4 : speed;
    flow_count_decide(count, limit_is_network(window), now_ns);
    break;
  }
}
