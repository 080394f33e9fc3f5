/* SPDX-License-Identifier: Apache-2.0 */
/* host: settings of this host that make flows slow, or keep them from where they should go; for
 * stratus-net doctor.
 * Owns: nothing.  Threads: any.  Blocks: as procfs does.  Fails: cannot; what cannot be read is not
 * judged. */
#ifndef NET_PLUGIN_TOOLS_HOST_H
#define NET_PLUGIN_TOOLS_HOST_H

#include <stdint.h>

#include "net_plugin/lane/tcp_options.h"
#include "net_plugin/plugin/device.h"

enum { HOST_TEXT_MAX = 512 };

struct host_facts {
  const char *root; /* as in common/sysfs.h */
  const struct device_table *devices;
  unsigned lanes; /* per connection over one NIC */
  struct tcp_options options;
  uint64_t open_files; /* ulimit -n */
};

/* Reads the running process and its parameters. */
void host_facts_read(const struct device_table *devices, struct host_facts *facts);

/* Calls `tell` for each thing that is not well, with the command that repairs it. Returns how many
 * there were. */
typedef void host_tell_fn(const char *text);
int host_check(const struct host_facts *facts, host_tell_fn *tell);

#endif
