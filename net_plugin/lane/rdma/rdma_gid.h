/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_gid: which GID of a port stands for a NIC.
 *
 * NCCL takes one index for all HCAs, or searches for RoCE v2 and IPv4. Here each port has its own
 * choice: of the wanted RoCE version, in the wanted family and range, IPv4 before IPv6, and within
 * a family the NIC's address, then one in its subnet, then any, link-local ones last.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: -ENOENT, and why. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_GID_H
#define NET_PLUGIN_LANE_RDMA_RDMA_GID_H

#include "net_plugin/lane/rdma/rdma_sysfs.h"

enum { RDMA_GID_TEXT_MAX = 64 };

/* Returns the place in facts->gids. */
int rdma_gid_choose(const struct rdma_sysfs_port *facts, const struct rdma_settings *settings,
                    const struct nic *nic, char why[RDMA_WHY_MAX]);

/* "10.0.0.1", "fe80::1", "fe80::506b:4b03:ac:1". */
const char *rdma_gid_text(const void *bytes, char text[RDMA_GID_TEXT_MAX]);
/* IPv4, mapped. */
bool rdma_gid_is_ipv4(const void *bytes);

#endif
