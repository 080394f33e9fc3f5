/* SPDX-License-Identifier: Apache-2.0 */
/* nic_shares: which NICs of a device carry what one connection sends; names those that do not.
 *
 * A lane belongs to the NIC that it was dialled through. Where that NIC reaches nobody the link
 * goes on over others, and what the routing tables say can lead a flow through another NIC, too:
 * both look well, and cost a NIC's bandwidth.
 *
 * Owns: its struct.  Threads: holder of the engine lock.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_NIC_SHARES_H
#define NET_PLUGIN_SETUP_NIC_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/lane_path.h"
#include "net_plugin/setup/peering_route.h"

struct nic_share {
  uint64_t lanes;    /* that are open and leave through it */
  uint64_t since_ns; /* it was dialled through, and none does; 0: not so */
  int error;         /* of the last vain dial since; 0: there was none */
  unsigned address;  /* which that was for */
  bool is_judged;    /* since then: it carries nothing */
  bool is_told;      /* by a warning of this connection's */
};

struct nic_shares {
  const struct peering_route *route;
  unsigned count; /* of its NICs; 1: nothing is watched */
  const char *peer;
  struct engine *engine;
  struct engine_timer timer;
  struct nic_share of[NIC_MAX_FUSED];
};

/* peer: "host-7 (...)"; it and the route stay where they are. */
void nic_shares_init(struct nic_shares *shares, struct engine *engine,
                     const struct peering_route *route, const char *peer);
void nic_shares_stop(struct nic_shares *shares);

/* A lane is dialled on this path. */
void nic_shares_dialled(struct nic_shares *shares, struct path path);
void nic_shares_failed(struct nic_shares *shares, struct path path, int error);
/* error: what an earlier dial of the lane on this path ended with, if it is up over another NIC; 0:
 * there was none. */
void nic_shares_up(struct nic_shares *shares, struct path path, unsigned lane,
                   const struct lane_path *up, int error);
void nic_shares_closed(struct nic_shares *shares, unsigned lane);

#endif
