/* SPDX-License-Identifier: Apache-2.0 */
/* See program_path.h. */
#include "common/tools/program_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool program_path_find(const char *name, char path[PATH_MAX]) {
  const char *directory = getenv("PATH");
  if (strchr(name, '/')) {
    return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, X_OK) == 0;
  }
  while (directory && *directory) {
    size_t length = strcspn(directory, ":");
    if (snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name) < PATH_MAX &&
        access(path, X_OK) == 0) {
      return true;
    }
    directory += length + (directory[length] == ':');
  }
  return false;
}

void program_path_to_prefix(char path[PATH_MAX]) {
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(path, '/');
    if (slash) {
      *slash = '\0';
    }
  }
}
