/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds decide how many channels NCCL opens, so a wrong one costs bandwidth: each says where it is
 * from, and drivers that make theirs up are not asked (nic_facts.c). */
#include "net_plugin/plugin/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/quantity.h"
#include "common/topology.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/plugin/placement.h"

enum { SPEED_MAX_MBPS = 10000000 };

const char *device_origin_name(enum device_origin origin) {
  static const char *const names[] = { "parameter", "profile", "system", "default" };
  return names[origin];
}

/* ---- STRATUS_SPEED_MBPS: "25000", or "eth0=25000,eth1=100000" ---- */

/* One entry; `name` is empty if it holds for all. */
static bool parse_speed(const char *entry, size_t length, char name[IF_NAMESIZE], uint32_t *mbps) {
  char text[IF_NAMESIZE + 24];
  if (length >= sizeof(text)) {
    return false;
  }
  snprintf(text, sizeof(text), "%.*s", (int)length, entry);
  char *equals = strchr(text, '=');
  const char *number = equals ? equals + 1 : text;
  size_t name_length = equals ? (size_t)(equals - text) : 0;
  int64_t value;
  if (name_length >= IF_NAMESIZE || (equals && name_length == 0) ||
      quantity_parse_int(number, &value) || value < 1 || value > SPEED_MAX_MBPS) {
    return false;
  }
  snprintf(name, IF_NAMESIZE, "%.*s", (int)name_length, text);
  *mbps = (uint32_t)value;
  return true;
}

/* Sets the speed of the devices that an entry is for. */
static void apply_speed(struct device_table *table, const char *name, uint32_t mbps) {
  bool is_used = false;
  for (int i = 0; i < table->count; i++) {
    struct device *device = &table->devices[i];
    if (!*name || !strcmp(device->name, name)) {
      device->speed_mbps = mbps;
      device->speed_origin = DEVICE_FROM_PARAMETER;
      is_used = true;
    }
  }
  if (!is_used) {
    LOG_WARN("STRATUS_SPEED_MBPS names %s, which is none of the interfaces in use", name);
  }
}

static void apply_speed_parameter(struct device_table *table, const char *text) {
  while (*text && table->count > 0) {
    size_t length = strcspn(text, ",");
    char name[IF_NAMESIZE];
    uint32_t mbps;
    if (parse_speed(text, length, name, &mbps)) {
      apply_speed(table, name, mbps);
    } else {
      LOG_WARN("STRATUS_SPEED_MBPS: \"%.*s\" is ignored; accepted is 1..%d for all NICs, or a list "
               "as in eth0=25000,eth1=100000",
               (int)length, text, SPEED_MAX_MBPS);
    }
    text += length + (text[length] == ',');
  }
}

/* ---- devices of several NICs: what shares a port, and what STRATUS_MERGE_NICS says ----
 *
 * NCCL fuses NICs by itself where PCI shows that they belong together, from 2.24 on. This is for
 * the others: NICs that are not on PCI (NCCL could not place what it fused), on different cards, or
 * under an older NCCL. Every connection then uses all of them. The table stays as it is until all
 * groups are made: names are looked up in it. */

/* Of a device of several NICs: those that are idle are not promised to NCCL, unless all are. */
static uint32_t speed_of_nics(const struct device *device) {
  uint32_t all = 0, in_use = 0;
  for (unsigned i = 0; i < device->nic_count; i++) {
    all += device->nics[i].speed_mbps;
    in_use += device->nics[i].is_idle ? 0 : device->nics[i].speed_mbps;
  }
  return in_use ? in_use : all;
}

/* Adds the part's name, speed, guid and interfaces to a device that starts as zeroes; the caller
 * has checked that NIC_MAX_FUSED is enough. */
static void append(struct device *device, const struct device *part) {
  if (device->nic_count) {
    strcat(device->name, "+");         /* DEVICE_NAME_MAX has room for all parts */
    device->guid |= UINT64_C(1) << 63; /* no physical one has it */
  }
  strcat(device->name, part->name);
  device->guid ^= part->guid;
  /* The least certain origin is what the sum is worth. */
  if (part->speed_origin > device->speed_origin) {
    device->speed_origin = part->speed_origin;
  }
  if (!device->pci_path[0]) {
    memcpy(device->pci_path, part->pci_path, sizeof(device->pci_path));
  }
  memcpy(&device->nics[device->nic_count], part->nics, part->nic_count * sizeof(part->nics[0]));
  device->nic_count += part->nic_count;
  device->speed_mbps = speed_of_nics(device);
}

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
    append(&device, &merge->table->devices[member]);
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

