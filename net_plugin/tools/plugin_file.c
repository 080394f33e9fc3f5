/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_file.h. */
#include "net_plugin/tools/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

const char *plugin_file_path(void *library) {
  struct link_map *map;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "?";
}

void *plugin_file_open(enum plugin_kind kind, const char *name, int release,
                       char tried[PLUGIN_FILE_MAX]) {
  struct plugin_files files;
  void *library = NULL;
  plugin_name_files(kind, name, release, &files);
  for (int i = 0; i < files.count && !library; i++) {
    snprintf(tried, PLUGIN_FILE_MAX, "%s", files.names[i]);
    library = dlopen(tried, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

const void *plugin_file_table(enum plugin_kind kind, void *library, int *version) {
  static const struct {
    const char *symbol;
    int first, last;
  } tables[] = { [PLUGIN_KIND_NET] = { "ncclNetPlugin", 6, 12 },
                 [PLUGIN_KIND_TUNER] = { "ncclTunerPlugin", 1, 6 } };
  for (*version = tables[kind].last; *version >= tables[kind].first; (*version)--) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "%s_v%d", tables[kind].symbol, *version);
    const void *table = dlsym(library, symbol);
    if (table) {
      return table;
    }
  }
  return NULL;
}
