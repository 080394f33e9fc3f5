/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_facts: what one side sends the other about its queue pair, so that the two can be connected;
 * the content of a lane_offer. PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_FACTS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_FACTS_H

#include <stdint.h>

#include "net_plugin/lane/lane_offer.h"

#define RDMA_MAX_SLOT_BYTES (1u << 20)

/* The transport of a device: two of different kinds cannot talk. */
enum rdma_transport { RDMA_ROCE, RDMA_INFINIBAND, RDMA_IWARP, RDMA_TRANSPORTS };
/* "RoCE" */
const char *rdma_transport_name(enum rdma_transport transport);

struct rdma_facts {
  uint32_t number;     /* of the queue pair, 24 bits; 0: there is none */
  uint32_t slot_bytes; /* of each of its receive requests */
  uint16_t slots;      /* receive requests that it keeps posted */
  uint8_t transport;   /* enum rdma_transport */
  uint8_t key_index;   /* which key of a target is for this device */
};

void rdma_facts_encode(const struct rdma_facts *facts, struct lane_offer *offer);
/* Checks nothing: lane_offer_is_valid does. */
void rdma_facts_decode(const struct lane_offer *offer, struct rdma_facts *facts);

#endif
