/* SPDX-License-Identifier: Apache-2.0 */
/* usefulness: whether the NICs that NCCL is given can carry a job between hosts, and whether better
 * ones are left out; for stratus-net doctor.
 * Owns: nothing.  Threads: any.  Blocks: as sysfs does; routing tables are asked.  Fails: cannot;
 * what cannot be read is skipped. */
#ifndef NET_PLUGIN_TOOLS_USEFULNESS_H
#define NET_PLUGIN_TOOLS_USEFULNESS_H

#include "net_plugin/plugin/discovery.h"
#include "net_plugin/tools/doctor_finding.h"

/* Gives a hint for each condition, with the NICs that it is about and what to do. Returns their
 * number. root: as in common/sysfs.h. */
int usefulness_check(const struct discovery *found, const char *root, doctor_tell_fn *tell);

/* 0: not known. */
unsigned usefulness_mtu(const char *root, const char *nic);

#endif
