/* SPDX-License-Identifier: Apache-2.0 */
/* Compares profiles with the machine and searches the directories for the best. */
#include "common/profile_match.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/param.h"

/* ---- does it fit? ---- */

/* Whether one of the alternatives in "p4d.*, p4de.24xlarge" matches `text`. */
static bool is_pattern_in_list(const char *alternatives, const char *text) {
  char copy[PROFILE_TEXT_MAX];
  snprintf(copy, sizeof copy, "%s", alternatives);
  char *rest = copy;
  for (char *pattern; text[0] && (pattern = strsep(&rest, ","));) {
    pattern += strspn(pattern, " \t");
    size_t length = strlen(pattern);
    while (length > 0 && (pattern[length - 1] == ' ' || pattern[length - 1] == '\t')) {
      pattern[--length] = '\0';
    }
    if (length > 0 && fnmatch(pattern, text, FNM_CASEFOLD) == 0) {
      return true;
    }
  }
  return false;
}

bool profile_match_has_topology(const struct profile_fit *fit, const char *topology) {
  return topology[0] && strcmp(fit->topology, topology) == 0;
}

int profile_match_score(const struct profile_fit *fit, const struct machine *machine) {
  const struct {
    bool is_asked;
    bool is_met;
    int weight;
  } wishes[] = {
    { fit->cloud[0], strcasecmp(fit->cloud, machine->cloud) == 0, 1 },
    { fit->instance_type[0], is_pattern_in_list(fit->instance_type, machine->instance_type), 1 },
    /* Such a profile was measured on just this machine's kind: over all else. */
    { fit->topology[0], profile_match_has_topology(fit, machine->topology), 3 },
  };
  int score = 0;
  for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
    if (wishes[i].is_asked && !wishes[i].is_met) {
      return -1;
    }
    score += wishes[i].is_asked ? wishes[i].weight : 0;
  }
  return score > 0 ? score : -1;
}

bool profile_match_is_nccl_in_range(const struct profile_meta *meta, int nccl_version) {
  return nccl_version == 0 || (nccl_version >= meta->nccl_min &&
                               (meta->nccl_max == 0 || nccl_version <= meta->nccl_max));
}

/* ---- search ---- */

__attribute__((format(printf, 2, 3))) static bool format_path(char path[PROFILE_PATH_MAX],
                                                              const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(path, PROFILE_PATH_MAX, format, arguments);
  va_end(arguments);
  return length >= 0 && length < PROFILE_PATH_MAX;
}

static int is_profile_name(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  static const char suffix[] = ".profile";
  return entry->d_name[0] != '.' && length >= sizeof suffix &&
         strcmp(entry->d_name + length - (sizeof suffix - 1), suffix) == 0;
}

