/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_check: the checks of stratus doctor, which tell what they find (doctor_tell.h).
 * Owns: nothing.  Threads: the main thread, after nccl_conf_apply; nobody changes the environment.
 * Blocks: as dlopen, sysfs and files do; routing tables are asked.  Fails: cannot; what is wrong is
 * a finding, what cannot be read is skipped. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_CHECK_H
#define NET_PLUGIN_TOOLS_DOCTOR_CHECK_H

#include <stdint.h>

#include "net_plugin/plugin/discovery.h"

/* NCCL's variables that choose NICs, and lines of its configuration files: each that is set, with
 * its place; of a line what it sets, or why it does nothing. */
void conf_tell(void);

struct doctor_host {
  const char *root; /* common/sysfs.h */
  const struct discovery *found;
  struct nic nics[DEVICE_PHYSICAL_MAX]; /* of it, in use */
  unsigned nic_count;
  unsigned lanes;               /* per connection over one NIC */
  uint32_t socket_buffer_bytes; /* 0: the kernel's */
  uint64_t open_files;          /* ulimit -n */
};
/* From this process and its parameters, which the profile is among. */
void doctor_host_read(const struct discovery *found, struct doctor_host *host);

/* Settings that slow flows down or misroute them: a hint for each, with the command that corrects
 * it. */
void host_check(const struct doctor_host *host);

/* Whether NICs can carry a job between hosts, and better ones are left out: a hint for each
 * condition, with its NICs and what to do. */
void nics_check(const struct doctor_host *host);

#endif
