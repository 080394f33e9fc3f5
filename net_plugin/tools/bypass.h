/* SPDX-License-Identifier: Apache-2.0 */
/* bypass: what NCCL sends between hosts without asking the net plugin, and what its own encryption
 * covers; for stratus-net doctor.
 * Owns: nothing.  Threads: any, while nobody changes the environment.  Blocks: never.
 * Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_BYPASS_H
#define NET_PLUGIN_TOOLS_BYPASS_H

#include <stdbool.h>

#include "net_plugin/tools/doctor_finding.h"

struct bypass_facts {
  int release;       /* as ncclGetVersion counts; 0: not known, and nothing is told */
  bool has_rdma;     /* NCCL finds devices for its own RDMA */
  bool is_encrypted; /* STRATUS_ENCRYPT=on */
};

/* Reads NCCL's variables. */
void bypass_check(const struct bypass_facts *facts, doctor_tell_fn *tell);

#endif
