/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. All groups are found before the table is rebuilt. */
#include "net_plugin/plugin/merge.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"

enum { NONE = -1, APART = -2 }; /* it found no room */

struct merge {
  struct device_table *table;
  const char *text;
  struct {
    int members[NIC_MAX_FUSED]; /* interfaces, in the order of the names */
    int count;
  } groups[DEVICE_PHYSICAL_MAX]; /* one member: there is none */
  int group_count;
  int group_of[DEVICE_PHYSICAL_MAX]; /* of each interface; or as above */
  char without_room[DEVICE_PHYSICAL_MAX * (IF_NAMESIZE + 1)];
};

static void add_name(char *names, const char *name) {
  strcat(names, names[0] ? "," : "");
  strcat(names, name);
}

static void complain(const struct merge *merge, const char *what, const char *name, size_t length) {
  char known[sizeof(merge->without_room)] = "";
  for (int i = 0; i < merge->table->count; i++) {
    add_name(known, merge->table->devices[i].name);
  }
  LOG_WARN("STRATUS_MERGE_NICS=%s: \"%.*s\" %s; accepted are all, none, or groups as in "
           "eth0+eth1,eth2+eth3 of the interfaces in use: %s",
           merge->text, (int)length, name, what, known[0] ? known : "none");
}

/* To the latest group. */
static void add_member(struct merge *merge, int index) {
  int group = merge->group_count - 1, *count = &merge->groups[group].count;
  if (*count == NIC_MAX_FUSED) {
    add_name(merge->without_room, merge->table->devices[index].name);
    merge->group_of[index] = APART;
    return;
  }
  merge->groups[group].members[(*count)++] = index;
  merge->group_of[index] = group;
}

/* One has no group. */
static void end_group(struct merge *merge) {
  int group = merge->group_count - 1;
  if (merge->groups[group].count < 2) {
    if (merge->groups[group].count == 1) {
      merge->group_of[merge->groups[group].members[0]] = NONE;
    }
    merge->groups[group].count = 0;
    merge->group_count--;
  }
}

static void add_named(struct merge *merge, const char *name, size_t length) {
  int index = merge->table->count - 1;
  while (index >= 0 && (strlen(merge->table->devices[index].name) != length ||
                        memcmp(merge->table->devices[index].name, name, length) != 0)) {
    index--;
  }
  if (index < 0) {
    complain(merge, "is none of the interfaces in use", name, length);
  } else if (merge->group_of[index] != NONE) {
    complain(merge, "is named twice", name, length);
  } else {
    add_member(merge, index);
  }
}

static void find_named(struct merge *merge) {
  /* More groups than interfaces: each of the rest has complained. */
  for (const char *text = merge->text; merge->group_count < DEVICE_PHYSICAL_MAX;) {
    const char *begin = text;
    int names = 0;
    for (merge->group_count++;; text++) {
      size_t length = strcspn(text, "+,");
      add_named(merge, text, length);
      text += length;
      names++;
      if (*text != '+') {
        break;
      }
    }
    if (names == 1 && merge->groups[merge->group_count - 1].count == 1) {
      complain(merge, "is alone: a group has two or more", begin, (size_t)(text - begin));
    }
    end_group(merge);
    if (!*text++) {
      return;
    }
  }
}

/* Of all, or of those that share a port. */
static void find_alike(struct merge *merge, char ports[][NIC_FACTS_PORT_MAX]) {
  for (int i = 0; i < merge->table->count; i++) {
    if (merge->group_of[i] == NONE && (!ports || ports[i][0])) {
      merge->group_count++;
      for (int j = i; j < merge->table->count; j++) {
        if (merge->group_of[j] == NONE && (!ports || strcmp(ports[i], ports[j]) == 0)) {
          add_member(merge, j);
        }
      }
      end_group(merge);
    }
    if (!ports) {
      return;
    }
  }
}

/* The lowest member's place is the group's. */
static void rebuild(struct merge *merge) {
  struct device_table *table = merge->table;
  struct device singles[DEVICE_PHYSICAL_MAX];
  bool is_made[DEVICE_PHYSICAL_MAX] = { false };
  int count = table->count;
  memcpy(singles, table->devices, (size_t)count * sizeof(singles[0]));
  table->count = 0;
  for (int i = 0; i < count; i++) {
    int group = merge->group_of[i];
    if (group >= 0 && is_made[group]) {
      continue;
    }
    struct device device = { .part_count = 1, .parts = { table->count } };
    for (int j = 0; group >= 0 && j < merge->groups[group].count; j++) {
      device_append(&device, &singles[merge->groups[group].members[j]]);
      is_made[group] = true;
    }
    if (group < 0) {
      device_append(&device, &singles[i]);
    } else if (!merge->text[0]) {
      LOG_INFO("%s are one, as they are one port (STRATUS_MERGE_NICS=none keeps them apart)",
               device.name);
    }
    table->devices[table->count++] = device;
  }
}

void merge_apply(struct device_table *table, char ports[][NIC_FACTS_PORT_MAX], const char *text) {
  struct merge merge = { .table = table, .text = text };
  for (int i = 0; i < table->count; i++) {
    merge.group_of[i] = NONE;
  }
  if (!strcmp(text, "none") || table->count == 0) {
    return;
  }
  if (!text[0]) {
    find_alike(&merge, ports);
  } else if (!strcmp(text, "all")) {
    find_alike(&merge, NULL);
  } else {
    find_named(&merge);
  }
  if (merge.without_room[0]) {
    LOG_WARN("%s%s%sa device has at most %d interfaces, so these stay apart: %s",
             text[0] ? "STRATUS_MERGE_NICS=" : "", text, text[0] ? ": " : "", NIC_MAX_FUSED,
             merge.without_room);
  }
  if (merge.group_count) {
    rebuild(&merge);
  }
}
