/* SPDX-License-Identifier: Apache-2.0 */
/* hca_port: state and rate of the port of an RDMA device (HCA), from sysfs.
 * Owns: nothing.  Threads: any.
 * Blocks: as sysfs does.  Fails: cannot; unknown values are empty or 0.
 *
 * A port that is down reports a rate as well: the lowest, or its last one. */
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
