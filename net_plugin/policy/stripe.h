/* SPDX-License-Identifier: Apache-2.0 */
/* stripe: which lane takes the next chunk, and how large the chunk is.
 * Owns: only its own struct.  Threads: the link's.
 * Blocks: never.  Fails: cannot; no candidate, or none that would help, gives -1.
 *
 * Lanes differ: a cloud gives each flow its own share of a path, and shares change. Striping is
 * dynamic: a lane gets a chunk when it can write. Of several such lanes an idle one does, in turn,
 * or else the one that will have drained soonest. Drain time = unacknowledged bytes x time per
 * byte, learned from acknowledgements while the lane was busy. Idle lanes are not compared: a cap
 * lets a burst pass, so an idle lane shows its burst, and a lane that is preferred for that is soon
 * at its cap while the bursts of the others are left unused. Where packets are lost, as by a
 * policer, lanes that are not slow are not compared either. What is smaller than
 * STRIPE_SMALL_BYTES, or than STRIPE_WARM_BYTES and posted together with what went before, stays on
 * the lane that was used last while that has drained within STRIPE_WARM_PS: it goes out in one
 * system call, and its caches are warm.
 *
 * A slow lane (STRIPE_SLOW_PERCENT of a typical one, repeatedly) may be better left alone: a chunk
 * on it can hold up the whole window of messages. It gets one only if it will have drained within
 * twice the time that the best of the other lanes needs for what it has. Its estimate is halved for
 * every STRIPE_AGING_NS without a sample, so that it is tried again. A lane whose rate is not known
 * yet gets no more than STRIPE_UNKNOWN_BYTES before its first acknowledgement, if there are others.
 *
 * Chunks: a large message is cut so that each lane gets about two of them, or such that the lane
 * drains in STRIPE_QUICK_PS, within STRIPE_MIN_CHUNK_BYTES and the configured usual_chunk_bytes, or
 * chunk_bytes where the lane drains more than these in that time. Where one
 * lane is used it has nobody to share with: for it that time is STRIPE_ALONE_PS. A slow lane gets
 * proportionally smaller ones (not below STRIPE_SLOW_CHUNK_BYTES), so that its last chunk does not
 * hold up the message. What would remain as a tail of less than half a chunk is added to the last
 * chunk, or split with it if that would pass the maximum. */
#ifndef NET_PLUGIN_POLICY_STRIPE_H
#define NET_PLUGIN_POLICY_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/policy_lane.h"

struct stripe {
  const struct policy_lanes *lanes;
  unsigned last;       /* the lane used last */
  unsigned lanes_used; /* of those that are up, if not all; 0: all. The policy fills it in */
  uint32_t typical_ps_per_byte; /* of the lanes that are up and known; 0: none */
  uint64_t slow;                /* lanes that are up and slow, as above */
  uint64_t unknown;             /* lanes that are up and have not shown a rate */
  uint64_t aged_ns;             /* when estimates were aged last */
  bool is_lossy;                /* some lane retransmitted lately */
  uint64_t lost_ns;             /* when that was seen last; 0: never */
};

/* lanes: used as long as it is. */
void stripe_init(struct stripe *stripe, const struct policy_lanes *lanes);

/* A lane came up, and its record has begun; or it was lost. */
void stripe_lanes_changed(struct stripe *stripe);

/* The candidate for the next chunk of a message of which `left` bytes are not cut yet; -1 if there
 * is none, or waiting for another lane is better. */
int stripe_pick(const struct stripe *stripe, uint64_t candidates, uint64_t left, uint64_t now_ns);

/* How much of a message of `total` bytes, `left` of them not cut yet, the lane should take. */
uint32_t stripe_chunk_bytes(const struct stripe *stripe, unsigned lane, uint64_t total,
                            uint64_t left);
/* The same, where a NIC writes the piece to its place. That takes no buffer on the way, so fewer
 * and larger ones will do: one for each lane, but not below STRIPE_PLACED_LEAST_BYTES, since
 * several messages are in flight that share the lanes, and no more than doubling what the lane has
 * to do anyway. A slow lane gets proportionally less. */
uint32_t stripe_placed_bytes(const struct stripe *stripe, unsigned lane, uint64_t total);

/* As the operations `sent` and `acked` of policy.h. */
void stripe_sent(struct stripe *stripe, unsigned lane, uint64_t now_ns);
void stripe_acked(struct stripe *stripe, unsigned lane, uint64_t bytes, bool has_paused,
                  uint64_t now_ns);
/* A lane's transport was asked: has it sent packets again since it was asked before? */
static inline void stripe_retransmitted(struct stripe *stripe, bool has_retransmitted,
                                        uint64_t now_ns) {
  stripe->lost_ns = has_retransmitted ? now_ns : stripe->lost_ns;
  stripe->is_lossy = stripe->lost_ns != 0 && now_ns - stripe->lost_ns < STRIPE_LOSSY_NS;
}

#endif
