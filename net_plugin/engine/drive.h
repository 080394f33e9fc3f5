/* SPDX-License-Identifier: Apache-2.0 */
/* drive: decides who moves an engine's bytes, NCCL's threads (inline) or the engine's own, by
 * trying both. A pure state machine: facts in, mode out; no clock, no threads.
 *
 *   small messages --bulk--> bulk --due--> trial --windows done--> bulk, with the winner's mode
 *   any --not bulk--> small messages
 *
 * Small messages are always inline, since a hand-over costs more than they do. Bulk traffic goes by
 * the last trial: windows of both modes in pairs, each pair in random order, and the median rates
 * compared. Only busy time counts: gaps of a millisecond or more, in which a job computes, are left
 * out.
 *
 * Owns: nothing.  Threads: the caller serialises.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_ENGINE_DRIVE_H
#define NET_PLUGIN_ENGINE_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

enum drive_mode { DRIVE_INLINE, DRIVE_THREAD };
enum { DRIVE_MODES = 2, DRIVE_PAIRS = 3 };

struct drive {
  bool can_switch;      /* else the mode stays as it is */
  enum drive_mode mode; /* now */

  enum drive_mode choice; /* of the last trial, for bulk traffic */
  bool is_bulk;
  uint64_t last_ns;               /* of the last bytes */
  uint64_t burst_bytes;           /* since the last gap */
  uint64_t slice_ns, slice_bytes; /* busy time and bytes that were not judged yet */
  uint64_t bulk_ns;               /* busy time with bulk traffic so far */
  uint64_t due_ns;                /* the next trial, on the scale of bulk_ns */
  uint64_t interval_ns;           /* from the last trial to the next; 0: none yet */

  bool is_trying, is_settling; /* settling: what the last mode left behind is not measured */
  unsigned window, discards;   /* windows done, windows given up */
  bool is_thread_first;        /* in this pair */
  uint64_t window_ns, window_bytes;
  uint64_t rates[DRIVE_MODES][DRIVE_PAIRS];
  uint64_t random;
};

/* mode: to start with, or for ever if it cannot switch. seed: any number, another for each engine.
 */
void drive_init(struct drive *drive, enum drive_mode mode, bool can_switch, uint64_t seed);
/* Bytes were read or written at this time. Look at the mode afterwards. */
void drive_moved(struct drive *drive, uint64_t bytes, uint64_t now_ns);

/* How many engines a NIC gets where the user does not say: the process has so many CPUs, uses so
 * many NICs. At least one; together not more than DRIVE_ENGINES_MAX, if the NICs are not. */
#define DRIVE_ENGINES_MAX 4
unsigned drive_engines(unsigned cpus, unsigned nics);
/* There are enough CPUs for the threads of so many engines next to NCCL's. */
bool drive_has_room(unsigned cpus, unsigned engines);

#endif
