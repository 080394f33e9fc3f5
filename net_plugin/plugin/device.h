/* SPDX-License-Identifier: Apache-2.0 */
/* device: the NICs that NCCL sees: first those that it takes for physical ones, which are
 * interfaces or what STRATUS_MERGE_NICS made of them, then those that it had fused.
 *
 * Owns: everything in its table, of fixed size; names and paths stay where they are, so that NCCL
 * may keep pointers to them.  Threads: app and NCCL's service thread; plugin.c serialises.
 * Blocks: device_table_discover, as topology, sysfs and profiles do.  Fails: as stated, after
 * LOG_WARN.
 */
#ifndef NET_PLUGIN_PLUGIN_DEVICE_H
#define NET_PLUGIN_PLUGIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"
#include "net_plugin/lane/nic.h"
#include "net_plugin/plugin/interface.h"
#include "net_plugin/plugin/nic_facts.h"

enum {
  DEVICE_PHYSICAL_MAX = INTERFACE_CHOSEN_MAX,
  DEVICE_MAX = 64, /* with the fused ones */
  DEVICE_NAME_MAX = NIC_MAX_FUSED * (IF_NAMESIZE + 1),
  DEVICE_DEFAULT_SPEED_MBPS = 10000, /* NCCL's own, src/transport/net_socket.cc:157-160 */
};

/* Where a speed is from, the first that has one. */
enum device_origin {
  DEVICE_FROM_PARAMETER, /* STRATUS_SPEED_MBPS */
  DEVICE_FROM_PROFILE,
  DEVICE_FROM_SYSTEM,
  DEVICE_FROM_DEFAULT,
};

struct device {
  char name[DEVICE_NAME_MAX]; /* "eth0", or "eth0+eth1" */
  char pci_path[NIC_FACTS_PATH_MAX];
  uint64_t guid;
  uint32_t speed_mbps; /* the sum of what is fused and not idle */
  enum device_origin speed_origin;
  unsigned part_count;
  int parts[NIC_MAX_FUSED]; /* indexes of the devices that NCCL had fused, or its own */
  unsigned nic_count;
  struct nic nics[NIC_MAX_FUSED]; /* all interfaces in it */
};

struct device_table {
  struct device devices[DEVICE_MAX];
  int count;
  int physical_count;
  char profile_id[PROFILE_ID_MAX]; /* of the profile in use; empty: none */
};

/* What decides besides the system itself. */
struct device_settings {
  const char *sysfs_root;
  const char *speed_mbps;        /* STRATUS_SPEED_MBPS */
  const char *merge_nics;        /* STRATUS_MERGE_NICS */
  const struct profile *profile; /* NULL: none fits */
  const char *thread_cpus;       /* STRATUS_THREAD_CPUS */
  const cpu_set_t *allowed_cpus; /* of the process; NULL: threads are left alone */
  bool asks_routes;              /* the kernel knows whether a route leads through a NIC */
};

/* Fills the table from the chosen ones among `interfaces`. A table without any is no error. */
void device_table_discover(struct device_table *table, const struct interface *interfaces,
                           size_t count, const struct device_settings *settings);

/* Makes one device of several physical ones, at most `limit`; the same set again is the same
 * device, and a single one is that device once more, under another index. -EINVAL if that cannot
 * be, -ENOSPC if the table is full. -ENOTSUP if none of them is on PCI: NCCL has no place in its
 * topology for what they would become, and fails to start. */
int device_table_fuse(struct device_table *table, const int *parts, int part_count, int limit,
                      int *index);

/* All interfaces in use. Returns how many. */
unsigned device_table_nics(const struct device_table *table, struct nic out[DEVICE_PHYSICAL_MAX]);

/* NULL, after LOG_WARN, if there is no such device. */
const struct device *device_table_find(const struct device_table *table, int index);

/* "parameter", "profile", "system", "default". */
const char *device_origin_name(enum device_origin origin);

#endif
