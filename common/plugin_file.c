/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_file.h. */
#include "common/plugin_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/version.h"

/* ---- any plugin ---- */

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
    const char *symbol, *versions;
  } kinds[] = {
    [PLUGIN_KIND_NET] = { "ncclNetPlugin", STRATUS_NET_ABI },
    [PLUGIN_KIND_TUNER] = { "ncclTunerPlugin", STRATUS_TUNER_ABI },
  };
  int first = 0;
  *version = 0;
  sscanf(kinds[kind].versions, "v%d to v%d", &first, version);
  for (; *version >= first; (*version)--) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "%s_v%d", kinds[kind].symbol, *version);
    const void *table = dlsym(library, symbol);
    if (table) {
      return table;
    }
  }
  return NULL;
}

/* ---- ours ---- */

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
    char file[PLUGIN_FILE_MAX];
    snprintf(file, sizeof file, "%s/%s", directory, plugins[i]);
    if (access(file, R_OK) != 0) {
      return false;
    }
  }
  return true;
}

bool plugin_file_find_ours(char directory[PATH_MAX], char why_not[PLUGIN_WHY_MAX]) {
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

bool plugin_file_load_ours(const char *directory, char why_not[PLUGIN_WHY_MAX]) {
  for (int i = 0; i < PLUGIN_COUNT; i++) {
    char file[PLUGIN_FILE_MAX];
    snprintf(file, sizeof file, "%s/%s", directory, plugins[i]);
    if (!dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
      snprintf(why_not, PLUGIN_WHY_MAX, "%s", dlerror());
      return false;
    }
  }
  return true;
}

/* What the loader finds there it would not find in a process that has lost the variable. */
static bool is_in_library_path(const char *file) {
  const char *directory = getenv("LD_LIBRARY_PATH"), *slash = strrchr(file, '/');
  while (directory && *directory && slash) {
    size_t length = strcspn(directory, ":");
    if (length == (size_t)(slash - file) && strncmp(directory, file, length) == 0) {
      return true;
    }
    directory += length + (directory[length] == ':');
  }
  return false;
}

bool plugin_file_is_known_to_loader(const char *directory) {
  char ours[PLUGIN_FILE_MAX], real[PATH_MAX], found[PATH_MAX];
  snprintf(ours, sizeof ours, "%s/%s", directory, PLUGIN_NET);
  void *library = dlopen(PLUGIN_NET, RTLD_NOW | RTLD_LOCAL);
  return library && !is_in_library_path(plugin_file_path(library)) &&
         realpath(plugin_file_path(library), found) && realpath(ours, real) &&
         strcmp(found, real) == 0;
}
