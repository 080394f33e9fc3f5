/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_sealed_lane: an encrypted TCP flow as a lane. What tcp_lane sends and receives in clear
 * passes tcp_seal here; a payload reaches the user's memory, and a header the link, only when the
 * tag of its record was right. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_SEALED_LANE_H
#define NET_PLUGIN_LANE_TCP_TCP_SEALED_LANE_H

#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/lane_crypto.h"

/* As tcp_lane_open, with keys, which are copied and wiped when the lane ends. */
struct lane *tcp_sealed_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                                  const struct lane_crypto *crypto);

#endif
