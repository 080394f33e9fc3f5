/* SPDX-License-Identifier: Apache-2.0 */
/* nic_renewal: which NIC now stands for each that NCCL was told of.
 *
 * NCCL asks for devices once and goes on with their numbers, also for communicators that begin
 * later, while interfaces are renamed, get other addresses, or go. So a device keeps its number,
 * name and place, and its NICs are looked up again when one is no longer what it was.
 *
 * Owns: its struct.  Threads: the caller serialises.  Blocks: never; nic_renewal_is_due asks the
 * kernel, some 50 us.  Fails: as stated. */
#ifndef NET_PLUGIN_PLUGIN_NIC_RENEWAL_H
#define NET_PLUGIN_PLUGIN_NIC_RENEWAL_H

#include "net_plugin/plugin/device.h"

struct nic_renewal {
  unsigned count;
  struct {
    struct nic told; /* when NCCL asked */
    struct nic now;
    bool is_gone; /* no interface stands for it */
  } nics[DEVICE_PHYSICAL_MAX];
};

/* Begins with the NICs of the table as they are. */
void nic_renewal_begin(struct nic_renewal *renewal, const struct device_table *table);

/* Whether one of the device's NICs is no longer there under its name and with its address, or one
 * that was gone is back. */
bool nic_renewal_is_due(const struct nic_renewal *renewal, const struct device *device);

/* Looks for each NIC among those that are in use now: the same interface, by index or name, or else
 * who has its address; then a NIC that is new. Logs what is different. */
void nic_renewal_take(struct nic_renewal *renewal, const struct device_table *fresh);

/* The NICs of a device as they are now. Where all are gone another one of this host stands in for
 * them; 0, after LOG_WARN: there is none. */
unsigned nic_renewal_nics(const struct nic_renewal *renewal, const struct device *device,
                          struct nic out[NIC_MAX_FUSED]);

#endif
