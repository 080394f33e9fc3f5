/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_place.h. */
#include "common/tools/plugin_place.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const plugins[] = { PLUGIN_NET, PLUGIN_TUNER };
enum { PLUGIN_COUNT = 2 };

/* From the directory of the program. The directory of the plugins alone comes first; ../lib is also
 * that of the build tree and of a wheel. */
static const char *const places[] = {
  "../lib/stratus",
  "../lib",
};

static bool has_plugins(const char *directory) {
  for (int i = 0; i < PLUGIN_COUNT; i++) {
    char file[PATH_MAX + 128];
    snprintf(file, sizeof file, "%s/%s", directory, plugins[i]);
    if (access(file, R_OK) != 0) {
      return false;
    }
  }
  return true;
}

bool plugin_place_find(char directory[PATH_MAX], char why_not[PLUGIN_WHY_MAX]) {
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(program, '/');
  if (!slash) {
    snprintf(why_not, PLUGIN_WHY_MAX, "/proc/self/exe cannot be read");
    return false;
  }
  *slash = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", program, places[i]);
    if (has_plugins(path) && realpath(path, directory)) {
      return true;
    }
  }
  snprintf(why_not, PLUGIN_WHY_MAX, "%s and %s are neither in ../lib/stratus nor in ../lib of %s",
           PLUGIN_NET, PLUGIN_TUNER, program);
  return false;
}

bool plugin_place_load(const char *directory, char why_not[PLUGIN_WHY_MAX]) {
  for (int i = 0; i < PLUGIN_COUNT; i++) {
    char file[PATH_MAX + 128];
    snprintf(file, sizeof file, "%s/%s", directory, plugins[i]);
    if (!dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      snprintf(why_not, PLUGIN_WHY_MAX, "%s", dlerror());
      return false;
    }
  }
  return true;
}

bool plugin_place_is_known_to_loader(const char *directory) {
  char ours[PATH_MAX + 128], real[PATH_MAX], found[PATH_MAX];
  snprintf(ours, sizeof ours, "%s/%s", directory, PLUGIN_NET);
  void *library = dlopen(PLUGIN_NET, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map = NULL;
  return library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, found) &&
         realpath(ours, real) && strcmp(found, real) == 0;
}
