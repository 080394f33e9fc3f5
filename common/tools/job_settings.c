/* SPDX-License-Identifier: Apache-2.0 */
/* See job_settings.h. */
#include "common/tools/job_settings.h"

#include <ifaddrs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/name_list.h"
#include "common/nccl_version.h"
#include "common/plugin_name.h"
#include "common/tools/nccl_found.h"
#include "common/version.h"

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

/* Also an empty one: NCCL then looks for a transport without a name, and finds none. */
static char *why_not_net(const struct nccl_conf_setting *nccl_net) {
  return nccl_net->value && strcasecmp(nccl_net->value, STRATUS_TRANSPORT) != 0
             ? why_not("NCCL_NET", nccl_net, NULL)
             : NULL;
}

/* ---- what keeps stratus from being used ---- */

/* Overruled by `value` of `variable`, where that is asked for. */
static void add_obstacle(struct job_settings *settings, char *text, enum job_variable variable,
                         const char *value, bool is_override) {
  size_t count = 0;
  while (count < JOB_OBSTACLES_MAX - 1 && settings->obstacles[count]) {
    count++;
  }
  if (text) {
    settings->obstacles[count] = text;
  }
  if (text && is_override) {
    settings->settings[variable].value = format_text("%s", value);
  }
}

/* NCCL itself does not start without one. */
static bool has_interface(const char *names) {
  struct name_list list;
  struct ifaddrs *interfaces;
  bool is_found = false;
  if (!names || strlen(names) < 2 || getifaddrs(&interfaces) != 0) {
    return true;
  }
  name_list_parse(&list, "NCCL_SOCKET_IFNAME", names, true);
  for (const struct ifaddrs *each = interfaces; each && !is_found; each = each->ifa_next) {
    is_found = name_list_has(&list, each->ifa_name, NAME_LIST_ANY_PORT);
  }
  freeifaddrs(interfaces);
  return is_found;
}

static void find_doubts(struct job_settings *settings, bool is_override) {
  const struct job_setting *net = &settings->settings[JOB_NET_PLUGIN];
  const struct nccl_conf_setting names = nccl_conf_find("NCCL_SOCKET_IFNAME");
  const struct job_setting *env = &settings->settings[JOB_ENV_PLUGIN];
  int count = 0;
  if (env->theirs.value && strcasecmp(env->theirs.value, "none") != 0) {
    settings->doubts[count++] = why_not(
        env->name, &env->theirs, "what that plugin answers counts more than the environment");
    settings->settings[JOB_ENV_PLUGIN].value = is_override ? format_text("%s", "none") : NULL;
  }
  if (net->theirs.value && strchr(net->theirs.value, ',') && nccl_version_installed() == 0) {
    settings->doubts[count++] =
        why_not(net->name, &net->theirs, "NCCL before 2.27.3 takes no list there");
    settings->settings[JOB_NET_PLUGIN].value = is_override ? format_text("%s", "stratus") : NULL;
  }
  if (!has_interface(names.value)) {
    settings->doubts[count] = why_not("NCCL_SOCKET_IFNAME", &names,
                                      "this host has no such interface, and NCCL does not start on "
                                      "a host without");
    /* Empty, it is as if it were not set, in a file either. */
    settings->settings[JOB_SOCKET_IFNAME].value = is_override ? format_text("%s", "") : NULL;
  }
}

/* The values, and what is in their way. */
static void judge(struct job_settings *settings, const struct job_request *request,
                  const char *const values[]) {
  struct job_setting *net = &settings->settings[JOB_NET_PLUGIN];
  struct job_setting *tuner = &settings->settings[JOB_TUNER_PLUGIN];
  const struct nccl_conf_setting other = nccl_conf_find("NCCL_NET");
  bool is_override = request->is_override;
  for (int i = JOB_NET_PLUGIN; i <= JOB_TUNER_PLUGIN; i++) {
    struct job_setting *setting = &settings->settings[i];
    bool is_theirs = setting->theirs.value && !request->is_file;
    setting->value = is_theirs ? NULL : format_text("%s", values[i]);
  }
  if (net->theirs.value) {
    add_obstacle(settings, why_not_plugin(net->name, &net->theirs), JOB_NET_PLUGIN,
                 values[JOB_NET_PLUGIN], is_override);
  }
  if (request->is_strict && !other.value) {
    settings->settings[JOB_NET].value = format_text("%s", STRATUS_TRANSPORT);
  }
  add_obstacle(settings, why_not_net(&other), JOB_NET, STRATUS_TRANSPORT, is_override);
  if (tuner->theirs.value) {
    settings->why_not_tuner = why_not_plugin(tuner->name, &tuner->theirs);
  }
  if (settings->why_not_tuner && is_override) {
    tuner->value = format_text("%s", values[JOB_TUNER_PLUGIN]);
  }
}

/* ---- how NCCL gets the plugins ---- */

static bool takes_paths(int release, const void *paths) {
  const char *const *path = paths;
  return plugin_name_is_stratus(PLUGIN_KIND_NET, path[PLUGIN_KIND_NET], release) &&
         plugin_name_is_stratus(PLUGIN_KIND_TUNER, path[PLUGIN_KIND_TUNER], release);
}

/* NCCL takes a ',' for the end of a name, and so much of a path (MAX_STR_LEN). */
static bool is_path_for_nccl(const char *path) {
  return strlen(path) < 255 && !strchr(path, ',');
}

void job_settings_make(const struct job_request *request, struct job_settings *settings) {
  static const char *const names[] = { "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                                       "NCCL_NET",        "NCCL_ENV_PLUGIN", "NCCL_SOCKET_IFNAME" };
  char *paths[] = {
    [PLUGIN_KIND_NET] = format_text("%s/%s", request->directory, PLUGIN_NET),
    [PLUGIN_KIND_TUNER] = format_text("%s/%s", request->directory, PLUGIN_TUNER),
  };
  const char *values[] = { [JOB_NET_PLUGIN] = "stratus", [JOB_TUNER_PLUGIN] = PLUGIN_TUNER };
  *settings = (struct job_settings){ 0 };
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    settings->settings[i].name = names[i];
    settings->settings[i].theirs =
        i == JOB_LD_LIBRARY_PATH ? (struct nccl_conf_setting){ 0 } : find_theirs(names[i]);
  }
  if (!request->is_known && is_path_for_nccl(paths[PLUGIN_KIND_TUNER]) &&
      (request->is_file || nccl_found_all(request->program, takes_paths, paths))) {
    values[JOB_NET_PLUGIN] = paths[PLUGIN_KIND_NET];
    values[JOB_TUNER_PLUGIN] = paths[PLUGIN_KIND_TUNER];
  } else {
    settings->needs_library_path = !request->is_known;
  }
  judge(settings, request, values);
  free(paths[PLUGIN_KIND_NET]);
  free(paths[PLUGIN_KIND_TUNER]);
  if (settings->obstacles[0] && !request->is_override) {
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
