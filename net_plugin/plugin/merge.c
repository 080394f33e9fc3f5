/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. The table stays as it is until all groups are made: names are looked up in it. */
#include "net_plugin/plugin/merge.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"

struct merge {
  struct device_table *table;
  const char *text;
  bool is_taken[DEVICE_PHYSICAL_MAX];      /* the interface is in a group, or found no room */
  bool is_gone[DEVICE_PHYSICAL_MAX];       /* it is part of a device of several */
  struct device made[DEVICE_PHYSICAL_MAX]; /* in the place of a group's lowest member */
  char without_room[DEVICE_PHYSICAL_MAX * (IF_NAMESIZE + 1)];
};

/* Interfaces, in the order of the names. */
struct group {
  int members[NIC_MAX_FUSED], count;
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

static void add_member(struct merge *merge, struct group *group, int index) {
  merge->is_taken[index] = true;
  if (group->count == NIC_MAX_FUSED) {
    add_name(merge->without_room, merge->table->devices[index].name);
  } else {
    group->members[group->count++] = index;
  }
}

/* One makes no device. */
static void end_group(struct merge *merge, const struct group *group) {
  struct device device = { .part_count = 1 };
  int lowest = DEVICE_PHYSICAL_MAX;
  for (int i = 0; i < group->count; i++) {
    int member = group->members[i];
    device_append(&device, &merge->table->devices[member]);
    merge->is_taken[member] = merge->is_gone[member] = group->count > 1;
    lowest = member < lowest ? member : lowest;
  }
  if (group->count < 2) {
    return;
  }
  merge->made[lowest] = device;
  if (!merge->text[0]) {
    LOG_INFO("%s are one, as they are one port (STRATUS_MERGE_NICS=none keeps them apart)",
             device.name);
  }
}

static void add_named(struct merge *merge, struct group *group, const char *name, size_t length) {
  int index = merge->table->count - 1;
  while (index >= 0 && (strlen(merge->table->devices[index].name) != length ||
                        memcmp(merge->table->devices[index].name, name, length) != 0)) {
    index--;
  }
  if (index < 0) {
    complain(merge, "is none of the interfaces in use", name, length);
  } else if (merge->is_taken[index]) {
    complain(merge, "is named twice", name, length);
  } else {
    add_member(merge, group, index);
  }
}

static void find_named(struct merge *merge) {
  const char *text = merge->text;
  do {
    const char *begin = text;
    struct group group = { .count = 0 };
    int names = 0;
    do {
      size_t length = strcspn(text, "+,");
      add_named(merge, &group, text, length);
      text += length + 1;
      names++;
    } while (text[-1] == '+');
    if (names == 1 && group.count == 1) {
      complain(merge, "is alone: a group has two or more", begin, (size_t)(text - 1 - begin));
    }
    end_group(merge, &group);
  } while (text[-1] == ',');
}

/* Of all, or of those that share a port. */
static void find_alike(struct merge *merge, char ports[][NIC_FACTS_PORT_MAX]) {
  for (int i = 0; i < (ports ? merge->table->count : 1); i++) {
    struct group group = { .count = 0 };
    for (int j = i; j < merge->table->count && (!ports || ports[i][0]); j++) {
      if (!merge->is_taken[j] && (!ports || strcmp(ports[i], ports[j]) == 0)) {
        add_member(merge, &group, j);
      }
    }
    end_group(merge, &group);
  }
}

static void rebuild(struct merge *merge) {
  struct device_table *table = merge->table;
  int kept = 0;
  for (int i = 0; i < table->count; i++) {
    bool is_made = merge->made[i].nic_count > 0;
    if (is_made || !merge->is_gone[i]) {
      table->devices[kept] = is_made ? merge->made[i] : table->devices[i];
      table->devices[kept].parts[0] = kept;
      kept++;
    }
  }
  table->count = kept;
}

void merge_apply(struct device_table *table, char ports[][NIC_FACTS_PORT_MAX], const char *text) {
  struct merge merge = { .table = table, .text = text };
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
  rebuild(&merge);
}
