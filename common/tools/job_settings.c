/* SPDX-License-Identifier: Apache-2.0 */
/* See job_settings.h. */
#include "common/tools/job_settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tools/plugin_place.h"

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

static bool is_one_of_ours(const char *name, size_t length) {
  static const char *const names[] = { "stratus", PLUGIN_NET };
  for (const char *slash; (slash = memchr(name, '/', length));) {
    length -= (size_t)(slash + 1 - name);
    name = slash + 1;
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
      return true;
    }
  }
  return false;
}

bool job_settings_is_stratus(const char *net_plugin) {
  for (const char *name = net_plugin; *name;) {
    size_t length = strcspn(name, ",");
    if (is_one_of_ours(name, length)) {
      return true;
    }
    name += length + (name[length] == ',');
  }
  return false;
}

/* NCCL takes an empty variable for one that is not set. */
static void find_theirs(struct job_setting *setting) {
  const char *value = getenv(setting->name);
  if (value && *value) {
    setting->theirs = format_text("%s", value);
    setting->set_where = format_text("the environment");
    return;
  }
  char found[NCCL_CONF_VALUE_MAX], where[PATH_MAX];
  if (nccl_conf_find(setting->name, found, where) && *found) {
    setting->theirs = format_text("%s", found);
    setting->set_where = format_text("%s", where);
  }
}

static char *why_not(const struct job_setting *setting) {
  return format_text("%s=%s is set in %s", setting->name, setting->theirs, setting->set_where);
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
    struct job_setting *setting = &settings->settings[i];
    find_theirs(setting);
    if (!setting->theirs) {
      setting->value = format_text("%s", values[i]);
    }
  }
  const char *path = getenv("LD_LIBRARY_PATH");
  settings->settings[JOB_LD_LIBRARY_PATH].value =
      format_text("%s%s%s", directory, path && *path ? ":" : "", path ? path : "");

  const struct job_setting *net = &settings->settings[JOB_NET_PLUGIN];
  struct job_setting other = { .name = "NCCL_NET" };
  find_theirs(&other);
  if (net->theirs && !job_settings_is_stratus(net->theirs)) {
    settings->why_not_net = why_not(net);
  } else if (other.theirs && strcasecmp(other.theirs, "stratus") != 0) {
    settings->why_not_net = why_not(&other);
  }
  const struct job_setting *tuner = &settings->settings[JOB_TUNER_PLUGIN];
  if (tuner->theirs && !strstr(tuner->theirs, PLUGIN_TUNER) &&
      strcmp(tuner->theirs, "stratus") != 0) {
    settings->why_not_tuner = why_not(tuner);
  }
}
