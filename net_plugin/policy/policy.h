/* SPDX-License-Identifier: Apache-2.0 */
/* policy: the decisions of a sending link: which lane carries the next chunk, how large the chunk
 * is, whether it is compressed, which lanes are wanted, which one is reconnected. Facts go in,
 * decisions come out. The link keeps what must be right whatever is decided here: order,
 * acknowledgements, credit, lane states, time limits. PURE: time arrives as an argument.
 *
 * Owns: its policy_bytes of the link's memory; policy_shared (see policy_shared.h) belongs to the
 * engine and is used by all links of that engine. Threads: the link's; policy_shared: one at a time
 * (the holder of the engine lock). Blocks: never.  Fails: cannot; "no lane" is -1.
 *
 * Contract, checked by tests/unit/test_policy.c:
 *  1. pick returns one of the candidates or -1. It may return -1 although there are candidates, if
 *     waiting for another lane is better; but then a later call returns a lane, at the latest when
 *     all lanes are candidates and nothing is in flight.
 *  2. chunk_bytes returns 0 only if `left` is 0, never more than `left` or POLICY_MAX_CHUNK_BYTES,
 *     and a multiple of POLICY_GRAIN_BYTES unless it is all of `left`. Without is_placed it is at
 *     most chunk_bytes of the configuration.
 *  3. reconnect returns a lane that is up, has nothing in flight and is not the only one.
 *  4. Facts may come in any order that a link can produce: lanes that come up again at once, a
 *     clock that does not advance. */
#ifndef NET_PLUGIN_POLICY_POLICY_H
#define NET_PLUGIN_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/policy/policy_lane.h"

struct policy; /* policy.c */

size_t policy_bytes(void);
/* In `policy_bytes` of memory. What lanes points to and config->shared outlive it. */
void policy_init(struct policy *policy, const struct policy_lanes *lanes);
/* The link ends; policy_shared keeps no reference to it. */
void policy_end(struct policy *policy);

/* ---- facts ---- */

/* The lane can carry frames. Nothing is in flight on it. */
void policy_lane_up(struct policy *policy, unsigned lane, uint64_t now_ns);
/* The lane cannot carry frames any more; what was in flight on it is sent again or was
 * acknowledged. The lane was up. */
void policy_lane_lost(struct policy *policy, unsigned lane);
/* A message was posted. */
void policy_posted(struct policy *policy, uint64_t bytes);
/* A chunk is about to be handed to the lane, which is up: it is not in flight yet. */
void policy_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns);
/* Chunks with so many bytes in total were acknowledged at once, and are not in flight any more.
 * The lane is up, and they were sent since it came up. has_paused: one of the two processes did not
 * run meanwhile, so that the time since then says nothing of the lane. */
void policy_acked(struct policy *policy, unsigned lane, uint64_t bytes, bool has_paused,
                  uint64_t now_ns);
/* A chunk that was to be compressed is about to be written. policy_sent was told of it before, and
 * policy_acked will be: both count bytes as they were before. */
void policy_encoded(struct policy *policy, const struct policy_encoded *encoded);
/* The transport of a lane that is up was asked for its counters. NULL: it has none. */
void policy_measured(struct policy *policy, unsigned lane, const struct policy_transport *transport,
                     uint64_t now_ns);

/* ---- decisions ---- */

/* How many lanes should be open, 1 to `lanes`: those with the lowest numbers. Others are closed
 * once nothing is in flight on them. Asked often. */
unsigned policy_lanes_wanted(const struct policy *policy, uint64_t now_ns);
/* The lane, among the candidates, for the next chunk of a message of which `left` bytes are not
 * cut yet (UINT64_MAX: a chunk that is sent again). Candidates are up and can take a chunk. */
int policy_pick(struct policy *policy, uint64_t candidates, uint64_t left, uint64_t now_ns);
/* How much of a message of `total` bytes, `left` of them not cut yet, the lane takes.
 * is_placed: a NIC writes the bytes where they belong. */
uint32_t policy_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                            uint64_t left, bool is_placed);
/* Is the chunk that was cut just now to be compressed? Asked for each one that could be (it is
 * large enough, no kernel polls it, no NIC places it, and it is not sent again), if the
 * configuration says AUTO. */
bool policy_compress(const struct policy *policy);
/* Lanes whose transports are to be asked now, up to some microseconds each; the answers are given
 * at once. Asked often. */
uint64_t policy_wants_measured(const struct policy *policy, uint64_t now_ns);
/* The lane to close and reconnect now, for another path; -1: none. Asked about every 100 ms while
 * anything is in flight. */
int policy_reconnect(struct policy *policy, uint64_t now_ns);

/* ---- views: for time limits, statistics and tests ---- */

/* The time per byte that was learned for the lane, in picoseconds; 0: not known. */
uint32_t policy_ps_per_byte(const struct policy *policy, unsigned lane);
enum policy_limit policy_limit_of(const struct policy *policy, unsigned lane);

#endif
