/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_choice: which HCA port may be used, for which NIC, by sysfs and the settings. Opens nothing.
 * librdmacm finds the GID, by the NIC's address.
 *
 * Owns: nothing.  Threads: any.  Blocks: rdma_choice_is_of_nic as sysfs does; the others never.
 * Fails: says why, in words for the log. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_CHOICE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_CHOICE_H

#include "net_plugin/lane/rdma/rdma_facts.h"
#include "net_plugin/lane/rdma/rdma_quirks.h"
#include "net_plugin/lane/rdma/rdma_settings.h"
#include "net_plugin/lane/rdma/rdma_sysfs.h"

/* Is this the port that the NIC's packets go through? root: of sysfs. */
bool rdma_choice_is_of_nic(const char *root, const struct rdma_sysfs_port *port,
                           const struct nic *nic);

/* May the port be used once it works? If not, why. */
bool rdma_choice_is_allowed(const struct rdma_sysfs_port *port,
                            const struct rdma_settings *settings, char why[RDMA_WHY_MAX]);
/* Is this port, which is of the NIC, to be used for it now? -ENOENT if not, and why. *gid: place in
 * port->gids of the one that stands for the NIC. */
int rdma_choice_judge(const struct rdma_sysfs_port *port, const struct rdma_settings *settings,
                      const struct nic *nic, int *gid, char why[RDMA_WHY_MAX]);

/* See rdma_quirks_warning: by the NIC's MTU, and NCCL_PROTO in the environment. */
const char *rdma_choice_warning(const char *root, const struct rdma_sysfs_port *port,
                                const struct nic *nic, char text[RDMA_QUIRKS_TEXT_MAX]);

/* "10.0.0.1", "fe80::1", "fe80::506b:4b03:ac:1". */
enum { RDMA_GID_TEXT_MAX = 64 };
const char *rdma_choice_gid_text(const void *bytes, char text[RDMA_GID_TEXT_MAX]);

#endif
