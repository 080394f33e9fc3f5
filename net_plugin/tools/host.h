/* SPDX-License-Identifier: Apache-2.0 */
/* host: checks settings of this host that slow flows down or misroute them; for stratus-net doctor.
 * Owns: nothing.  Threads: any.  Blocks: as procfs does.  Fails: cannot; what cannot be read is
 * skipped. */
#ifndef NET_PLUGIN_TOOLS_HOST_H
#define NET_PLUGIN_TOOLS_HOST_H

#include <stdint.h>

#include "net_plugin/lane/tcp_options.h"
#include "net_plugin/plugin/device.h"
#include "net_plugin/tools/doctor_finding.h"

struct host_facts {
  const char *root; /* as in common/sysfs.h */
  const struct device_table *devices;
  unsigned lanes; /* per connection over one NIC */
  struct tcp_options options;
  uint64_t open_files; /* ulimit -n */
};

/* From this process and its parameters. */
void host_facts_read(const struct device_table *devices, struct host_facts *facts);

/* Gives a hint for each problem, with the command that corrects it. Returns their number. */
int host_check(const struct host_facts *facts, doctor_tell_fn *tell);

#endif
