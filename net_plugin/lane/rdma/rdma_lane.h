/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_lane: a queue pair as a lane, an RDMA lane of link.h.
 *
 * Frames travel as a stream, cut into sends of at most one slot of the peer:
 *
 *   0 u32 freed   receive slots that this side has posted again, since the beginning
 *   4 u32 length  bytes of the stream that follow: a frame's header, which begins a send, and
 * payload
 *
 * A send needs a free slot of the peer, which the peer counts in every send of its own; the last
 * free one is kept for a send without bytes, which carries the count alone. So no send ever finds
 * no receive. The bytes of a large frame with a target are written there instead, and only its
 * header is sent; where the device can, and the frame carries a whole message without checksum, the
 * write's immediate data stands for the header (wire.h). It takes a slot like a send.
 *
 * Every send has a slot, where its prefix, a header and small payloads are put together; larger
 * payloads are gathered from where they are, if that is registered. One send in RDMA_SIGNAL_EVERY
 * asks for a completion, which frees the slots of all before.
 *
 * The socket that the handshake ran over stays open: its end is the peer's. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_LANE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_LANE_H

#include "net_plugin/lane/lane.h"

struct endpoint;

/* Over a queue pair that is connected, or that listens (rdma_qp.h), and the socket, both taken
 * over. is_dialler: this side speaks first, so that the other knows that it is there. -errno, and
 * both are still the caller's. */
int rdma_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                   struct endpoint *endpoint, bool is_dialler, struct lane **lane);

#endif
