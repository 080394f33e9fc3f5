/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_quirks: what is peculiar to some HCAs and not, or wrongly, reported by their drivers.
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot; an unknown device has the traits of an ordinary one. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_QUIRKS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/rdma/rdma_sysfs.h"

struct rdma_traits {
  const char *model;     /* "eRDMA", "ConnectX"; never NULL */
  uint32_t max_inline;   /* most bytes of inline data worth asking for; 0: ask for none */
  uint32_t max_send_sge; /* 0: as the device reports */
  bool has_dmabuf;       /* ibv_reg_dmabuf_mr may work */
  bool has_flow_label;   /* the flow label chooses the UDP source port */
  bool has_immediate;  /* a write can bring 32 bits along; iWARP knows that as an extension only */
  bool is_usable;      /* for reliable connections; else why_not has the reason */
  const char *why_not; /* NULL: it is usable */
};

/* By its PCI identity, its name and its transport. */
void rdma_quirks_find(const struct rdma_sysfs_port *port, struct rdma_traits *out);

/* Something is wrong with the settings of this device: the warning, with what to do; else NULL.
 * mtu: of its network interface, 0: unknown. protocols: NCCL_PROTO, NULL if it is not set. */
enum { RDMA_QUIRKS_TEXT_MAX = 320 };
const char *rdma_quirks_warning(const struct rdma_sysfs_port *port, unsigned mtu,
                                const char *protocols, char text[RDMA_QUIRKS_TEXT_MAX]);

#endif
