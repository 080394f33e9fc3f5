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

enum machine_type_origin {
  MACHINE_TYPE_UNKNOWN,
  MACHINE_TYPE_FROM_USER,
  MACHINE_TYPE_FROM_DMI,
  MACHINE_TYPE_INFERRED,
};

enum { MACHINE_TEXT_MAX = 96 };

struct machine {
  enum machine_cloud cloud;
  char instance_type[MACHINE_TEXT_MAX]; /* empty: not known */
  enum machine_type_origin type_origin;
  struct topology_counts devices;
  char topology[TOPOLOGY_ID_MAX]; /* machine_identify only; empty: not known */
};

/* From the files below `root`. */
void machine_read(const char *root, struct machine *machine);

/* This machine: from what is below sysfs_process_root; then the instance type as above, and the
 * topology, unless STRATUS_TOPOLOGY is set. */
void machine_identify(struct machine *machine);

/* "user", "DMI", "GPUs and cloud"; "unknown" for none. */
const char *machine_type_origin_name(enum machine_type_origin origin);

/* "aws"; "unknown" for none. */
const char *machine_cloud_name(enum machine_cloud cloud);

#endif
