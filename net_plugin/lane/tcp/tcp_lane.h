/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_lane: a TCP flow as a lane. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_LANE_H
#define NET_PLUGIN_LANE_TCP_TCP_LANE_H

#include "net_plugin/lane/lane.h"

/* A lane over a connected, tuned, nonblocking socket, which it owns from now on. NULL: no memory,
 * and the socket is still the caller's. The caller reports link_lane_up. */
struct lane *tcp_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd);

#endif
