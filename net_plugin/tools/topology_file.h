/* SPDX-License-Identifier: Apache-2.0 */
/* topology_file: whether the files in NCCL_TOPO_FILE and NCCL_GRAPH_FILE are there, are such that
 * NCCL reads them, and are of this machine; for doctor.
 * Owns: nothing.  Threads: one.  Blocks: to read the file.
 * Fails: cannot; what is wrong is a finding. */
#ifndef NET_PLUGIN_TOOLS_TOPOLOGY_FILE_H
#define NET_PLUGIN_TOOLS_TOPOLOGY_FILE_H

#include "net_plugin/tools/doctor_finding.h"

/* `root` is that of sysfs, for the NICs and GPUs that the machine has. */
void topology_file_check_system(const char *path, const char *root, doctor_tell_fn *found);

/* `devices`: how many NCCL has; 0: not known. */
void topology_file_check_graph(const char *path, int devices, doctor_tell_fn *found);

#endif
