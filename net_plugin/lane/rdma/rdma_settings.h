/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_settings: STRATUS_RDMA and NCCL's NCCL_IB_* variables with NCCL's meaning
 * and defaults (src/transport/net_ib/{init,connect}.cc at NVIDIA/nccl v2.30.7-1), but for a shorter
 * timeout.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot; a bad value is one WARN with what is accepted, and the default is kept. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_SETTINGS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/name_list.h"

enum { RDMA_HCA_NAME_MAX = NAME_LIST_NAME_MAX };

struct rdma_settings {
  bool is_off;           /* STRATUS_RDMA=off or NCCL_IB_DISABLE=1 */
  const char *off_why;   /* which of them; NULL: it is not off */
  bool is_wanted;        /* STRATUS_RDMA=on: doing without is worth a warning */
  struct name_list hcas; /* NCCL_IB_HCA, with ports; rail and plane there are NCCL's own */
  int traffic_class;     /* -1: the communicator's, or else 0 */
  int service_level;     /* -1: the same */
  uint8_t timeout;       /* of a queue pair: 4.096 us * 2^timeout; 0: none */
  uint8_t retry_count;   /* 0..7 */
};

/* From the environment. */
void rdma_settings_read(struct rdma_settings *out);

#endif
