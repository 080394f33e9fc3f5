/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_quirks: what is peculiar to some HCAs and not, or wrongly, reported by their drivers.
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot; an unknown device has the traits of an ordinary one. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_QUIRKS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What identifies a device; what is not known is 0 or empty. */
struct rdma_identity {
  uint16_t pci_vendor, pci_device;
  const char *driver;  /* of the PCI function, "mlx5_core" */
  const char *name;    /* "mlx5_0", "rxe0" */
  bool is_iwarp;       /* as the device reports its transport */
  unsigned mtu_netdev; /* of its network interface */
};

struct rdma_traits {
  const char *model;     /* "eRDMA", "ConnectX"; never NULL */
  uint32_t max_inline;   /* most bytes of inline data worth asking for; 0: ask for none */
  uint32_t max_send_sge; /* 0: as the device reports */
  bool has_dmabuf;       /* ibv_reg_dmabuf_mr may work */
  bool has_flow_label;   /* the flow label chooses the UDP source port */
  bool has_immediate;  /* a write can bring 32 bits along; iWARP knows that as an extension only */
  bool needs_cm;       /* queue pairs are connected by rdma_cm */
  bool is_usable;      /* for reliable connections; else why_not has the reason */
  const char *why_not; /* NULL: it is usable */
};

void rdma_quirks_find(const struct rdma_identity *identity, struct rdma_traits *out);

/* Something is wrong with the settings of this device: the warning, with what to do; else NULL.
 * protocols: NCCL_PROTO, NULL if it is not set. */
enum { RDMA_QUIRKS_TEXT_MAX = 320 };
const char *rdma_quirks_warning(const struct rdma_identity *identity, const char *protocols,
                                char text[RDMA_QUIRKS_TEXT_MAX]);

#endif
