/* SPDX-License-Identifier: Apache-2.0 */
/* trial: an A/B test that chooses the faster of two ways to move data. A pure state machine: no
 * clock, no threads.
 *
 *   small messages --bulk--> bulk --due--> trial --windows done--> bulk, the winner's way
 *   any --not bulk--> small messages
 *
 * Small messages always go the usual way. Bulk traffic goes by the last trial: windows of both ways
 * in pairs, each pair in random order, and the median rates compared; the other way must be faster
 * by 5 %. A window in which it is less than half as fast is cut short, and a winner that falls
 * behind what the usual way was worth is tried again within 5 s. Only busy time counts: gaps of a
 * millisecond or more, in which a job computes, are left out.
 *
 * Owns: nothing.  Threads: the caller serialises.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_TRIAL_H
#define COMMON_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

enum trial_way { TRIAL_USUAL, TRIAL_OTHER };
enum { TRIAL_WAYS = 2, TRIAL_PAIRS = 3 };

/* Bulk traffic before the first trial: TCP has found its speed by then. */
#define TRIAL_FIRST_NS 100000000ull

struct trial {
  bool can_switch;    /* else the way stays as it is */
  enum trial_way way; /* now */

  enum trial_way choice; /* of the last trial, for bulk traffic */
  bool is_bulk;
  uint64_t last_ns;               /* of the last bytes */
  uint64_t burst_bytes;           /* since the last gap */
  uint64_t slice_ns, slice_bytes; /* busy time and bytes that were not judged yet */
  uint64_t bulk_ns;               /* busy time with bulk traffic so far */
  uint64_t due_ns;                /* the next trial, on the scale of bulk_ns */
  uint64_t interval_ns;           /* from the last trial to the next; 0: none yet */
  uint64_t usual_rate;            /* of the last slice of bulk traffic that went the usual way */
  unsigned poor_slices;           /* in a row, in which what was chosen is slower than that */

  bool is_trying, is_settling; /* settling: what the last way left behind is not measured */
  unsigned window, discards;   /* windows done, windows given up */
  bool is_other_first;         /* in this pair */
  uint64_t window_ns, window_bytes;
  uint64_t rates[TRIAL_WAYS][TRIAL_PAIRS];
  uint64_t random;
};

/* way: to start with, or for ever if it cannot switch. first_ns: bulk traffic before the first
 * trial, so that two trials of the same bytes do not meet. seed: any number, another for each. */
void trial_init(struct trial *trial, enum trial_way way, bool can_switch, uint64_t first_ns,
                uint64_t seed);
/* Bytes were moved at this time. Look at the way afterwards. */
void trial_moved(struct trial *trial, uint64_t bytes, uint64_t now_ns);

#endif
