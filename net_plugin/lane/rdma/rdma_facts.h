/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_facts: what one side tells the other of its queue pair, so that the two can be connected: a
 * plain value, which travels in the handshake. PURE.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_FACTS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_FACTS_H

#include <stdint.h>

#define RDMA_GID_BYTES 16
#define RDMA_MAX_SLOT_BYTES (1u << 20)

struct rdma_facts {
  uint32_t number; /* of the queue pair, 24 bits; 0: there is none */
  uint32_t psn;    /* of its first packet, 24 bits */
  uint8_t gid[RDMA_GID_BYTES];
  uint16_t lid; /* InfiniBand */
  uint8_t is_infiniband;
  uint8_t mtu;         /* enum ibv_mtu, 1..5 */
  uint16_t slots;      /* receive requests that it keeps posted */
  uint32_t slot_bytes; /* of each */
  uint8_t key_index;   /* which key of a target is for this device */
};

#endif
