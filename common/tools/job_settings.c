/* SPDX-License-Identifier: Apache-2.0 */
/* See job_settings.h. */
#include "common/tools/job_settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/nccl_version.h"
#include "common/plugin_name.h"

__attribute__((format(printf, 1, 2))) static char *format_text(const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) {
    fputs("out of memory\n", stderr);
    exit(1);
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
  nccl_conf_text(name, setting, text);
  return reason ? format_text("%s: %s", text, reason)
                : format_text("%s, and the user's settings count", text);
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

char *job_settings_why_not_plugin(const char *name, const struct nccl_conf_setting *setting) {
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

/* Also an empty one: NCCL then looks for a transport without a name, and finds none. */
char *job_settings_why_not_net(const struct nccl_conf_setting *nccl_net) {
  return nccl_net->value && strcasecmp(nccl_net->value, "stratus") != 0
             ? why_not("NCCL_NET", nccl_net, NULL)
             : NULL;
}

/* Whether stratus can be used; false: with the reason. */
static bool judge(struct job_settings *settings) {
  const struct nccl_conf_setting other = nccl_conf_find("NCCL_NET");
  const struct job_setting *net = &settings->settings[JOB_NET_PLUGIN];
  const struct job_setting *tuner = &settings->settings[JOB_TUNER_PLUGIN];
  settings->why_not_net =
      net->theirs.value ? job_settings_why_not_plugin(net->name, &net->theirs) : NULL;
  if (!settings->why_not_net) {
    settings->why_not_net = job_settings_why_not_net(&other);
  }
  if (settings->why_not_net) {
    return false;
  }
  if (tuner->theirs.value) {
    settings->why_not_tuner = job_settings_why_not_plugin(tuner->name, &tuner->theirs);
  }
  if (net->theirs.value && strchr(net->theirs.value, ',') && nccl_version_installed() == 0) {
    settings->doubt = why_not(net->name, &net->theirs, "NCCL before 2.27.3 takes no list there");
  }
  return true;
}

void job_settings_make(const char *directory, struct job_settings *settings) {
  *settings = (struct job_settings){ .settings = {
                                         [JOB_LD_LIBRARY_PATH] = { .name = "LD_LIBRARY_PATH" },
                                         [JOB_NET_PLUGIN] = { .name = "NCCL_NET_PLUGIN" },
                                         [JOB_TUNER_PLUGIN] = { .name = "NCCL_TUNER_PLUGIN" },
                                         [JOB_REF_COUNT] = { .name = "NCCL_NET_PLUGIN_REF_COUNT" },
                                     } };
  static const char *const values[] = {
    [JOB_NET_PLUGIN] = "stratus", [JOB_TUNER_PLUGIN] = PLUGIN_TUNER, [JOB_REF_COUNT] = "1"
  };
  for (int i = JOB_NET_PLUGIN; i < JOB_VARIABLE_COUNT; i++) {
    settings->settings[i].theirs = find_theirs(settings->settings[i].name);
  }
  if (!judge(settings)) {
    return;
  }
  for (int i = JOB_NET_PLUGIN; i < JOB_VARIABLE_COUNT; i++) {
    if (!settings->settings[i].theirs.value) {
      settings->settings[i].value = format_text("%s", values[i]);
    }
  }
  const char *path = getenv("LD_LIBRARY_PATH");
  settings->settings[JOB_LD_LIBRARY_PATH].value =
      format_text("%s%s%s", directory, path && *path ? ":" : "", path ? path : "");
}
