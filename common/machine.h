/* SPDX-License-Identifier: Apache-2.0 */
/* machine: cloud, instance type, GPUs and NICs of this machine, detected offline.
 * Owns: nothing.  Threads: any.
 * Blocks: as topology does.
 * Fails: cannot; unknown values are empty or 0.
 *
 * Only AWS has the instance type in DMI. On other clouds it comes from STRATUS_INSTANCE_TYPE, or it
 * is the only type of the cloud with these GPUs and NICs. */
#ifndef COMMON_MACHINE_H
#define COMMON_MACHINE_H

#include "common/topology.h"

enum { MACHINE_TEXT_MAX = 96 };

struct machine {
  const char *cloud; /* "aws" and others, as a profile has it (profile.h), or "unknown" */
  char instance_type[MACHINE_TEXT_MAX]; /* empty: not known */
  const char *type_origin;              /* "user", "DMI", "GPUs and cloud", or "unknown" */
  struct topology_counts devices;
  char topology[TOPOLOGY_ID_MAX]; /* machine_identify only; empty: not known */
};

/* From the files below `root`. */
void machine_read(const char *root, struct machine *machine);

/* This machine: from what is below sysfs_process_root; then the instance type as above, and the
 * topology, unless STRATUS_TOPOLOGY is set. */
void machine_identify(struct machine *machine);

#endif
