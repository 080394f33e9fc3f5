/* SPDX-License-Identifier: Apache-2.0 */
/* machine: what this machine is, read offline: cloud, instance type, processors, GPUs, NICs.
 * Owns: nothing.  Threads: any.
 * Blocks: as sysfs does.  Fails: cannot; what is not known stays empty or 0.
 *
 * No metadata service is asked: a plugin must not wait for one. Only AWS tells the instance type
 * in DMI; elsewhere GPU and NIC facts have to identify it. */
#ifndef COMMON_MACHINE_H
#define COMMON_MACHINE_H

#include <stdint.h>

enum machine_cloud {
  MACHINE_CLOUD_UNKNOWN,
  MACHINE_CLOUD_AWS,
  MACHINE_CLOUD_GCP,
  MACHINE_CLOUD_AZURE,
  MACHINE_CLOUD_ALIBABA,
  MACHINE_CLOUD_OCI,
  MACHINE_CLOUD_TENCENT,
  MACHINE_CLOUD_COUNT
};

enum {
  MACHINE_TEXT_MAX = 96,
  MACHINE_NICS_MAX = 64,
  MACHINE_INTERFACE_MAX = 16, /* IFNAMSIZ */
  MACHINE_PCI_ID_MAX = 10,    /* "1d0f:ec20" */
};

/* A network interface that has a device behind it: no loopback, veth, bridge. */
struct machine_nic {
  char name[MACHINE_INTERFACE_MAX];
  char pci_id[MACHINE_PCI_ID_MAX]; /* vendor:device; empty if not on PCI */
  char driver[MACHINE_TEXT_MAX];
  uint32_t speed_mbps; /* 0: the driver does not know, as virtio's */
};

struct machine {
  enum machine_cloud cloud;
  char vendor[MACHINE_TEXT_MAX];        /* DMI sys_vendor */
  char product[MACHINE_TEXT_MAX];       /* DMI product_name */
  char instance_type[MACHINE_TEXT_MAX]; /* empty where DMI does not tell */
  uint32_t cpu_count;                   /* online */
  uint32_t numa_count;                  /* online */
  uint32_t gpu_count;                   /* NVIDIA display and 3D controllers */
  char gpu_model[MACHINE_TEXT_MAX];     /* of the first GPU, as its driver calls it */
  char gpu_pci_id[MACHINE_PCI_ID_MAX];  /* of the first GPU */
  uint32_t nic_count;
  struct machine_nic nics[MACHINE_NICS_MAX];
};

void machine_read(const char *root, struct machine *machine);

/* "aws"; "unknown" for none. */
const char *machine_cloud_name(enum machine_cloud cloud);

/* Speed of the fastest NIC, 0 if no driver knows. */
uint32_t machine_nic_mbps(const struct machine *machine);

#endif
