/* SPDX-License-Identifier: Apache-2.0 */
/* compression: whether the connections of an engine code their chunks (codec/), learned from what
 * it brings (STRATUS_COMPRESS=auto).
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot.
 *
 * Coding pays where the network holds up the traffic, the data has fewer bits than bytes, and
 * processors have time. None of this is known beforehand, so it is tried, under bulk load:
 *
 *   OFF ------ it is due ----> try: windows with and without, in pairs of random order
 *   try ------ it pays ------> ON
 *   try ------ it does not --> OFF
 *   try ------ no data that becomes shorter --> LISTENING
 *   ON, OFF -- it is due ----> try
 *   LISTENING  chunks are given to the codec, which looks at few of them (codec_memory)
 *         ---- they become shorter -----------> try
 *
 * What a window shows: the bytes that were delivered per time, counted before coding; and how long
 * they took from being taken for a lane to being acknowledged. Coding pays if either becomes better
 * by half of what the shorter chunks allow, and no fewer bytes are delivered. The second is what
 * shows in a ring of hosts: there each host can send only what it was sent, so that one that codes
 * alone does not deliver more, but its own lanes have less to do. When all of them code, the bytes
 * show it as well.
 *
 * What tries cost is bounded: the time that the worse windows of a try lost must be 1 % of the time
 * until the next one, and tries that change nothing are followed by pauses that are doubled. All
 * hosts try at the same time (try_time.h), but for the first try. Tries come sooner where the rate
 * of the traffic has changed for long. Where bytes are acknowledged at once, the network holds up
 * nothing, and nothing is tried.
 *
 * The decision is that of the engine, for the same reason as with flow_count.h: connections share a
 * NIC and its threads. Time counts while anything is in flight. */
#ifndef NET_PLUGIN_POLICY_COMPRESSION_H
#define NET_PLUGIN_POLICY_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limits.h"
#include "net_plugin/policy/try_time.h"

enum compression_state { COMPRESSION_OFF, COMPRESSION_LISTENING, COMPRESSION_ON };

struct compression_window {
  uint64_t ns, bytes; /* acknowledged, before coding */
  uint64_t delay_ns;  /* mean time of a byte in flight */
  uint64_t settle_ns; /* before it, with the same traffic */
};

struct compression {
  enum compression_state state;
  bool is_trying;
  uint64_t tries, turns; /* turns: changes of state */

  uint64_t outstanding_bytes; /* taken for a lane and not acknowledged, before coding */
  uint64_t last_ns;
  uint64_t busy_ns;     /* under bulk load, so far */
  uint64_t due_ns;      /* the next try, on the scale of busy_ns */
  uint64_t earliest_ns; /* no try before, whatever happens */
  uint64_t interval_ns; /* from the last try to the next; 0: none yet */
  struct try_time time; /* of the next one */

  /* the window */
  uint64_t window_ns, window_bytes, backlog_bytes; /* backlog: acknowledged while there was one */
  uint64_t byte_ns;                                /* bytes in flight, summed up over the time */
  uint64_t saved_bytes;                            /* by which chunks became shorter */

  /* while it watches */
  uint64_t rate, usual_rate; /* KB/s, about, of the last window; as usual */
  unsigned drift_windows;    /* in a row that were not as usual */

  /* while it tries */
  bool is_coding, is_coding_first; /* in this window; in the first of the pair */
  uint64_t settle_bytes, settle_ns;
  uint64_t try_bytes, try_saved_bytes; /* of its windows with coding */
  uint64_t lost_ns;
  unsigned window, discards; /* windows done, windows given up */
  int verdict;               /* pairs in which it paid, less those in which it did not */
  struct compression_window windows[2][COMPRESSION_PAIRS]; /* without, with */
  uint64_t random;
};

/* day_ns: the time of day at 0 of the clock. seed: of the order of windows. */
void compression_init(struct compression *compression, uint64_t day_ns, uint64_t seed);

/* ---- facts. All bytes are those before coding, unless it says else ---- */

/* A chunk was taken for a lane, and may have to be coded first. */
void compression_sent(struct compression *compression, uint64_t bytes, uint64_t now_ns);
/* backlog_bytes: what its connection had in flight before. is_free: nothing else of the engine is
 * being tried, which would be measured along. */
void compression_acked(struct compression *compression, uint64_t bytes, uint64_t backlog_bytes,
                       bool is_free, uint64_t now_ns);
/* So much is not in flight any more, and was not acknowledged. */
void compression_dropped(struct compression *compression, uint64_t bytes);
/* A chunk was coded, and is so much shorter. */
static inline void compression_saved(struct compression *compression, uint64_t bytes) {
  compression->saved_bytes += bytes;
}

/* ---- decisions ---- */

/* Chunks are to be given to the codec now. */
static inline bool compression_is_wanted(const struct compression *compression) {
  return compression->is_trying ? compression->is_coding : compression->state != COMPRESSION_OFF;
}

#endif
