/* SPDX-License-Identifier: Apache-2.0 */
/* merge: STRATUS_MERGE_NICS: several interfaces that NCCL sees as one device from the start.
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
 * single interfaces before. text: empty, "all", or "eth0+eth1,eth2+eth3". */
void merge_apply(struct device_table *table, const char *text);

#endif
