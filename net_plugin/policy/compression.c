/* SPDX-License-Identifier: Apache-2.0 */
/* See compression.h. */
#include "net_plugin/policy/compression.h"

#include <string.h>

#include "common/random.h"

void compression_init(struct compression *compression, uint64_t day_ns, uint64_t seed) {
  memset(compression, 0, sizeof *compression);
  compression->due_ns = COMPRESSION_FIRST_NS;
  compression->random = seed + 1;
  compression->time.day_ns = day_ns;
}

/* Traffic before coding, of what was sent: 135 if 100 bytes carried what had been 135. Chunks are
 * coded before they are acknowledged, so a window may have saved more than it counted. */
static unsigned shorter_percent(uint64_t bytes, uint64_t saved) {
  uint64_t most = bytes / 100 * 95;
  saved = saved < most ? saved : most;
  return bytes > saved ? (unsigned)(bytes * 100 / (bytes - saved)) : 100;
}

static uint64_t percent_of(uint64_t part, uint64_t whole) {
  return whole > 0 ? part * 100 / whole : 0;
}

/* KB/s, about. */
static uint64_t rate_of(uint64_t bytes, uint64_t ns) {
  return bytes * 1000 / (ns / 1000 + 1);
}

static void clear_window(struct compression *compression) {
  compression->window_ns = compression->window_bytes = compression->backlog_bytes = 0;
  compression->byte_ns = compression->saved_bytes = 0;
}

/* ---- tries ---- */

/* What was taken before is sent as it was: the window begins when that is acknowledged. */
static void start_window(struct compression *compression) {
  bool is_second = compression->window % 2 != 0;
  if (!is_second) {
    compression->is_coding_first = (random_next(&compression->random) & 1) != 0;
  }
  compression->is_coding = compression->is_coding_first != is_second;
  compression->settle_bytes = compression->outstanding_bytes;
  compression->settle_ns = 0;
  clear_window(compression);
}

static void start_try(struct compression *compression) {
  try_time_begin(&compression->time, &compression->random);
  compression->is_trying = true;
  compression->tries++;
  compression->window = compression->discards = 0;
  compression->verdict = 0;
  compression->try_bytes = compression->try_saved_bytes = compression->lost_ns = 0;
  start_window(compression);
}

static unsigned try_percent(const struct compression *compression) {
  return shorter_percent(compression->try_bytes, compression->try_saved_bytes);
}

/* In the last window of the try that was as it goes on; 0: there was none. Not in the first window
 * after it, in which much was sent in another form. */
static uint64_t tried_rate(const struct compression *compression, enum compression_state state) {
  unsigned pairs = compression->window / 2;
  if (pairs == 0) {
    return 0;
  }
  const struct compression_window *last =
      &compression->windows[state != COMPRESSION_OFF][pairs - 1];
  return rate_of(last->bytes, last->ns);
}

static void end_try(struct compression *compression, enum compression_state state,
                    bool is_repeated) {
  uint64_t interval_ns = compression->interval_ns == 0 || is_repeated
                             ? COMPRESSION_INTERVAL_NS
                             : 2 * compression->interval_ns;
  compression->interval_ns =
      interval_ns < COMPRESSION_INTERVAL_MAX_NS ? interval_ns : COMPRESSION_INTERVAL_MAX_NS;
  compression->earliest_ns = compression->busy_ns + compression->lost_ns * COMPRESSION_LOSS_PART;
  uint64_t due_ns = compression->busy_ns + compression->interval_ns;
  compression->due_ns = due_ns > compression->earliest_ns ? due_ns : compression->earliest_ns;
  compression->turns += state != compression->state;
  compression->state = state;
  compression->is_trying = false;
  compression->usual_rate = tried_rate(compression, state);
  compression->drift_windows = 0;
  clear_window(compression);
}

/* What a pair of windows says. */
struct gain {
  uint64_t bytes_percent; /* delivered with coding, of what was without */
  uint64_t delay_percent; /* time in flight without coding, of what it was with */
};

static struct gain gain_of(const struct compression *compression, unsigned pair) {
  const struct compression_window *off = &compression->windows[false][pair];
  const struct compression_window *on = &compression->windows[true][pair];
  return (struct gain){ percent_of(rate_of(on->bytes, on->ns), rate_of(off->bytes, off->ns)),
                        percent_of(off->delay_ns, on->delay_ns) };
}

/* What must be gained: half of what the shorter chunks allow. */
static uint64_t needed_percent(const struct compression *compression) {
  return 100 + (try_percent(compression) - 100) / 2;
}

/* 1: coding pays, -1: it does not, 0: nobody can tell. */
static int judge_gain(const struct compression *compression, struct gain gain) {
  uint64_t needed = needed_percent(compression);
  uint64_t best = gain.bytes_percent > gain.delay_percent ? gain.bytes_percent : gain.delay_percent;
  if (gain.bytes_percent >= COMPRESSION_KEEP_PERCENT && best >= needed) {
    return 1;
  }
  bool is_loss = gain.bytes_percent < COMPRESSION_LOSS_PERCENT || best < (needed + 100) / 2;
  return is_loss ? -1 : 0;
}

