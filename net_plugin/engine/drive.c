/* SPDX-License-Identifier: Apache-2.0 */
/* See drive.h. */
#include "net_plugin/engine/drive.h"

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
/* TCP has found its speed by then. */
#define FIRST_TRIAL_NS (100 * NS_PER_MS)
#define FIRST_INTERVAL_NS (5 * NS_PER_S)
#define LAST_INTERVAL_NS (300 * NS_PER_S)
/* A hand-over must be worth it. */
#define GAIN_PERCENT 105
/* A trial that had to give up so many windows, since traffic was not bulk in them, is over. */
#define DISCARDS_MAX 12

void drive_init(struct drive *drive, enum drive_mode mode, bool can_switch, uint64_t seed) {
  memset(drive, 0, sizeof *drive);
  drive->can_switch = can_switch;
  drive->mode = mode;
  drive->choice = DRIVE_INLINE;
  drive->due_ns = FIRST_TRIAL_NS;
  drive->random = seed;
}

static bool draw(struct drive *drive) {
  return random_next(&drive->random) & 1;
}

static uint64_t median(const uint64_t rates[DRIVE_PAIRS]) {
  uint64_t a = rates[0], b = rates[1], c = rates[2];
  uint64_t low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

/* ---- trials ---- */

static void start_window(struct drive *drive) {
  drive->window_ns = drive->window_bytes = 0;
  drive->is_settling = true;
}

static void start_trial(struct drive *drive) {
  drive->is_trying = true;
  drive->window = drive->discards = 0;
  drive->is_thread_first = draw(drive);
  start_window(drive);
}

static void end_trial(struct drive *drive, enum drive_mode winner) {
  bool is_news = winner != drive->choice || drive->interval_ns == 0;
  uint64_t interval_ns = is_news ? FIRST_INTERVAL_NS : 2 * drive->interval_ns;
  drive->interval_ns = interval_ns < LAST_INTERVAL_NS ? interval_ns : LAST_INTERVAL_NS;
  drive->due_ns = drive->bulk_ns + drive->interval_ns;
  drive->choice = winner;
  drive->is_trying = false;
}

static enum drive_mode window_mode(const struct drive *drive) {
  bool is_second = drive->window % 2;
  return drive->is_thread_first != is_second ? DRIVE_THREAD : DRIVE_INLINE;
}

static void try_slice(struct drive *drive, uint64_t bytes, uint64_t ns) {
  if (drive->is_settling) {
    drive->is_settling = false;
    return;
  }
  drive->window_bytes += bytes;
  drive->window_ns += ns;
  if (drive->window_ns < WINDOW_NS) {
    return;
  }
  uint64_t rate = drive->window_bytes * 1000 / (drive->window_ns / NS_PER_US); /* KB/s, about */
  drive->rates[window_mode(drive)][drive->window / 2] = rate;
  drive->window++;
  if (drive->window == 2 * DRIVE_PAIRS) {
    bool is_worth_it = median(drive->rates[DRIVE_THREAD]) * 100 >=
                       median(drive->rates[DRIVE_INLINE]) * GAIN_PERCENT;
    end_trial(drive, is_worth_it ? DRIVE_THREAD : DRIVE_INLINE);
    return;
  }
  if (drive->window % 2 == 0) {
    drive->is_thread_first = draw(drive);
  }
  start_window(drive);
}

/* ---- what the traffic is ---- */

static void judge(struct drive *drive, bool is_bulk) {
  bool was_bulk = drive->is_bulk;
  drive->is_bulk = is_bulk;
  if (!is_bulk && was_bulk && drive->is_trying) {
    start_window(drive);
    if (++drive->discards == DISCARDS_MAX) {
      end_trial(drive, DRIVE_INLINE);
    }
  }
  drive->mode = !is_bulk ? DRIVE_INLINE : drive->is_trying ? window_mode(drive) : drive->choice;
}

static void end_slice(struct drive *drive) {
  uint64_t bytes = drive->slice_bytes, ns = drive->slice_ns;
  uint64_t least = drive->is_bulk ? BULK_RATE / 2 : BULK_RATE;
  bool is_bulk = bytes * 1000 >= ns / NS_PER_US * (least / 1000);
  drive->slice_bytes = drive->slice_ns = 0;
  if (is_bulk && drive->is_bulk) {
    drive->bulk_ns += ns;
    if (drive->is_trying) {
      try_slice(drive, bytes, ns);
    } else if (drive->bulk_ns >= drive->due_ns) {
      start_trial(drive);
    }
  }
  judge(drive, is_bulk);
}

void drive_moved(struct drive *drive, uint64_t bytes, uint64_t now_ns) {
  if (!drive->can_switch) {
    return;
  }
  /* Threads read the clock before they take the lock, so it may seem to go back a little. */
  uint64_t gap_ns = now_ns > drive->last_ns ? now_ns - drive->last_ns : 0;
  drive->last_ns += gap_ns;
  if (gap_ns >= GAP_NS) {
    if (drive->is_bulk && drive->burst_bytes < BULK_BURST) {
      judge(drive, false); /* a message now and then has no slices */
    }
    drive->burst_bytes = 0;
    gap_ns = 0;
  }
  drive->burst_bytes += bytes;
  drive->slice_bytes += bytes;
  drive->slice_ns += gap_ns;
  if (drive->slice_ns >= SLICE_NS) {
    end_slice(drive);
  }
}

/* ---- how many ---- */

unsigned drive_engines(unsigned cpus, unsigned nics) {
  unsigned engines = cpus < 8 ? 1 : cpus < 32 ? 2 : DRIVE_ENGINES_MAX;
  unsigned share = nics ? DRIVE_ENGINES_MAX / nics : DRIVE_ENGINES_MAX;
  share = share ? share : 1;
  return engines < share ? engines : share;
}

bool drive_has_room(unsigned cpus, unsigned engines) {
  return cpus >= 4 && cpus >= engines + 2;
}
