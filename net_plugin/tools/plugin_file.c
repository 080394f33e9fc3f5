/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves plugin names as NCCL does. */
#include "net_plugin/tools/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

const char *plugin_file_path(void *library) {
  struct link_map *map;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "?";
}

void *plugin_file_open(const char *name, char tried[PLUGIN_FILE_MAX]) {
  snprintf(tried, PLUGIN_FILE_MAX, "%s", name);
  void *library =
      strchr(name, '/') || strstr(name, ".so") ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library && !strchr(name, '/')) {
    snprintf(tried, PLUGIN_FILE_MAX, "libnccl-net-%s.so", name);
    library = dlopen(tried, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}
