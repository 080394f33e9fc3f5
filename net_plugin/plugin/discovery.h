/* SPDX-License-Identifier: Apache-2.0 */
/* discovery: combines what is known from the system, NCCL's variables, the parameters and the
 * profile about the machine's NICs; for the plugin and for `stratus devices`.
 *
 * Owns: its struct; the list and the profile in it until discovery_free.  Threads: the caller
 * serialises. Blocks: as topology, sysfs and profiles do. Fails: negative errno if interfaces
 * cannot be listed or STRATUS_ADVERTISE_ADDRESS is bad; after LOG_WARN. No usable interface is no
 * failure. */
#ifndef NET_PLUGIN_PLUGIN_DISCOVERY_H
#define NET_PLUGIN_PLUGIN_DISCOVERY_H

#include <stdbool.h>

#include "common/profile.h"
#include "net_plugin/plugin/device.h"
#include "net_plugin/plugin/interface.h"

/* Some 200 KiB: not for a thread's stack. */
struct discovery {
  struct interface *interfaces; /* each with its verdict */
  int interface_count;
  struct interface_wishes wishes;
  struct profile profile; /* empty if none is used */
  bool has_profile;
  char profile_path[PROFILE_PATH_MAX];
  struct device_table devices;
};

int discovery_run(struct discovery *discovery);
void discovery_free(struct discovery *discovery);

enum { DISCOVERY_TEXT_MAX = 1024 };
/* One text per interface that is not used, separated by semicolons; or that there is none. */
const char *discovery_unused_text(const struct discovery *discovery, char text[DISCOVERY_TEXT_MAX]);
/* "eth16, eth17": the interfaces that are left out for this reason. Empty: there is none. Of both
 * texts the end says how many have no room. */
const char *discovery_left_out_text(const struct discovery *discovery,
                                    enum interface_verdict verdict, char text[DISCOVERY_TEXT_MAX]);

#endif
