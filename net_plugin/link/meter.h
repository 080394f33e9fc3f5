/* SPDX-License-Identifier: Apache-2.0 */
/* meter: how fast is one flow of a NIC by itself?
 * Owns: only its own struct, which the links of one engine share.  Threads: theirs.
 * Blocks: never.  Fails: cannot; a NULL meter never measures.
 *
 * What messages show of a flow's rate says little as long as they are small (their time is latency,
 * and a shaper lets the first packets of a rested flow pass) or when many flows share a NIC. But
 * where a cloud caps each flow, also a message of 8 KiB is better off on another flow than behind
 * the one before it; and where nothing is capped, changing flows costs more than it brings. So one
 * lane of all links, that has nothing else to do, carries a few PINGs with padding, each sent when
 * the one before was answered, so that only the first of them can use what a shaper saves up:
 *
 *   an empty one             the time that an answer takes by itself
 *   one of METER_BYTES       fills the congestion window and empties the shaper; not counted
 *   up to METER_FRAMES more  the shortest counts: a scheduler can only lengthen them
 *
 * A flow that comes out as fast (METER_FAST_PS_PER_BYTE) is believed. One that seems slow may have
 * been disturbed by other connections, so it is measured again, METER_PAUSE_NS later, then after
 * twice the time, METER_ROUNDS times; the best round counts.
 *
 * Until a flow has shown that it is faster, and however slow it seems, METER_SLOW_PS_PER_BYTE is
 * what is told: a shaper saves up while nothing is sent, so flows that are used in turn need less
 * rest than their long-term rate says. */
#ifndef NET_PLUGIN_LINK_METER_H
#define NET_PLUGIN_LINK_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/wire.h"

#define METER_BYTES WIRE_MAX_PADDING_BYTES
#define METER_FRAMES 5u
#define METER_ROUNDS 8u
#define METER_PAUSE_NS 50000000ull
#define METER_FAST_PS_PER_BYTE 1000u /* 8 Gb/s */
#define METER_SLOW_PS_PER_BYTE 2000u /* 4 Gb/s */

enum meter_step { METER_IDLE, METER_ASKING, METER_FILLING, METER_TIMING };

struct meter {
  enum meter_step step;
  const void *link; /* unless IDLE: whose lane is measured */
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
bool meter_is_wanted(const struct meter *meter, uint64_t now_ns);
/* Begins a round; only when wanted. A PING is due on the lane. */
void meter_start(struct meter *meter, const void *link, unsigned lane);
/* The link's lane that is being measured, as a bit: nothing else should be sent on it. */
static inline uint64_t meter_lanes(const struct meter *meter, const void *link) {
  bool is_measured = meter && meter->step != METER_IDLE && meter->link == link;
  return is_measured ? 1ull << meter->lane : 0;
}
static inline bool meter_has(const struct meter *meter, const void *link, unsigned lane) {
  return (meter_lanes(meter, link) & 1ull << lane) != 0;
}
/* A PING with this token goes out on the lane; how many bytes of padding it carries. */
uint32_t meter_ask(struct meter *meter, const void *link, unsigned lane, uint64_t token,
                   uint64_t now_ns);
/* A PONG came on the lane. true: another PING is due on it. */
bool meter_answered(struct meter *meter, const void *link, unsigned lane, uint64_t token,
                    uint64_t now_ns);
/* These lanes of the link were lost, or are not to be measured: this round is void. */
void meter_drop(struct meter *meter, const void *link, uint64_t lanes);

/* By what flows are to be chosen; 0: nobody measures. */
static inline uint32_t meter_flow_ps_per_byte(const struct meter *meter) {
  if (!meter) {
    return 0;
  }
  bool is_slow = meter->ps_per_byte == 0 || meter->ps_per_byte > METER_SLOW_PS_PER_BYTE;
  return is_slow ? METER_SLOW_PS_PER_BYTE : meter->ps_per_byte;
}

#endif
