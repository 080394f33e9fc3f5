/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_lane: a TCP flow as a lane, in clear (tcp_lane.c) or encrypted (tcp_sealed_lane.c): then what
 * is sent and received passes tcp_seal, and a payload reaches the user's memory, and a header the
 * link, only when the tag of its record was right. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_LANE_H
#define NET_PLUGIN_LANE_TCP_TCP_LANE_H

#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/lane_crypto.h"

/* A lane over a connected, tuned, nonblocking socket, which it owns from now on. NULL: no memory,
 * and the socket is still the caller's. The caller reports link_lane_up. */
struct lane *tcp_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd);
/* The same with keys, which are copied and wiped when the lane ends. */
struct lane *tcp_sealed_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                                  const struct lane_crypto *crypto);

/* ---- what both have in common, at the beginning of their own structs ---- */

struct tcp_flow {
  struct lane lane;
  bool is_closing, is_closed;
  struct frame_in arriving;
  uint64_t bytes_written, bytes_read;
};

/* Operations of both, beside tcp_stats_measure. */
void tcp_flow_close(struct lane *lane);
bool tcp_flow_is_closed(const struct lane *lane);
void tcp_flow_stats(const struct lane *lane, struct lane_stats *stats);
uint64_t tcp_flow_answered_ns(const struct lane *lane, uint64_t now_ns);

#endif