/* text: "none", "all", or "eth0+eth1,eth2+eth3"; empty: those that share a port. What makes no
 * sense is one LOG_WARN that lists the interfaces, and is left as it was. */
static void merge(struct device_table *table, char ports[][NIC_FACTS_PORT_MAX], const char *text) {
  struct merge state = { .table = table, .text = text };
  if (!strcmp(text, "none") || table->count == 0) {
    return;
  }
  if (!text[0]) {
    find_alike(&state, ports);
  } else if (!strcmp(text, "all")) {
    find_alike(&state, NULL);
  } else {
    find_named(&state);
  }
  if (state.without_room[0]) {
    LOG_WARN("%s%s%sa device has at most %d interfaces, so these stay apart: %s",
             text[0] ? "STRATUS_MERGE_NICS=" : "", text, text[0] ? ": " : "", NIC_MAX_FUSED,
             state.without_room);
  }
  rebuild(&state);
}

/* ---- discovery ---- */

static void set_speed(struct device *device, uint32_t system_mbps, const struct profile *profile) {
  if (profile && profile->net.speed_mbps) {
    device->speed_mbps = profile->net.speed_mbps;
    device->speed_origin = DEVICE_FROM_PROFILE;
  } else if (system_mbps) {
    device->speed_mbps = system_mbps;
    device->speed_origin = DEVICE_FROM_SYSTEM;
  } else {
    device->speed_mbps = DEVICE_DEFAULT_SPEED_MBPS;
    device->speed_origin = DEVICE_FROM_DEFAULT;
  }
}

/* Unique within the host, equal in all its processes: the index, and the hardware address, which a
 * bond and its ports share. */
static uint64_t guid_of(const struct interface *interface, unsigned index) {
  uint64_t guid = index & 0x7fff;
  for (int i = 0; i < 6; i++) {
    guid = guid << 8 | interface->hardware[i];
  }
  return guid;
}

static void add_physical(struct device_table *table, const struct interface *interface,
                         const struct device_settings *settings, char port[NIC_FACTS_PORT_MAX]) {
  int index = table->count++;
  struct device *device = &table->devices[index];
  struct nic *nic = &device->nics[0];
  *device = (struct device){ .part_count = 1, .parts = { index }, .nic_count = 1 };
  *nic = interface->nic;
  struct nic_facts facts;
  nic_facts_read(settings->sysfs_root, interface->nic.name, &facts);
  bool asks = settings->asks_routes && !(interface->flags & IFF_LOOPBACK);
  nic->is_idle = interface->is_inner_bridge || (asks && !route_exists_through(nic));
  device->guid = guid_of(interface, nic->index ? nic->index : (unsigned)index);
  memcpy(device->name, interface->nic.name, sizeof(interface->nic.name));
  memcpy(device->pci_path, facts.pci_path, sizeof(device->pci_path));
  memcpy(port, facts.port, NIC_FACTS_PORT_MAX);
  set_speed(device, facts.speed_mbps, settings->profile);
}

/* Each tells the speed of the whole port, but its own PCI link is slower. */
static void divide_port_speeds(struct device_table *table, char ports[][NIC_FACTS_PORT_MAX]) {
  for (int i = 0; i < table->count; i++) {
    struct device *device = &table->devices[i];
    uint32_t sharers = 0;
    for (int j = 0; j < table->count; j++) {
      sharers += ports[i][0] && strcmp(ports[i], ports[j]) == 0;
    }
    if (sharers > 1 && device->speed_origin == DEVICE_FROM_SYSTEM) {
      device->speed_mbps /= sharers;
    }
  }
}

static void place_threads(struct device_table *table, const struct device_settings *settings) {
  for (int i = 0; i < table->count; i++) {
    struct nic *nic = &table->devices[i].nics[0];
    cpu_set_t near;
    nic->numa_node = topology_near(settings->sysfs_root, table->devices[i].pci_path, &near);
    if (settings->allowed_cpus) {
      const char *why =
          placement_decide(settings->thread_cpus, settings->allowed_cpus, &near, &nic->thread_cpus);
      LOG_TRACE("the thread of %s is %s: %s", nic->name,
                CPU_COUNT(&nic->thread_cpus) ? "placed" : "left alone", why);
    }
  }
}

