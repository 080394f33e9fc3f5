/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_check: the checks of stratus doctor, and how they tell what they find.
 * Owns: nothing.  Threads: the main thread, after nccl_conf_apply; nobody changes the environment.
 * Blocks: as dlopen, sysfs and files do; routing tables are asked.  Fails: cannot; what is wrong is
 * a finding, what cannot be read is skipped, a text that is too long is cut. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_CHECK_H
#define NET_PLUGIN_TOOLS_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/plugin/discovery.h"

enum doctor_finding { DOCTOR_GOOD, DOCTOR_HINT, DOCTOR_BAD };

/* Of doctor.c; tests have their own. */
enum { DOCTOR_TEXT_MAX = 2048 };
void doctor_tell(enum doctor_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- conf: NCCL's variables that choose NICs, and lines of its configuration files ---- */

/* Each that is set, with its place; of a line what it sets, or why it does nothing. */
void conf_tell(void);

/* ---- host: settings that slow flows down or misroute them ---- */

struct host_facts {
  const char *root; /* common/sysfs.h */
  const struct device_table *devices;
  unsigned lanes; /* per connection over one NIC */
  struct tcp_options options;
  uint64_t open_files; /* ulimit -n */
};
/* From this process and its parameters. */
void host_facts_read(const struct device_table *devices, struct host_facts *facts);
/* A hint for each problem, with the command that corrects it. */
void host_check(const struct host_facts *facts);

/* ---- nics: whether NICs can carry a job between hosts, and better ones are left out ---- */

/* A hint for each condition, with its NICs and what to do. */
void nics_check(const struct discovery *found, const char *root);

#endif