static uint64_t median(const uint64_t values[COMPRESSION_PAIRS]) {
  uint64_t sorted[COMPRESSION_PAIRS];
  for (unsigned i = 0; i < COMPRESSION_PAIRS; i++) {
    unsigned at = i;
    for (; at > 0 && sorted[at - 1] > values[i]; at--) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = values[i];
  }
  return sorted[COMPRESSION_PAIRS / 2];
}

static struct gain median_gain(const struct compression *compression) {
  uint64_t bytes[COMPRESSION_PAIRS], delays[COMPRESSION_PAIRS];
  for (unsigned i = 0; i < COMPRESSION_PAIRS; i++) {
    struct gain gain = gain_of(compression, i);
    bytes[i] = gain.bytes_percent;
    delays[i] = gain.delay_percent;
  }
  return (struct gain){ median(bytes), median(delays) };
}

/* The time that the worse one of a pair took longer for its bytes than the other would have. */
static uint64_t lost_ns(const struct compression *compression, unsigned pair) {
  const struct compression_window *off = &compression->windows[false][pair];
  const struct compression_window *on = &compression->windows[true][pair];
  uint64_t percent = gain_of(compression, pair).bytes_percent;
  if (percent < 100) {
    return (on->ns + on->settle_ns) * (100 - percent) / 100;
  }
  return (off->ns + off->settle_ns) * (percent - 100) / percent;
}

static void decide(struct compression *compression, struct gain gain, bool pays) {
  bool has_relief = gain.delay_percent >= needed_percent(compression) &&
                    gain.bytes_percent >= COMPRESSION_LOSS_PERCENT;
  end_try(compression, pays ? COMPRESSION_ON : COMPRESSION_OFF, !pays && has_relief);
}

/* A pair of windows is complete. */
static void judge_pair(struct compression *compression) {
  unsigned pairs = compression->window / 2;
  struct gain gain = gain_of(compression, pairs - 1);
  compression->lost_ns += lost_ns(compression, pairs - 1);
  compression->verdict += judge_gain(compression, gain);
  if (compression->verdict >= COMPRESSION_CLEAR_PAIRS ||
      compression->verdict <= -COMPRESSION_CLEAR_PAIRS ||
      gain.bytes_percent < COMPRESSION_BAD_PERCENT) {
    decide(compression, gain, compression->verdict > 0);
  } else if (pairs == COMPRESSION_PAIRS) {
    gain = median_gain(compression);
    decide(compression, gain, judge_gain(compression, gain) > 0);
  } else {
    start_window(compression);
  }
}

/* ---- windows ---- */

static void take_window(struct compression *compression) {
  struct compression_window *window =
      &compression->windows[compression->is_coding][compression->window / 2];
  *window = (struct compression_window){
    .ns = compression->window_ns,
    .bytes = compression->window_bytes,
    .delay_ns = compression->byte_ns / compression->window_bytes,
    .settle_ns = compression->settle_ns,
  };
  if (compression->is_coding) {
    compression->try_bytes += compression->window_bytes;
    compression->try_saved_bytes += compression->saved_bytes;
    if (try_percent(compression) < COMPRESSION_SHORTER_PERCENT) {
      end_try(compression, COMPRESSION_LISTENING, false);
      return;
    }
  }
  compression->window++;
  if (compression->window % 2 == 0) {
    judge_pair(compression);
  } else {
    start_window(compression);
  }
}

static void discard_window(struct compression *compression) {
  compression->discards++;
  if (compression->discards == COMPRESSION_DISCARDS) {
    end_try(compression, compression->state, false);
  } else {
    start_window(compression);
  }
}

/* Does the network carry something else than at the last try? What chunks hold may change: the
 * codec leaves alone what does not become shorter. */
static bool has_drifted(struct compression *compression, uint64_t rate) {
  if (compression->usual_rate == 0) {
    compression->usual_rate = rate;
  }
  bool is_other = rate * 100 < compression->usual_rate * COMPRESSION_DRIFT_PERCENT ||
                  compression->usual_rate * 100 < rate * COMPRESSION_DRIFT_PERCENT;
  compression->drift_windows = is_other ? compression->drift_windows + 1 : 0;
  return compression->drift_windows >= COMPRESSION_DRIFT_WINDOWS;
}

/* What was found out holds no more. A network that carries more than before may not be the limit
 * any more, so chunks are sent as they are until that is known. */
static void forget(struct compression *compression, uint64_t rate) {
  if (compression->state == COMPRESSION_ON && rate > compression->usual_rate) {
    compression->state = COMPRESSION_OFF;
    compression->turns++;
  }
  compression->due_ns = compression->earliest_ns;
  compression->interval_ns = 0;
  compression->drift_windows = 0;
  compression->usual_rate = rate;
}

