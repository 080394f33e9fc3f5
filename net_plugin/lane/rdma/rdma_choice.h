/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_choice: whether an HCA port may be used, and for which NIC, by sysfs and the settings. Opens
 * nothing.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: says why, in words for the log. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_CHOICE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_CHOICE_H

#include "net_plugin/lane/rdma/rdma_facts.h"
#include "net_plugin/lane/rdma/rdma_gid.h"
#include "net_plugin/lane/rdma/rdma_quirks.h"
#include "net_plugin/lane/rdma/rdma_settings.h"

/* What rdma_quirks.h wants to know; mtu_netdev is left to the caller. Points into port. */
struct rdma_identity rdma_choice_identity(const struct rdma_sysfs_port *port);

/* Are queue pairs of such a device connected by librdmacm? */
enum rdma_cm_wish rdma_choice_cm(const struct rdma_traits *traits,
                                 const struct rdma_settings *settings);

/* May the port be used once it works? If not, why. */
bool rdma_choice_is_allowed(const struct rdma_sysfs_port *port,
                            const struct rdma_settings *settings, char why[RDMA_WHY_MAX]);

/* Is this port one for the NIC, now? -ENOENT if not, and why. *gid: place in port->gids. */
int rdma_choice_judge(const struct rdma_sysfs_port *port, const struct rdma_settings *settings,
                      const struct nic *nic, int *gid, char why[RDMA_WHY_MAX]);

#endif
