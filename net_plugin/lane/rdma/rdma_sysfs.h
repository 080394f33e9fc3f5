/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_sysfs: HCA ports as the kernel shows them, without opening any.
 * Owns: nothing.  Threads: any.  Blocks: as sysfs does, a millisecond or so for each port.
 * Fails: cannot; what is not known is empty, 0 or -1. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_SYSFS_H
#define NET_PLUGIN_LANE_RDMA_RDMA_SYSFS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/lane/rdma/rdma_settings.h"

enum { RDMA_PORTS_MAX = 32, RDMA_GIDS_MAX = 64, RDMA_PATH_MAX = 256, RDMA_WORD_MAX = 32 };
enum { RDMA_WHY_MAX = 256 }; /* texts for the log: why something is not used */

struct rdma_gid {
  int index;
  uint8_t bytes[16];
  uint8_t roce_version;     /* 0: neither */
  char netdev[IF_NAMESIZE]; /* whose address it is; empty: unknown */
};

struct rdma_sysfs_port {
  char name[RDMA_HCA_NAME_MAX]; /* "mlx5_0" */
  int port;                     /* from 1 */
  bool is_infiniband;           /* else Ethernet */
  bool is_iwarp;
  bool is_active;
  char state[RDMA_WORD_MAX]; /* "ACTIVE", "DOWN" */
  uint32_t speed_mbps;
  uint64_t guid, node_guid;
  char pci_path[RDMA_PATH_MAX]; /* "/sys/devices/pci0000:00/0000:00:05.0", or empty */
  uint16_t pci_vendor, pci_device;
  char driver[RDMA_WORD_MAX];
  int numa_node;            /* -1: unknown */
  char parent[IF_NAMESIZE]; /* of software devices: the interface below */
  unsigned gid_count;
  struct rdma_gid gids[RDMA_GIDS_MAX]; /* those that are set, by index */
};

/* All ports of all HCAs, by name. Returns how many. */
unsigned rdma_sysfs_list(const char *root, struct rdma_sysfs_port out[RDMA_PORTS_MAX]);

/* How the CPU's or a GPU's memory can be given to HCAs. */
struct rdma_gpu_facts {
  bool has_peermem;               /* a module through which ibv_reg_mr takes GPU memory */
  char peermem[RDMA_WORD_MAX];    /* which: "nvidia_peermem" */
  bool has_open_driver;           /* NVIDIA's open kernel modules, which export dma-bufs */
  char nvidia[RDMA_WORD_MAX * 2]; /* the driver's version; empty: no such GPU here */
};
void rdma_sysfs_read_gpu(const char *root, struct rdma_gpu_facts *out);

#endif