void device_table_discover(struct device_table *table, const struct interface *interfaces,
                           size_t count, const struct device_settings *settings) {
  char ports[DEVICE_PHYSICAL_MAX][NIC_FACTS_PORT_MAX];
  memset(table, 0, sizeof(*table));
  for (size_t i = 0; i < count && table->count < DEVICE_PHYSICAL_MAX; i++) {
    if (interfaces[i].verdict == INTERFACE_CHOSEN) {
      add_physical(table, &interfaces[i], settings, ports[table->count]);
    }
  }
  divide_port_speeds(table, ports);
  apply_speed_parameter(table, settings->speed_mbps);
  for (int i = 0; i < table->count; i++) {
    table->devices[i].nics[0].speed_mbps = table->devices[i].speed_mbps;
  }
  place_threads(table, settings);
  merge(table, ports, settings->merge_nics);
  table->physical_count = table->count;
  if (settings->profile) {
    memcpy(table->profile_id, settings->profile->meta.id, sizeof(table->profile_id));
  }
}

unsigned device_table_nics(const struct device_table *table, struct nic out[DEVICE_PHYSICAL_MAX]) {
  unsigned count = 0;
  for (int i = 0; i < table->physical_count; i++) {
    const struct device *device = &table->devices[i];
    for (unsigned j = 0; j < device->nic_count && count < DEVICE_PHYSICAL_MAX; j++) {
      out[count++] = device->nics[j];
    }
  }
  return count;
}

const struct device *device_table_find(const struct device_table *table, int index) {
  if (index < 0 || index >= table->count) {
    LOG_WARN("there is no network device %d: there are %d", index, table->count);
    return NULL;
  }
  return &table->devices[index];
}

/* ---- fusion ---- */

static int check_parts(const struct device_table *table, const int *parts, int part_count,
                       int limit) {
  if (part_count < 1 || part_count > limit || part_count > NIC_MAX_FUSED) {
    LOG_WARN("cannot fuse %d network devices into one: 1 to %d are possible", part_count, limit);
    return -EINVAL;
  }
  unsigned nic_count = 0;
  for (int i = 0; i < part_count; i++) {
    if (parts[i] < 0 || parts[i] >= table->physical_count) {
      LOG_WARN("cannot fuse network device %d: physical ones are 0 to %d", parts[i],
               table->physical_count - 1);
      return -EINVAL;
    }
    for (int j = 0; j < i; j++) {
      if (parts[j] == parts[i]) {
        LOG_WARN("cannot fuse network device %d (%s) with itself", parts[i],
                 table->devices[parts[i]].name);
        return -EINVAL;
      }
    }
    nic_count += table->devices[parts[i]].nic_count;
  }
  if (nic_count > NIC_MAX_FUSED) {
    LOG_WARN("cannot fuse network devices of %u interfaces: %d is the limit", nic_count,
             NIC_MAX_FUSED);
    return -EINVAL;
  }
  return 0;
}

/* NCCL puts all NICs that are not on PCI below one node, takes them for ports of one card and asks
 * to fuse them; it then hangs the fused one where its search does not look, and gives up with
 * "Could not find any local path from gpu 0 to net" (ncclFindFirstPciParent returns that node,
 * src/graph/topo.cc:850-859 at v2.29.7, which ncclTopoAddNic does not descend into). */
static bool is_any_on_pci(const struct device_table *table, const int *parts, int part_count) {
  for (int i = 0; i < part_count; i++) {
    if (table->devices[parts[i]].pci_path[0]) {
      return true;
    }
  }
  return false;
}

static int find_fused(const struct device_table *table, const int *parts, int part_count) {
  for (int i = table->physical_count; i < table->count; i++) {
    const struct device *device = &table->devices[i];
    if (device->part_count == (unsigned)part_count &&
        !memcmp(device->parts, parts, sizeof(*parts) * (size_t)part_count)) {
      return i;
    }
  }
  return -1;
}

int device_table_fuse(struct device_table *table, const int *parts, int part_count, int limit,
                      int *index) {
  int rc = check_parts(table, parts, part_count, limit);
  if (rc) {
    return rc;
  }
  if (part_count > 1 && !is_any_on_pci(table, parts, part_count)) {
    LOG_INFO(
        "%s and %d more are not on PCI and stay apart: NCCL could not place them as one device",
        table->devices[parts[0]].name, part_count - 1);
    return -ENOTSUP;
  }
  int existing = find_fused(table, parts, part_count);
  if (existing >= 0) {
    *index = existing;
    return 0;
  }
  if (table->count == DEVICE_MAX) {
    LOG_WARN("cannot fuse more network devices: %d is the limit", DEVICE_MAX);
    return -ENOSPC;
  }
  struct device fused = { .part_count = (unsigned)part_count };
  for (int i = 0; i < part_count; i++) {
    append(&fused, &table->devices[parts[i]]);
    fused.parts[i] = parts[i];
  }
  table->devices[table->count] = fused;
  *index = table->count++;
  LOG_INFO("device %d is %s, %u Mb/s", *index, fused.name, fused.speed_mbps);
  return 0;
}
