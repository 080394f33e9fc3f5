/* SPDX-License-Identifier: Apache-2.0 */
/* hca_port: what sysfs says of the port of an RDMA device (HCA): its state and rate.
 * Owns: nothing.  Threads: any.
 * Blocks: as sysfs does.  Fails: cannot; what is not known is empty or 0.
 *
 * A port that is down has a rate, too: the least, or what it last had. Whether that counts is for
 * the caller to say. */
#ifndef COMMON_HCA_PORT_H
#define COMMON_HCA_PORT_H

#include <stdbool.h>
#include <stdint.h>

enum { HCA_PORT_STATE_MAX = 32 };

struct hca_port {
  char state[HCA_PORT_STATE_MAX]; /* "ACTIVE", "DOWN" */
  bool is_active;
  uint32_t mbps; /* whether it is active or not */
};

/* As in "mlx5_0" and 1. */
void hca_port_read(const char *root, const char *hca, int port, struct hca_port *out);

#endif
