/* SPDX-License-Identifier: Apache-2.0 */
/* See setting_origin.h. */
#include "common/tools/setting_origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The first process of a container has what its image and its pod say. */
static bool is_containers(const char *name, const char *value) {
  FILE *file = getpid() != 1 ? fopen("/proc/1/environ", "re") : NULL;
  char *entry = NULL;
  size_t size = 0, length = strlen(name);
  bool is_found = false;
  while (file && !is_found && getdelim(&entry, &size, '\0', file) >= 0) {
    is_found = strncmp(entry, name, length) == 0 && entry[length] == '=' &&
               strcmp(entry + length + 1, value) == 0;
  }
  free(entry);
  if (file) {
    fclose(file);
  }
  return is_found;
}

/* TaskProlog of slurm.conf; "" if there is none. */
static void find_prolog(char path[PATH_MAX]) {
  const char *named = getenv("SLURM_CONF");
  const char *const files[] = { named ? named : "", "/run/slurm/conf/slurm.conf",
                                "/etc/slurm/slurm.conf" };
  char line[PATH_MAX + 64];
  path[0] = '\0';
  for (size_t i = 0; i < sizeof files / sizeof files[0] && !path[0]; i++) {
    FILE *file = fopen(files[i], "re");
    while (file && !path[0] && fgets(line, sizeof line, file)) {
      char key[16];
      _Static_assert(PATH_MAX > 4095, "room for what is scanned");
      if (sscanf(line, " %15[^= \t] = %4095[^ \t\n#]", key, path) != 2 ||
          strcasecmp(key, "TaskProlog") != 0) {
        path[0] = '\0';
      }
    }
    if (file) {
      fclose(file);
    }
  }
}

static bool is_prologs(const char *name, char path[PATH_MAX]) {
  char line[1024];
  bool is_found = false;
  if (!getenv("SLURM_JOB_ID")) {
    return false;
  }
  find_prolog(path);
  FILE *file = path[0] ? fopen(path, "re") : NULL;
  while (file && !is_found && fgets(line, sizeof line, file)) {
    const char *at = strstr(line, name);
    is_found = at && at[strlen(name)] == '=';
  }
  if (file) {
    fclose(file);
  }
  return is_found;
}

const char *setting_origin(const char *name, const struct nccl_conf_setting *setting,
                           char text[SETTING_ORIGIN_MAX]) {
  char prolog[PATH_MAX], where[NCCL_CONF_WHERE_MAX];
  if (setting->file) {
    snprintf(text, SETTING_ORIGIN_MAX, "%s", nccl_conf_where(setting->file, setting->line, where));
  } else if (is_prologs(name, prolog)) {
    snprintf(text, SETTING_ORIGIN_MAX, "the environment, by Slurm's TaskProlog %s", prolog);
  } else if (is_containers(name, setting->value)) {
    snprintf(text, SETTING_ORIGIN_MAX, "the environment of the container, by its image or pod");
  } else {
    snprintf(text, SETTING_ORIGIN_MAX, "the environment");
  }
  return text;
}
