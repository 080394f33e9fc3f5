/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_lane: a TCP flow as a lane, in clear or encrypted: then what is sent and received passes
 * tcp_seal, and a payload reaches the user's memory, and a header the link, only when the tag of
 * its record was right. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_LANE_H
#define NET_PLUGIN_LANE_TCP_TCP_LANE_H

#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/lane_crypto.h"

/* A lane over a connected, tuned, nonblocking socket, which it owns from now on. crypto: NULL: in
 * clear; the keys are copied, and wiped when the lane ends. NULL: no memory, and the socket is
 * still the caller's. The caller reports link_lane_up. */
struct lane *tcp_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                           const struct lane_crypto *crypto);

#endif
