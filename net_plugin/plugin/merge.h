/* SPDX-License-Identifier: Apache-2.0 */
/* merge: several interfaces that NCCL sees as one device from the start: those of one physical
 * port, or what STRATUS_MERGE_NICS says.
 *
 * NCCL fuses NICs by itself where PCI shows that they belong together, from 2.24 on. This is for
 * the others: NICs that are not on PCI (NCCL could not place what it fused), on different cards, or
 * under an older NCCL. Every connection then uses all of them.
 *
 * Owns: nothing.  Threads: the caller serialises.  Blocks: never.  Fails: cannot; what makes no
 * sense is one LOG_WARN that lists the interfaces, and is left as it was. */
#ifndef NET_PLUGIN_PLUGIN_MERGE_H
#define NET_PLUGIN_PLUGIN_MERGE_H

#include "net_plugin/plugin/device.h"

/* Puts a device for each group in the place of its first interface; the table has nothing but
 * single interfaces before. text: "none", "all", or "eth0+eth1,eth2+eth3"; empty: those that share
 * a port. ports: of each interface, empty if not known (nic_facts.h). */
void merge_apply(struct device_table *table, char ports[][NIC_FACTS_PORT_MAX], const char *text);

#endif
