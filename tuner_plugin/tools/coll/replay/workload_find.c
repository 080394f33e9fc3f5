/* SPDX-License-Identifier: Apache-2.0 */
/* workload_find: looks where the program was installed, then where it was built. */
#include "tuner_plugin/tools/coll/replay/workload_find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuner_plugin/tools/coll/replay/workload.h"

static const char suffix[] = ".json";

static bool ends_in_suffix(const char *text) {
  size_t length = strlen(text);
  return length > strlen(suffix) && !strcmp(text + length - strlen(suffix), suffix);
}

/* The directory of the built-in workloads; false if there is none. Installed: bin/; in the source
 * tree build/bin, or the bin and tests of a build directory with sanitizers. */
static bool find_directory(char directory[PATH_MAX]) {
  static const char *const places[] = { "../share/stratus/workloads",
                                        "../../tuner_plugin/workloads",
                                        "../../../tuner_plugin/workloads" };
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(program, '/');
  for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
    int used = snprintf(directory, PATH_MAX, "%.*s/%s", (int)(slash - program), program, places[i]);
    if (used < PATH_MAX && access(directory, R_OK | X_OK) == 0)
      return true;
  }
  return false;
}

static int is_workload(const struct dirent *entry) {
  return ends_in_suffix(entry->d_name);
}

/* "alexnet, resnet18" */
static void list_names(const char *directory, char *text, size_t size) {
  struct dirent **entries;
  int count = scandir(directory, &entries, is_workload, alphasort);
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    if (used < size)
      used +=
          (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                           (int)(strlen(entries[i]->d_name) - strlen(suffix)), entries[i]->d_name);
    free(entries[i]);
  }
  if (count >= 0)
    free(entries);
}

int workload_find(const char *argument, char path[PATH_MAX], char *error) {
  char directory[PATH_MAX], names[WORKLOAD_ERROR_MAX / 2] = "";
  if (strchr(argument, '/') || ends_in_suffix(argument)) {
    snprintf(path, PATH_MAX, "%s", argument);
    return 0;
  }
  bool is_there = find_directory(directory);
  if (is_there) {
    int used = snprintf(path, PATH_MAX, "%s/%s%s", directory, argument, suffix);
    if (used < PATH_MAX && access(path, R_OK) == 0)
      return 0;
    list_names(directory, names, sizeof names);
  }
  snprintf(
      error, WORKLOAD_ERROR_MAX,
      "no workload %.64s; built in: %s; a file of your own is given with a slash or with .json "
      "at the end",
      argument, *names ? names : "none, as share/stratus/workloads is missing");
  return -ENOENT;
}
