/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */
#include "common/trial.h"

#include <string.h>

#include "common/clock.h"
#include "common/random.h"

/* A gap between bytes that is longer is not busy time. */
#define GAP_NS (1 * NS_PER_MS)
/* Busy time after which it is judged what the traffic is. */
#define SLICE_NS (2 * NS_PER_MS)
/* Bytes per second that make it bulk; half of that and it still is. */
#define BULK_RATE (256u << 20)
#define BULK_BURST (BULK_RATE / (NS_PER_S / SLICE_NS))
#define WINDOW_NS (20 * NS_PER_MS)
#define POOR_WINDOW_NS (6 * NS_PER_MS) /* of the other way at less than half of the usual rate */
#define FIRST_INTERVAL_NS (5 * NS_PER_S)
#define LAST_INTERVAL_NS (300 * NS_PER_S)
/* A change must be worth it. */
#define GAIN_PERCENT 105
/* Slices in a row in which the other way, chosen, is slower than the usual one was. */
#define POOR_SLICES 10
/* A trial that had to give up so many windows, since traffic was not bulk in them, is over. */
#define DISCARDS_MAX 12
/* Where the other way is so bad that traffic is not bulk any more, it is not tried for long. */
#define DISCARDS_OF_OTHER 3

void trial_init(struct trial *trial, enum trial_way way, bool can_switch, uint64_t first_ns,
                uint64_t seed) {
  memset(trial, 0, sizeof *trial);
  trial->can_switch = can_switch;
  trial->way = way;
  trial->choice = TRIAL_USUAL;
  trial->due_ns = first_ns;
  trial->random = seed;
}

static bool draw(struct trial *trial) {
  return random_next(&trial->random) & 1;
}

static uint64_t median(const uint64_t rates[TRIAL_PAIRS]) {
  uint64_t a = rates[0], b = rates[1], c = rates[2];
  uint64_t low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

/* ---- trials ---- */

static void start_window(struct trial *trial) {
  trial->window_ns = trial->window_bytes = 0;
  trial->is_settling = true;
}

static void start_trial(struct trial *trial) {
  trial->is_trying = true;
  trial->window = trial->discards = 0;
  trial->is_other_first = draw(trial);
  start_window(trial);
}

static void end_trial(struct trial *trial, enum trial_way winner) {
  bool is_news = winner != trial->choice || trial->interval_ns == 0;
  uint64_t interval_ns = is_news ? FIRST_INTERVAL_NS : 2 * trial->interval_ns;
  trial->interval_ns = interval_ns < LAST_INTERVAL_NS ? interval_ns : LAST_INTERVAL_NS;
  trial->due_ns = trial->bulk_ns + trial->interval_ns;
  trial->choice = winner;
  trial->is_trying = trial->is_settling = false;
}

static enum trial_way window_way(const struct trial *trial) {
  bool is_second = trial->window % 2;
  return trial->is_other_first != is_second ? TRIAL_OTHER : TRIAL_USUAL;
}

/* KB/s, about. */
static uint64_t rate_of(uint64_t bytes, uint64_t ns) {
  return bytes * 1000 / (ns / NS_PER_US);
}

static void try_slice(struct trial *trial, uint64_t bytes, uint64_t ns) {
  if (trial->is_settling) {
    trial->is_settling = false;
    return;
  }
  trial->window_bytes += bytes;
  trial->window_ns += ns;
  uint64_t rate = rate_of(trial->window_bytes, trial->window_ns);
  bool is_poor = trial->way == TRIAL_OTHER && rate < trial->usual_rate / 2;
  if (trial->window_ns < (is_poor ? POOR_WINDOW_NS : WINDOW_NS)) {
    return;
  }
  trial->rates[trial->way][trial->window / 2] = rate;
  trial->window++;
  if (trial->window == 2 * TRIAL_PAIRS) {
    bool is_worth_it =
        median(trial->rates[TRIAL_OTHER]) * 100 >= median(trial->rates[TRIAL_USUAL]) * GAIN_PERCENT;
    end_trial(trial, is_worth_it ? TRIAL_OTHER : TRIAL_USUAL);
    return;
  }
  if (trial->window % 2 == 0) {
    trial->is_other_first = draw(trial);
  }
  start_window(trial);
}

/* ---- what the traffic is ---- */

static void judge(struct trial *trial, bool is_bulk) {
  bool was_bulk = trial->is_bulk;
  trial->is_bulk = is_bulk;
  if (!is_bulk && was_bulk && trial->is_trying) {
    start_window(trial);
    trial->discards += trial->way == TRIAL_OTHER ? DISCARDS_OF_OTHER : 1;
    if (trial->discards >= DISCARDS_MAX) {
      end_trial(trial, TRIAL_USUAL);
    }
  }
  trial->way = !is_bulk ? TRIAL_USUAL : trial->is_trying ? window_way(trial) : trial->choice;
}

/* What has become slower since the last trial is tried again soon. */
static void watch_choice(struct trial *trial, uint64_t rate) {
  bool is_poor = !trial->is_trying && trial->way == TRIAL_OTHER && rate < trial->usual_rate;
  trial->poor_slices = is_poor ? trial->poor_slices + 1 : 0;
  if (trial->poor_slices == POOR_SLICES) {
    trial->due_ns -= trial->interval_ns - FIRST_INTERVAL_NS;
    trial->interval_ns = FIRST_INTERVAL_NS;
  }
}

static void end_slice(struct trial *trial) {
  uint64_t bytes = trial->slice_bytes, ns = trial->slice_ns;
  uint64_t rate = rate_of(bytes, ns);
  bool is_bulk = rate >= (trial->is_bulk ? BULK_RATE / 2 : BULK_RATE) / 1000;
  trial->slice_bytes = trial->slice_ns = 0;
  watch_choice(trial, rate);
  if (is_bulk && trial->is_bulk) {
    trial->bulk_ns += ns;
    if (trial->way == TRIAL_USUAL && !trial->is_settling) {
      trial->usual_rate = rate;
    }
    if (trial->is_trying) {
      try_slice(trial, bytes, ns);
    } else if (trial->bulk_ns >= trial->due_ns) {
      start_trial(trial);
    }
  }
  judge(trial, is_bulk);
}

void trial_moved(struct trial *trial, uint64_t bytes, uint64_t now_ns) {
  if (!trial->can_switch) {
    return;
  }
  /* Threads read the clock before they take the lock, so it may seem to go back a little. */
  uint64_t gap_ns = now_ns > trial->last_ns ? now_ns - trial->last_ns : 0;
  trial->last_ns += gap_ns;
  if (gap_ns >= GAP_NS) {
    if (trial->is_bulk && trial->burst_bytes < BULK_BURST) {
      judge(trial, false); /* a message now and then has no slices */
    }
    trial->burst_bytes = 0;
    gap_ns = 0;
  }
  trial->burst_bytes += bytes;
  trial->slice_bytes += bytes;
  trial->slice_ns += gap_ns;
  if (trial->slice_ns >= SLICE_NS) {
    end_slice(trial);
  }
}
