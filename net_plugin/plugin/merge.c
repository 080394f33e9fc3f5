/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. A group is a list of indexes of interfaces; all groups are found before the table is
 * rebuilt. */
#include "net_plugin/plugin/merge.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"

struct group {
  int members[NIC_MAX_FUSED];
  int count;
};

struct merge {
  const struct device_table *table;
  const char *text;
  struct group groups[DEVICE_PHYSICAL_MAX];
  int group_count;
  bool is_too_many[DEVICE_PHYSICAL_MAX]; /* the interface has no room in its group */
};

static void complain(const struct merge *merge, const char *what, const char *name, int length) {
  char known[DEVICE_PHYSICAL_MAX * (IF_NAMESIZE + 1)] = "";
  for (int i = 0; i < merge->table->count; i++) {
    strcat(known, i ? "," : "");
    strcat(known, merge->table->devices[i].name);
  }
  LOG_WARN("STRATUS_MERGE_NICS=%s: \"%.*s\" %s; accepted are all, none, or groups as in "
           "eth0+eth1,eth2+eth3 of the interfaces in use: %s",
           merge->text, length, name, what, known[0] ? known : "none");
}

static int find_interface(const struct device_table *table, const char *name, size_t length) {
  for (int i = 0; i < table->count; i++) {
    if (strlen(table->devices[i].name) == length && !memcmp(table->devices[i].name, name, length)) {
      return i;
    }
  }
  return -1;
}

static bool is_taken(const struct merge *merge, int index) {
  for (int i = 0; i <= merge->group_count && i < DEVICE_PHYSICAL_MAX; i++) {
    for (int j = 0; j < merge->groups[i].count; j++) {
      if (merge->groups[i].members[j] == index) {
        return true;
      }
    }
  }
  return false;
}

/* One name of a group. */
static void add_member(struct merge *merge, struct group *group, const char *name, size_t length) {
  int index = find_interface(merge->table, name, length);
  if (index < 0) {
    complain(merge, "is none of the interfaces in use", name, (int)length);
  } else if (is_taken(merge, index)) {
    complain(merge, "is named twice", name, (int)length);
  } else if (group->count == NIC_MAX_FUSED) {
    merge->is_too_many[index] = true;
  } else {
    group->members[group->count++] = index;
  }
}

static void add_group(struct merge *merge, const char *text, size_t length) {
  if (merge->group_count == DEVICE_PHYSICAL_MAX) {
    return; /* more groups than interfaces: each of the rest has complained */
  }
  struct group *group = &merge->groups[merge->group_count];
  const char *end = text + length;
  int members = 0;
  for (;;) {
    size_t name = strcspn(text, "+,");
    add_member(merge, group, text, name);
    members++;
    text += name;
    if (text == end) {
      break;
    }
    text++;
  }
  if (group->count > 1) {
    merge->group_count++;
    return;
  }
  if (group->count == 1 && members == 1) {
    complain(merge, "is alone: a group has two or more", end - length, (int)length);
  }
  *group = (struct group){ 0 };
}

static void find_groups(struct merge *merge) {
  if (!strcmp(merge->text, "all")) {
    struct group *group = &merge->groups[0];
    for (int i = 0; i < merge->table->count; i++) {
      add_member(merge, group, merge->table->devices[i].name,
                 strlen(merge->table->devices[i].name));
    }
    merge->group_count = group->count > 1;
    return;
  }
  const char *text = merge->text;
  for (;;) {
    size_t length = strcspn(text, ",");
    add_group(merge, text, length);
    if (!text[length]) {
      break;
    }
    text += length + 1;
  }
}

/* In one line, however many there are. */
static void tell_too_many(const struct merge *merge) {
  char names[MERGE_TEXT_MAX] = "";
  for (int i = 0; i < merge->table->count; i++) {
    if (merge->is_too_many[i]) {
      strcat(names, names[0] ? "," : "");
      strcat(names, merge->table->devices[i].name);
    }
  }
  if (names[0]) {
    LOG_WARN("STRATUS_MERGE_NICS=%s: a device has at most %d interfaces, so these stay apart: %s",
             merge->text, NIC_MAX_FUSED, names);
  }
}

static const struct group *group_of(const struct merge *merge, int index) {
  for (int i = 0; i < merge->group_count; i++) {
    for (int j = 0; j < merge->groups[i].count; j++) {
      if (merge->groups[i].members[j] == index) {
        return &merge->groups[i];
      }
    }
  }
  return NULL;
}

/* The lowest member's place is the group's. */
static bool is_first(const struct group *group, int index) {
  for (int i = 0; i < group->count; i++) {
    if (group->members[i] < index) {
      return false;
    }
  }
  return true;
}

void merge_find_ports(const struct device_table *table, char ports[][NIC_FACTS_PORT_MAX],
                      char text[MERGE_TEXT_MAX]) {
  text[0] = '\0';
  for (int i = 0; i < table->count; i++) {
    int members = 0;
    for (int j = 0; j < table->count && members < NIC_MAX_FUSED; j++) {
      bool is_same = ports[i][0] && strcmp(ports[i], ports[j]) == 0;
      if (is_same && j < i) {
        break; /* a group that was begun before */
      }
      if (is_same && j > i) {
        if (members == 0) {
          strcat(text, text[0] ? "," : "");
          strcat(text, table->devices[i].name);
          members = 1;
        }
        strcat(text, "+");
        strcat(text, table->devices[j].name);
        members++;
      }
    }
  }
}

void merge_apply(struct device_table *table, const char *text) {
  struct merge merge = { .table = table, .text = text };
  if (!*text || !strcmp(text, "none") || table->count == 0) {
    return;
  }
  find_groups(&merge);
  tell_too_many(&merge);
  if (merge.group_count == 0) {
    return;
  }
  struct device singles[DEVICE_PHYSICAL_MAX];
  int count = table->count, made = 0;
  memcpy(singles, table->devices, (size_t)count * sizeof(singles[0]));
  for (int i = 0; i < count; i++) {
    const struct group *group = group_of(&merge, i);
    if (group && !is_first(group, i)) {
      continue;
    }
    struct device device = { .part_count = 1, .parts = { made } };
    if (!group) {
      device_append(&device, &singles[i]);
    }
    for (int j = 0; group && j < group->count; j++) {
      device_append(&device, &singles[group->members[j]]);
    }
    table->devices[made++] = device;
  }
  table->count = made;
}
