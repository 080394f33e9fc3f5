/* SPDX-License-Identifier: Apache-2.0 */
/* locality: the NUMA nodes and CPUs of network interfaces as hwloc sees them.
 *
 * hwloc knows more than /sys/.../numa_node: it honours a topology given in HWLOC_XMLFILE and
 * corrections of wrong firmware tables in HWLOC_PCI_LOCALITY. It is opened when it is there.
 *
 * Owns: nothing.  Threads: any.  Blocks: some tens of milliseconds.
 * Fails: cannot; without hwloc nothing is changed. */
#ifndef NET_PLUGIN_PLUGIN_LOCALITY_H
#define NET_PLUGIN_PLUGIN_LOCALITY_H

#include "net_plugin/lane/nic.h"

/* Sets numa_node, and the CPUs near to it, of those that hwloc knows; leaves the others. */
void locality_read(struct nic *nics, cpu_set_t *near, unsigned count);

#endif
