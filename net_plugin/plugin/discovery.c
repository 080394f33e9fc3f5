/* SPDX-License-Identifier: Apache-2.0 */
/* The order matters: the profile gives what the device table falls back to. */
#include "net_plugin/plugin/discovery.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "common/sysfs.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/plugin/advertise.h"

static void load_profile(struct discovery *discovery) {
  struct profile_error error;
  int rc = profile_match_load(&discovery->profile, discovery->profile_path, &error);
  discovery->has_profile = rc == 0;
  /* Without STRATUS_PROFILE, -ENOENT only means that none fits this machine. */
  if (rc == 0 || (rc == -ENOENT && !param_is_set(PARAM_PROFILE))) {
    return;
  }
  LOG_WARN("profile is not used: %s", error.text);
}

static void find_inner_bridges(struct discovery *discovery, const char *root) {
  for (int i = 0; i < discovery->interface_count; i++) {
    struct interface *it = &discovery->interfaces[i];
    it->is_inner_bridge =
        (it->flags & IFF_RUNNING) && nic_facts_is_inner_bridge(root, it->nic.name);
  }
}

int discovery_run(struct discovery *discovery) {
  memset(discovery, 0, sizeof(*discovery));
  const char *root = sysfs_process_root;
  int count = interface_list(&discovery->interfaces);
  if (count < 0) {
    LOG_WARN("cannot list network interfaces: %s", strerror(-count));
    return count;
  }
  discovery->interface_count = count;
  find_inner_bridges(discovery, root);
  discovery->wishes = interface_read_wishes();
  interface_select(discovery->interfaces, (size_t)count, &discovery->wishes);
  load_profile(discovery);
  endpoint_configure();
  if (endpoint_names_devices()) {
    interface_choose_hcas(discovery->interfaces, (size_t)count);
  }
  int rc = advertise_apply(param_string(PARAM_ADVERTISE_ADDRESS), discovery->interfaces,
                           (size_t)count, route_is_own);
  if (rc) {
    discovery_free(discovery);
    return rc;
  }
  cpu_set_t allowed;
  /* The process's, not this thread's, which NCCL may have moved near a GPU for the moment. */
  bool is_known = sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0;
  struct device_settings settings = {
    .sysfs_root = root,
    .speed_mbps = param_string(PARAM_SPEED_MBPS),
    .merge_nics = param_string(PARAM_MERGE_NICS),
    .profile = discovery->has_profile ? &discovery->profile : NULL,
    .thread_cpus = param_string(PARAM_THREAD_CPUS),
    .allowed_cpus = is_known ? &allowed : NULL,
    .asks_routes = !strcmp(root, "/"),
  };
  device_table_discover(&discovery->devices, discovery->interfaces, (size_t)count, &settings);
  return 0;
}

void discovery_free(struct discovery *discovery) {
  free(discovery->interfaces);
  discovery->interfaces = NULL;
  discovery->interface_count = 0;
  if (discovery->has_profile) {
    profile_free(&discovery->profile);
    discovery->has_profile = false;
  }
}

/* ---- texts ---- */

/* An interface may have several addresses; one reason is enough. */
static bool is_told_before(const struct discovery *discovery, int index) {
  for (int i = 0; i < index; i++) {
    if (!strcmp(discovery->interfaces[i].nic.name, discovery->interfaces[index].nic.name)) {
      return true;
    }
  }
  return false;
}

struct text_list {
  char *text;
  size_t length;
  int without_room;
};

static void add_text(struct text_list *list, const char *between, const char *name,
                     const char *why) {
  enum { LAST_WORDS = 24 };
  char entry[DISCOVERY_TEXT_MAX];
  int length = snprintf(entry, sizeof(entry), "%s%.*s%s%s", list->length ? between : "",
                        IF_NAMESIZE, name, why ? " " : "", why ? why : "");
  if (list->without_room || list->length + (size_t)length >= DISCOVERY_TEXT_MAX - LAST_WORDS) {
    list->without_room++;
    return;
  }
  memcpy(list->text + list->length, entry, (size_t)length + 1);
  list->length += (size_t)length;
}

static const char *end_text(struct text_list *list) {
  if (list->without_room) {
    snprintf(list->text + list->length, DISCOVERY_TEXT_MAX - list->length, " and %d more",
             list->without_room);
  }
  return list->text;
}

const char *discovery_unused_text(const struct discovery *discovery,
                                  char text[DISCOVERY_TEXT_MAX]) {
  struct text_list list = { .text = text };
  text[0] = '\0';
  for (int i = 0; i < discovery->interface_count; i++) {
    const struct interface *it = &discovery->interfaces[i];
    if (it->verdict != INTERFACE_CHOSEN && !is_told_before(discovery, i)) {
      add_text(&list, "; ", it->nic.name, interface_verdict_text(it->verdict));
    }
  }
  if (discovery->interface_count == 0) {
    snprintf(text, DISCOVERY_TEXT_MAX, "there is none with an address");
  }
  return end_text(&list);
}

const char *discovery_left_out_text(const struct discovery *discovery,
                                    enum interface_verdict verdict, char text[DISCOVERY_TEXT_MAX]) {
  struct text_list list = { .text = text };
  text[0] = '\0';
  for (int i = 0; i < discovery->interface_count; i++) {
    if (discovery->interfaces[i].verdict == verdict) { /* at most one address of each has it */
      add_text(&list, ", ", discovery->interfaces[i].nic.name, NULL);
    }
  }
  return end_text(&list);
}