/* Bytewise: the order must not depend on the locale, which may differ between hosts. */
static int compare_entries(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* The best so far in one directory. */
struct candidate {
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int score; /* 0: none yet */
};

/* Takes the file for the best if it fits better. */
static int consider_file(const char *path, const struct machine *machine, struct candidate *best,
                         struct profile_error *error) {
  struct profile profile;
  int result = profile_read(path, &profile, error);
  if (result < 0) {
    return result;
  }
  int score = profile_match_score(&profile.fit, machine);
  if (score <= best->score) {
    profile_free(&profile);
    return 0;
  }
  profile_free(&best->profile);
  best->profile = profile;
  best->score = score;
  memcpy(best->path, path, sizeof best->path);
  return 0;
}

/* Sets best->score if a profile in the directory fits. */
static void search_directory(const char *directory, const struct machine *machine,
                             struct candidate *best) {
  struct dirent **entries;
  int count = scandir(directory, &entries, is_profile_name, compare_entries);
  if (count < 0) {
    return; /* it need not exist */
  }
  for (int i = 0; i < count; i++) {
    char path[PROFILE_PATH_MAX];
    struct profile_error error;
    if (format_path(path, "%s/%s", directory, entries[i]->d_name) &&
        consider_file(path, machine, best, &error) < 0) {
      LOG_WARN("%s; this profile is passed over", error.text);
    }
    free(entries[i]);
  }
  free(entries);
}

/* All ranks are given the same one, so it is used; but the machines may have changed since. */
static int read_explicit(const char *explicit_path, const struct machine *machine,
                         struct profile *out, char path[PROFILE_PATH_MAX],
                         struct profile_error *error) {
  int result = profile_read(explicit_path, out, error);
  if (result < 0) {
    return result;
  }
  format_path(path, "%s", explicit_path);
  if (out->fit.topology[0] && !profile_match_has_topology(&out->fit, machine->topology)) {
    LOG_WARN("profile %s is used although it was made for machines of another topology, %s: this "
             "one's is %s",
             out->meta.id, out->fit.topology,
             machine->topology[0] ? machine->topology : "not known");
  }
  return 0;
}

int profile_match_find(const struct profile_search *search, const struct machine *machine,
                       struct profile *out, char path[PROFILE_PATH_MAX],
                       struct profile_error *error) {
  *out = (struct profile){ 0 };
  *error = (struct profile_error){ 0 };
  path[0] = '\0';
  if (search->explicit_path && search->explicit_path[0]) {
    return read_explicit(search->explicit_path, machine, out, path, error);
  }
  struct candidate best = { 0 };
  for (const char *const *directory = search->directories; best.score == 0 && *directory;
       directory++) {
    search_directory(*directory, machine, &best);
  }
  if (best.score == 0) {
    snprintf(error->text, sizeof error->text,
             "no profile fits this machine: cloud %s, instance type %s, topology %s",
             machine->cloud, machine->instance_type[0] ? machine->instance_type : "unknown",
             machine->topology[0] ? machine->topology : "unknown");
    return -ENOENT;
  }
  *out = best.profile;
  memcpy(path, best.path, PROFILE_PATH_MAX);
  return 0;
}

/* ---- this process ---- */

/* The specification of XDG_CONFIG_HOME has relative paths ignored, and the current directory is
 * not to be trusted, so both variables must hold absolute ones. */
static bool find_user_directory(char path[PROFILE_PATH_MAX]) {
  const char *config = getenv("XDG_CONFIG_HOME");
  if (config && config[0] == '/') {
    return format_path(path, "%s/stratus/profiles", config);
  }
  const char *home = getenv("HOME");
  return home && home[0] == '/' && format_path(path, "%s/.config/stratus/profiles", home);
}

/* The file that holds this code: the plugin, or the tool's program. */
static bool find_own_file(char path[PROFILE_PATH_MAX]) {
  Dl_info info;
  struct link_map *map = NULL;
  if (!dladdr1((void *)(uintptr_t)find_own_file, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) {
    return false;
  }
  /* The loader leaves the main program's name empty, and argv[0] may lie. */
  const char *name = map->l_name[0] ? map->l_name : "/proc/self/exe";
  char *real = realpath(name, NULL);
  bool is_found = real && format_path(path, "%s", real);
  free(real);
  return is_found;
}

/* PREFIX/lib/stratus/libnccl-net-stratus.so, PREFIX/bin/stratus ->
 * PREFIX/share/stratus/profiles. No higher: those directories may be anybody's. */
static bool find_package_directory(char path[PROFILE_PATH_MAX]) {
  char own[PROFILE_PATH_MAX];
  if (!find_own_file(own)) {
    return false;
  }
  *strrchr(own, '/') = '\0';
  for (int level = 0; level < 2; level++) {
    char *slash = strrchr(own, '/');
    if (!slash) {
      return false;
    }
    *slash = '\0';
    if (format_path(path, "%s/share/stratus/profiles", own) && access(path, X_OK) == 0) {
      return true;
    }
  }
  return false;
}

int profile_match_load(struct profile *out, char path[PROFILE_PATH_MAX],
                       struct profile_error *error) {
  char user[PROFILE_PATH_MAX];
  char package[PROFILE_PATH_MAX];
  const char *directories[4] = { 0 };
  size_t count = 0;
  if (find_user_directory(user)) {
    directories[count++] = user;
  }
  directories[count++] = "/etc/stratus/profiles.d";
  if (find_package_directory(package)) {
    directories[count++] = package;
  }
  const struct profile_search search = {
    .explicit_path = param_string(PARAM_PROFILE),
    .directories = directories,
  };
  struct machine machine;
  machine_identify(&machine);
  return profile_match_find(&search, &machine, out, path, error);
}
