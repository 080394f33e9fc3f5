/* SPDX-License-Identifier: Apache-2.0 */
/* See job_settings.h. */
#include "common/tools/job_settings.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cli.h"
#include "common/nccl_version.h"
#include "common/plugin_name.h"
#include "common/tools/program_path.h"
#include "common/version.h"

__attribute__((format(printf, 1, 2))) static char *format_text(const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) {
    exit(cli_fail("out of memory"));
  }
  return text;
}

/* An empty plugin name is no wish: NCCL before 2.27.3 takes it for one that is not set. */
static struct nccl_conf_setting find_theirs(const char *name) {
  struct nccl_conf_setting setting = nccl_conf_find(name);
  return setting.value && *setting.value ? setting : (struct nccl_conf_setting){ 0 };
}

static char *why_not(const char *name, const struct nccl_conf_setting *setting,
                     const char *reason) {
  char text[NCCL_CONF_TEXT_MAX];
  return format_text("%s%s%s", nccl_conf_text(name, setting, text), reason ? ": " : ", ",
                     reason ? reason : "and the user's settings count");
}

/* Loading NCCL takes time: only where its releases differ. */
static int release_that_matters(enum plugin_kind kind, const char *value) {
  static const int others[] = { 22105, 22703, 0 };
  bool is_stratus = plugin_name_is_stratus(kind, value, 21901);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (plugin_name_is_stratus(kind, value, others[i]) != is_stratus) {
      return nccl_version_installed();
    }
  }
  return 0;
}

static char *why_not_plugin(const char *name, const struct nccl_conf_setting *setting) {
  enum plugin_kind kind =
      strcmp(name, "NCCL_NET_PLUGIN") == 0 ? PLUGIN_KIND_NET : PLUGIN_KIND_TUNER;
  char reason[PLUGIN_NAME_TEXT_MAX];
  int release = release_that_matters(kind, setting->value);
  if (plugin_name_why_not(kind, setting->value, release, reason)) {
    return why_not(name, setting, reason);
  }
  return plugin_name_is_stratus(kind, setting->value, release) ? NULL
                                                               : why_not(name, setting, NULL);
}

/* ---- what keeps stratus from being used ---- */

/* Overruled by `ours`, where that is asked for. `text` NULL: there is no problem. */
static void note(struct job_settings *settings, enum job_variable variable,
                 enum job_problem problem, char *text, const char *ours, bool is_override) {
  struct job_setting *setting = &settings->settings[variable];
  if (text) {
    setting->problem = problem;
    setting->text = text;
    settings->is_obstructed |= problem == JOB_OBSTACLE && !is_override;
  }
  if (text && is_override) {
    setting->value = format_text("%s", ours);
  }
}

static void find_doubts(struct job_settings *settings, bool is_override) {
  const struct job_setting *net = &settings->settings[JOB_NET_PLUGIN];
  const struct job_setting *env = &settings->settings[JOB_ENV_PLUGIN];
  if (env->theirs.value && strcasecmp(env->theirs.value, "none") != 0) {
    note(settings, JOB_ENV_PLUGIN, JOB_DOUBT,
         why_not(env->name, &env->theirs,
                 "what that plugin answers counts more than the environment"),
         "none", is_override);
  }
  if (!net->problem && net->theirs.value && strchr(net->theirs.value, ',') &&
      nccl_version_installed() == 0) {
    note(settings, JOB_NET_PLUGIN, JOB_DOUBT,
         why_not(net->name, &net->theirs, "NCCL before 2.27.3 takes no list there"), "stratus",
         is_override);
  }
}

/* The values, and what is in their way. */
static void judge(struct job_settings *settings, const struct job_request *request,
                  const char *const values[]) {
  static const enum job_problem problems[] = {
    [JOB_NET_PLUGIN] = JOB_OBSTACLE, [JOB_TUNER_PLUGIN] = JOB_NO_TUNER
  };
  const struct job_setting *net = &settings->settings[JOB_NET];
  for (int i = JOB_NET_PLUGIN; i <= JOB_TUNER_PLUGIN; i++) {
    struct job_setting *setting = &settings->settings[i];
    bool is_theirs = setting->theirs.value && !request->is_file;
    setting->value = is_theirs ? NULL : format_text("%s", values[i]);
    if (setting->theirs.value) {
      note(settings, (enum job_variable)i, problems[i],
           why_not_plugin(setting->name, &setting->theirs), values[i], request->is_override);
    }
  }
  if (request->is_strict && !net->theirs.value) {
    settings->settings[JOB_NET].value = format_text("%s", STRATUS_TRANSPORT);
  }
  /* Also an empty one: NCCL then looks for a transport without a name, and finds none. */
  if (net->theirs.value && strcasecmp(net->theirs.value, STRATUS_TRANSPORT) != 0) {
    note(settings, JOB_NET, JOB_OBSTACLE, why_not(net->name, &net->theirs, NULL), STRATUS_TRANSPORT,
         request->is_override);
  }
}

/* ---- how NCCL gets the plugins ---- */

