/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_name.h. */
#include "common/plugin_name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/nccl_conf.h"

enum { HAS_BOTH = 22105, ONE_OF_BOTH = 22703, HAS_BOTH_AGAIN = 22705, HAS_LISTS = 22703 };
enum { NEWEST = 99999 };

static const char *const prefixes[] = {
  [PLUGIN_KIND_NET] = "libnccl-net-", [PLUGIN_KIND_TUNER] = "libnccl-tuner-"
};
static const char *const ours[] = {
  [PLUGIN_KIND_NET] = PLUGIN_NET, [PLUGIN_KIND_TUNER] = PLUGIN_TUNER
};

static bool is_library(const char *name) {
  size_t length = strlen(name);
  return strncmp(name, "lib", 3) == 0 && length > 6 && strcmp(name + length - 3, ".so") == 0;
}

static void add(struct plugin_files *files, const char *prefix, const char *name,
                const char *suffix) {
  snprintf(files->names[files->count++], PATH_MAX, "%s%s%s", prefix, name, suffix);
}

void plugin_name_files(enum plugin_kind kind, const char *name, int release,
                       struct plugin_files *files) {
  bool as_it_is = true, as_part = true;
  release = release > 0 ? release : NEWEST;
  if (release < HAS_BOTH) {
    as_it_is = kind == PLUGIN_KIND_TUNER;
    as_part = !as_it_is;
  } else if (release >= ONE_OF_BOTH && release < HAS_BOTH_AGAIN) {
    as_it_is = is_library(name);
    as_part = !as_it_is;
  } else if (release >= HAS_BOTH_AGAIN) {
    as_part = !strchr(name, '/') && !is_library(name);
  }
  files->count = 0;
  if (as_it_is) {
    add(files, "", name, "");
  }
  if (as_part) {
    add(files, prefixes[kind], name, ".so");
  }
}

static bool has_lists(int release) {
  return release == 0 || release >= HAS_LISTS;
}

static bool is_ours(enum plugin_kind kind, const char *name, int release) {
  struct plugin_files files;
  plugin_name_files(kind, name, release, &files);
  for (int i = 0; i < files.count; i++) {
    const char *slash = strrchr(files.names[i], '/');
    if (strcmp(slash ? slash + 1 : files.names[i], ours[kind]) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_list(enum plugin_kind kind, const char *value) {
  return kind == PLUGIN_KIND_NET && strchr(value, ',');
}

static bool has_ours(enum plugin_kind kind, const char *list, int release) {
  char copy[PATH_MAX];
  snprintf(copy, sizeof copy, "%s", list);
  char *rest = NULL;
  for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    if (is_ours(kind, name, release)) {
      return true;
    }
  }
  return false;
}

bool plugin_name_is_stratus(enum plugin_kind kind, const char *value, int release) {
  return is_list(kind, value) ? has_lists(release) && has_ours(kind, value, release)
                              : is_ours(kind, value, release);
}

/* Without what is around it: blanks, a carriage return, quotes. */
static bool is_nearly_ours(enum plugin_kind kind, const char *value) {
  static const char around[] = " \t\r\"'";
  char bare[PATH_MAX];
  snprintf(bare, sizeof bare, "%s", value + strspn(value, around));
  for (size_t length = strlen(bare); length > 0 && strchr(around, bare[length - 1]);) {
    bare[--length] = '\0';
  }
  return plugin_name_is_stratus(kind, bare, 0);
}

static bool is_absent(enum plugin_kind kind, const char *value) {
  return !is_list(kind, value) && strchr(value, '/') && access(value, R_OK) != 0;
}

bool plugin_name_why_not(enum plugin_kind kind, const char *value, int release,
                         char text[PLUGIN_NAME_TEXT_MAX]) {
  const char *odd = nccl_conf_oddity(value);
  const char *advice = kind == PLUGIN_KIND_NET ? "stratus" : PLUGIN_TUNER;
  if (plugin_name_is_stratus(kind, value, release)) {
    snprintf(text, PLUGIN_NAME_TEXT_MAX, "there is no such file that could be read");
    return is_absent(kind, value);
  }
  if (!plugin_name_is_stratus(kind, value, 0)) {
    snprintf(text, PLUGIN_NAME_TEXT_MAX, "NCCL takes %s for a part of the name; take it out",
             odd ? odd : "all of it");
    return is_nearly_ours(kind, value);
  }
  snprintf(text, PLUGIN_NAME_TEXT_MAX, "NCCL %d.%d.%d takes no %s there; set it to %s",
           release / 10000, release / 100 % 100, release % 100,
           is_list(kind, value) ? "list"
           : strchr(value, '/') ? "path"
                                : "such name",
           advice);
  return true;
}
