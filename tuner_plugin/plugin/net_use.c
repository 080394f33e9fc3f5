/* SPDX-License-Identifier: Apache-2.0 */
/* The net plugin stays mapped once it has been loaded, and counts who uses it
 * (net_plugin/plugin/plugin.c). */
#include "tuner_plugin/plugin/net_use.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum net_use net_use_find(void) {
  void *plugin = dlopen("libnccl-net-stratus.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!plugin) {
    const char *asked = getenv("NCCL_NET_PLUGIN");
    return asked && strstr(asked, "stratus") ? NET_USE_LOST : NET_USE_OTHER;
  }
  const unsigned *users = dlsym(plugin, "stratus_net_users");
  enum net_use use =
      users && __atomic_load_n(users, __ATOMIC_RELAXED) > 0 ? NET_USE_STRATUS : NET_USE_LOST;
  dlclose(plugin);
  return use;
}