/* NVIDIA's wheels (nvidia-nccl-cu12, -cu13), which PyTorch's need. */
#define IN_PREFIX "%s/lib*/python3*/%s-packages/nvidia/nccl/lib/libnccl.so.2"

static void add_files(glob_t *files, const char *prefix) {
  static const char *const kinds[] = { "site", "dist" };
  for (int i = 0; i < 2; i++) {
    char pattern[PATH_MAX + 128];
    snprintf(pattern, sizeof pattern, IN_PREFIX, prefix, kinds[i]);
    glob(pattern, GLOB_APPEND, NULL, files);
  }
}

/* Not where a symbolic link leads: a virtual environment's python is one. */
static void add_files_of(glob_t *files, const char *program) {
  char path[PATH_MAX];
  if (program && program_path_find(program, path)) {
    program_path_to_prefix(path);
    add_files(files, path);
  }
}

/* Beside this program, which a wheel may have brought, and the user's own. */
static void add_other_files(glob_t *files) {
  char path[PATH_MAX];
  const char *home = getenv("HOME");
  if (realpath("/proc/self/exe", path)) {
    program_path_to_prefix(path);
    add_files(files, path);
  }
  if (home && snprintf(path, sizeof path, "%s/.local", home) < PATH_MAX) {
    add_files(files, path);
  }
}

static bool takes_paths(int release, char *const paths[]) {
  return plugin_name_is_stratus(PLUGIN_KIND_NET, paths[PLUGIN_KIND_NET], release) &&
         plugin_name_is_stratus(PLUGIN_KIND_TUNER, paths[PLUGIN_KIND_TUNER], release);
}

/* Each release of NCCL that the job may load, as far as this host shows them, does, and there is
 * one at least: the one that the loader finds by name, and those that Python packages bring, of
 * which PyTorch loads one. */
static bool do_all_take_paths(const char *program, char *const paths[]) {
  glob_t files = { 0 };
  int release = nccl_version_installed();
  bool is_found = release > 0, is_all = release == 0 || takes_paths(release, paths);
  add_files_of(&files, program);
  add_files_of(&files, "python3");
  add_other_files(&files);
  for (size_t i = 0; i < files.gl_pathc && is_all; i++) {
    release = nccl_version_of_library(files.gl_pathv[i]);
    is_found = is_found || release > 0;
    is_all = release == 0 || takes_paths(release, paths);
  }
  globfree(&files);
  return is_found && is_all;
}

/* NCCL takes a ',' for the end of a name, and so much of a path (MAX_STR_LEN). */
static bool is_path_for_nccl(const char *path) {
  return strlen(path) < 255 && !strchr(path, ',');
}

void job_settings_make(const struct job_request *request, struct job_settings *settings) {
  static const char *const names[] = { "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                                       "NCCL_NET", "NCCL_ENV_PLUGIN" };
  char *paths[] = {
    [PLUGIN_KIND_NET] = format_text("%s/%s", request->directory, PLUGIN_NET),
    [PLUGIN_KIND_TUNER] = format_text("%s/%s", request->directory, PLUGIN_TUNER),
  };
  const char *values[] = { [JOB_NET_PLUGIN] = "stratus", [JOB_TUNER_PLUGIN] = PLUGIN_TUNER };
  *settings = (struct job_settings){ 0 };
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    settings->settings[i].name = names[i];
    settings->settings[i].theirs = i == JOB_LD_LIBRARY_PATH ? (struct nccl_conf_setting){ 0 }
                                   : i == JOB_NET           ? nccl_conf_find(names[i])
                                                            : find_theirs(names[i]);
  }
  if (!request->is_known && is_path_for_nccl(paths[PLUGIN_KIND_TUNER]) &&
      (request->is_file || do_all_take_paths(request->program, paths))) {
    values[JOB_NET_PLUGIN] = paths[PLUGIN_KIND_NET];
    values[JOB_TUNER_PLUGIN] = paths[PLUGIN_KIND_TUNER];
  } else {
    settings->needs_library_path = !request->is_known;
  }
  judge(settings, request, values);
  free(paths[PLUGIN_KIND_NET]);
  free(paths[PLUGIN_KIND_TUNER]);
  if (settings->is_obstructed) {
    for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
      settings->settings[i].value = NULL;
    }
    return;
  }
  find_doubts(settings, request->is_override);
  const char *path = getenv("LD_LIBRARY_PATH");
  settings->settings[JOB_LD_LIBRARY_PATH].value =
      format_text("%s%s%s", request->directory, path && *path ? ":" : "", path ? path : "");
}

void job_settings_tell(const struct job_settings *settings, const char *instead) {
  static const char *const says[] = { [JOB_OBSTACLE] = "the job runs without stratus",
                                      [JOB_NO_TUNER] = "the job runs without the tuner of stratus",
                                      [JOB_DOUBT] = "the job may run without stratus" };
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings->settings[i];
    if (setting->problem == JOB_OBSTACLE || (setting->problem && !settings->is_obstructed)) {
      cli_say("%s: %s", instead ? instead : says[setting->problem], setting->text);
    }
  }
}
