/* SPDX-License-Identifier: Apache-2.0 */
/* flow_probe: how fast is one flow of a NIC by itself?
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot; a NULL probe never measures.
 *
 * What messages show of a flow's rate says little as long as they are small (their time is latency,
 * and a shaper lets the first packets of a rested flow pass) or when many flows share a NIC. But
 * where a cloud caps each flow, also a message of 8 KiB is better off on another flow than behind
 * the one before it; and where nothing is capped, changing flows costs more than it brings. So one
 * lane of all links, that has nothing else to do, carries a few PINGs with padding, each sent when
 * the one before was answered, so that only the first of them can use what a shaper saves up:
 *
 *   an empty one                  the time that an answer takes by itself
 *   one of FLOW_PROBE_BYTES       fills the congestion window and empties the shaper; not counted
 *   up to FLOW_PROBE_FRAMES more  the shortest counts: a scheduler can only lengthen them
 *
 * A flow that comes out as fast (FLOW_PROBE_FAST_PS_PER_BYTE) is believed. One that seems slow may
 * have been disturbed by other connections, so it is measured again, FLOW_PROBE_PAUSE_NS later,
 * then after twice the time, FLOW_PROBE_ROUNDS times; the best round counts.
 *
 * Until a flow has shown that it is faster, and however slow it seems, FLOW_PROBE_SLOW_PS_PER_BYTE
 * is the answer: a shaper saves up while nothing is sent, so flows that are used in turn need less
 * rest than their long-term rate says. */
#ifndef NET_PLUGIN_POLICY_FLOW_PROBE_H
#define NET_PLUGIN_POLICY_FLOW_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/limits.h"

enum flow_probe_step { FLOW_PROBE_IDLE, FLOW_PROBE_ASKING, FLOW_PROBE_FILLING, FLOW_PROBE_TIMING };

struct flow_probe {
  enum flow_probe_step step;
  const void *owner; /* unless IDLE: whose lane is measured */
  unsigned lane;
  bool is_due;      /* its next PING is not sent yet */
  uint64_t token;   /* of the last one that was */
  uint64_t sent_ns; /* when */
  uint64_t answer_ns;
  unsigned frames; /* timed in this round */
  unsigned rounds; /* that came to an end */
  uint64_t next_ns;
  uint32_t ps_per_byte; /* the best of all; 0: none yet */
};

/* A lane may be measured now. */
bool flow_probe_is_wanted(const struct flow_probe *probe, uint64_t now_ns);
/* Begins a round; only when wanted. A PING is due on the lane. owner: any address that stands for
 * who has the lane. */
void flow_probe_start(struct flow_probe *probe, const void *owner, unsigned lane);
/* The link's lane that is being measured, as a bit: nothing else should be sent on it. */
static inline uint64_t flow_probe_lanes(const struct flow_probe *probe, const void *owner) {
  bool is_measured = probe && probe->step != FLOW_PROBE_IDLE && probe->owner == owner;
  return is_measured ? 1ull << probe->lane : 0;
}
static inline bool flow_probe_has(const struct flow_probe *probe, const void *owner,
                                  unsigned lane) {
  return (flow_probe_lanes(probe, owner) & 1ull << lane) != 0;
}
/* The same lane, while its next PING is not sent yet. */
static inline uint64_t flow_probe_due_lanes(const struct flow_probe *probe, const void *owner) {
  uint64_t lanes = flow_probe_lanes(probe, owner);
  return lanes != 0 && probe->is_due ? lanes : 0;
}
/* A PING with this token goes out on the lane; how many bytes of padding it carries. */
uint32_t flow_probe_ask(struct flow_probe *probe, const void *owner, unsigned lane, uint64_t token,
                        uint64_t now_ns);
/* A PONG came on the lane. Another PING may be due on it now. */
void flow_probe_answered(struct flow_probe *probe, const void *owner, unsigned lane, uint64_t token,
                         uint64_t now_ns);
/* These lanes of the link were lost, or are not to be measured: this round is void. */
void flow_probe_drop(struct flow_probe *probe, const void *owner, uint64_t lanes);

/* The rate by which flows are chosen; 0: flows are not probed. */
static inline uint32_t flow_probe_ps_per_byte(const struct flow_probe *probe) {
  if (!probe) {
    return 0;
  }
  bool is_slow = probe->ps_per_byte == 0 || probe->ps_per_byte > FLOW_PROBE_SLOW_PS_PER_BYTE;
  return is_slow ? FLOW_PROBE_SLOW_PS_PER_BYTE : probe->ps_per_byte;
}

#endif