/* A window while nothing is tried. */
static void watch(struct compression *compression, bool is_free) {
  unsigned percent = shorter_percent(compression->window_bytes, compression->saved_bytes);
  uint64_t delay_ns = compression->byte_ns / compression->window_bytes;
  compression->rate = rate_of(compression->window_bytes, compression->window_ns);
  bool is_heard =
      compression->state == COMPRESSION_LISTENING && percent >= COMPRESSION_SHORTER_PERCENT;
  if (is_heard || has_drifted(compression, compression->rate)) {
    forget(compression, compression->rate);
  }
  clear_window(compression);
  bool is_due = compression->busy_ns >= compression->due_ns &&
                (compression->state != COMPRESSION_LISTENING || is_heard);
  bool is_held_up = compression->state == COMPRESSION_ON || delay_ns >= COMPRESSION_DELAY_NS;
  if (is_due && is_free && is_held_up &&
      try_time_has_come(&compression->time, compression->interval_ns, compression->last_ns)) {
    start_try(compression);
  } else if (is_heard) {
    compression->state = COMPRESSION_OFF; /* not before it is known to pay */
    compression->turns++;
  }
}

static void end_window(struct compression *compression, bool is_free) {
  bool is_bulk = compression->backlog_bytes * 2 >= compression->window_bytes;
  compression->busy_ns += is_bulk || compression->is_trying ? compression->window_ns : 0;
  if (!is_bulk && compression->is_trying) {
    discard_window(compression);
  } else if (!is_bulk) {
    clear_window(compression);
  } else if (compression->is_trying) {
    take_window(compression);
  } else {
    watch(compression, is_free);
  }
}

/* Enough time, and enough bytes that one chunk more or less does not matter; or coding is so much
 * slower that a part of the window tells. */
static bool is_window_over(const struct compression *compression) {
  uint64_t ns = compression->window_ns;
  if (compression->window_bytes == 0) {
    return false;
  }
  bool is_full =
      ns >= COMPRESSION_WINDOW_NS &&
      (compression->window_bytes >= COMPRESSION_WINDOW_BYTES || ns >= COMPRESSION_WINDOW_MAX_NS);
  bool is_hopeless =
      compression->is_trying && compression->is_coding && ns >= COMPRESSION_WINDOW_NS / 4 &&
      rate_of(compression->window_bytes, ns) * 100 < compression->rate * COMPRESSION_BAD_PERCENT;
  return is_full || (is_hopeless && compression->state != COMPRESSION_ON);
}

/* Adds up the busy time that has passed. */
static uint64_t advance(struct compression *compression, uint64_t now_ns) {
  /* Threads read the clock before they take the lock, so it may seem to go back a little. */
  uint64_t elapsed_ns = now_ns > compression->last_ns ? now_ns - compression->last_ns : 0;
  compression->last_ns += elapsed_ns;
  elapsed_ns = compression->outstanding_bytes > 0 ? elapsed_ns : 0;
  elapsed_ns = elapsed_ns < COMPRESSION_WINDOW_NS ? elapsed_ns : COMPRESSION_WINDOW_NS;
  compression->byte_ns += elapsed_ns * compression->outstanding_bytes;
  return elapsed_ns;
}

void compression_sent(struct compression *compression, uint64_t bytes, uint64_t now_ns) {
  compression->window_ns += advance(compression, now_ns);
  compression->outstanding_bytes += bytes;
}

void compression_dropped(struct compression *compression, uint64_t bytes) {
  compression->outstanding_bytes -=
      bytes < compression->outstanding_bytes ? bytes : compression->outstanding_bytes;
}

/* What was taken before the window is on its way; it is not waited for very long. */
static bool is_settling(struct compression *compression, uint64_t bytes) {
  if (!compression->is_trying || compression->settle_bytes == 0) {
    return false;
  }
  compression->settle_bytes -=
      bytes < compression->settle_bytes ? bytes : compression->settle_bytes;
  compression->settle_ns += compression->window_ns;
  compression->busy_ns += compression->window_ns;
  if (compression->settle_ns >= COMPRESSION_SETTLE_MAX_NS) {
    compression->settle_bytes = 0;
  }
  compression->window_ns = compression->byte_ns = compression->saved_bytes = 0;
  return true;
}

void compression_acked(struct compression *compression, uint64_t bytes, uint64_t backlog_bytes,
                       bool is_free, uint64_t now_ns) {
  compression->window_ns += advance(compression, now_ns);
  compression_dropped(compression, bytes);
  if (is_settling(compression, bytes)) {
    return;
  }
  compression->window_bytes += bytes;
  compression->backlog_bytes += backlog_bytes >= COMPRESSION_BACKLOG_BYTES ? bytes : 0;
  if (is_window_over(compression)) {
    end_window(compression, is_free);
  }
}
