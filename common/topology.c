/* SPDX-License-Identifier: Apache-2.0 */
/* The text: hwloc's tree of devices, in which what stands alone at a place moves up, and what is
 * beside each other is sorted by what it is. */
#include "common/topology.h"

#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/hex.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"

/* Facts of ours beside hwloc's. */
#define DRIVER "Driver"
#define VIRTUAL "VirtualFunction"
#define ON_USB "USB"

/* ---- kinds of PCI functions ---- */

enum {
  VENDOR_NVIDIA = 0x10de,
  BASE_NETWORK = 0x02, /* the upper 8 of 16 bits of the class */
  CLASS_VGA = 0x0300,
  CLASS_3D = 0x0302,
};

static bool is_nic(hwloc_obj_t device) {
  return device->attr->pcidev.class_id >> 8 == BASE_NETWORK;
}

static bool is_gpu(hwloc_obj_t device) {
  unsigned class_id = device->attr->pcidev.class_id;
  return device->attr->pcidev.vendor_id == VENDOR_NVIDIA &&
         (class_id == CLASS_VGA || class_id == CLASS_3D);
}

/* Of what is in the text; NULL for all else. */
static const char *kind_of(hwloc_obj_t device) {
  bool is_virtual = hwloc_obj_get_info_by_name(device, VIRTUAL);
  return is_virtual ? NULL : is_gpu(device) ? "gpu" : is_nic(device) ? "nic" : NULL;
}

static const char *format_id(hwloc_obj_t device, char id[TOPOLOGY_PCI_ID_MAX]) {
  snprintf(id, TOPOLOGY_PCI_ID_MAX, "%04x:%04x", (unsigned)device->attr->pcidev.vendor_id,
           (unsigned)device->attr->pcidev.device_id);
  return id;
}

static bool is_interface(hwloc_obj_t device) {
  return device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
}

/* ---- what hwloc does not know, from sysfs ---- */

static void add_driver(const char *root, hwloc_obj_t device, const char *path) {
  char driver[64];
  if (sysfs_read_driver(root, driver, sizeof driver, "%s", path) > 0) {
    hwloc_obj_add_info(device, DRIVER, driver);
  }
}

static void complete_nic(const char *root, hwloc_obj_t device) {
  const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
  char path[96];
  snprintf(path, sizeof path, "sys/bus/pci/devices/%04x:%02x:%02x.%01x", (unsigned)pci->domain,
           pci->bus, pci->dev, pci->func);
  add_driver(root, device, path);
  if (sysfs_exists(root, "%s/physfn", path)) {
    hwloc_obj_add_info(device, VIRTUAL, "1");
  }
}

/* One that is not on PCI. */
static void complete_interface(const char *root, hwloc_obj_t interface) {
  char path[96];
  snprintf(path, sizeof path, "sys/class/net/%.64s/device", interface->name);
  add_driver(root, interface, path);
  if (sysfs_exists(root, "%s/bInterfaceNumber", path)) {
    hwloc_obj_add_info(interface, ON_USB, "1");
  }
}

static void complete(const char *root, hwloc_topology_t topology) {
  for (hwloc_obj_t device = NULL; (device = hwloc_get_next_pcidev(topology, device));) {
    if (is_nic(device)) {
      complete_nic(root, device);
    }
  }
  for (hwloc_obj_t device = NULL; (device = hwloc_get_next_osdev(topology, device));) {
    if (is_interface(device) && device->parent->type != HWLOC_OBJ_PCI_DEVICE) {
      complete_interface(root, device);
    }
  }
}

/* ---- loading ---- */

/* Devices, and of CPUs what says where those are. */
static bool choose_types(hwloc_topology_t topology) {
  static const struct {
    hwloc_obj_type_t type;
    enum hwloc_type_filter_e filter;
  } kept[] = {
    { HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL },
    { HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE },
    { HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT },
    { HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT },
    { HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT },
  };
  bool is_good = hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) == 0;
  for (size_t i = 0; is_good && i < sizeof kept / sizeof kept[0]; i++) {
    is_good = hwloc_topology_set_type_filter(topology, kept[i].type, kept[i].filter) == 0;
  }
  return is_good;
}

/* A container that may use few CPUs sees all of the machine's. */
static hwloc_topology_t load(const char *root) {
  const unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED |
                              HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                              HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  char xml[SYSFS_PATH_MAX];
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) {
    return NULL;
  }
  snprintf(xml, sizeof xml, "%s/topology.xml", root);
  if ((strcmp(root, "/") != 0 && hwloc_topology_set_xml(topology, xml) != 0) ||
      hwloc_topology_set_flags(topology, flags) != 0 || !choose_types(topology) ||
      hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    return NULL;
  }
  complete(root, topology);
  return topology;
}

/* That of the root; NULL: not known. */
static hwloc_topology_t get(const char *root) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char loaded[SYSFS_PATH_MAX]; /* the root */
  static hwloc_topology_t topology;
  pthread_mutex_lock(&lock);
  if (strcmp(loaded, root) != 0) {
    if (topology) {
      hwloc_topology_destroy(topology);
    }
    snprintf(loaded, sizeof loaded, "%s", root);
    topology = load(root);
  }
  pthread_mutex_unlock(&lock);
  return topology;
}

/* ---- where devices are ---- */

/* Below and at a part of the machine, those with CPUs of their own: memory of GPUs and CXL hangs
 * beside other memory or on the whole. */
static int count_nodes(hwloc_obj_t place) {
  int count = place->parent && place->memory_arity > 0;
  for (hwloc_obj_t child = place->first_child; child; child = child->next_sibling) {
    count += count_nodes(child);
  }
  return count;
}

/* The node of what has CPUs. The whole of a machine of several is what hwloc falls back to when it
 * does not know: -1. With one node, whether firmware tells that a device is near it says nothing.
 */
static int node_of(hwloc_topology_t topology, hwloc_obj_t place) {
  bool is_one = count_nodes(hwloc_get_root_obj(topology)) <= 1;
  return is_one ? 0 : place->parent ? hwloc_bitmap_first(place->nodeset) : -1;
}

int topology_near(const char *root, const char *path, cpu_set_t *near) {
  hwloc_topology_t topology = get(root);
  const char *slash = strrchr(path, '/');
  CPU_ZERO(near);
  hwloc_obj_t place =
      topology && slash ? hwloc_get_pcidev_by_busidstring(topology, slash + 1) : NULL;
  if (!place) {
    return -1;
  }
  while (!place->cpuset) { /* devices have none, what they hang on has */
    place = place->parent;
  }
  int node = node_of(topology, place);
  for (unsigned cpu = 0; node >= 0 && cpu < CPU_SETSIZE; cpu++) {
    if (hwloc_bitmap_isset(place->cpuset, cpu)) {
      CPU_SET(cpu, near);
    }
  }
  return node;
}

/* ---- the machine ---- */

const char *topology_firmware(const char *root, const char *name) {
  hwloc_topology_t topology = get(root);
  const char *text =
      topology ? hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name) : NULL;
  return text ? text : "";
}

void topology_count(const char *root, struct topology_counts *counts) {
  hwloc_topology_t topology = get(root);
  *counts = (struct topology_counts){ 0 };
  for (hwloc_obj_t device = NULL; topology && (device = hwloc_get_next_pcidev(topology, device));) {
    if (is_gpu(device) && counts->gpus++ == 0) {
      format_id(device, counts->gpu);
    }
  }
  for (hwloc_obj_t device = NULL; topology && (device = hwloc_get_next_osdev(topology, device));) {
    counts->nics += is_interface(device);
  }
}

/* ---- parts of a text ---- */

struct parts {
  char **texts;
  size_t count;
};

static void free_parts(struct parts *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    free(parts->texts[i]);
  }
  free(parts->texts);
}

/* Takes over `text`; false for NULL, or if memory is out. */
static bool add_part(struct parts *parts, char *text) {
  char **texts = text ? reallocarray(parts->texts, parts->count + 1, sizeof *texts) : NULL;
  if (!texts) {
    free(text);
    return false;
  }
  parts->texts = texts;
  texts[parts->count++] = text;
  return true;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "before" "2 x a, b" "after" */
static char *join(struct parts *parts, const char *before, const char *after) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  if (!to) {
    return NULL;
  }
  qsort(parts->texts, parts->count, sizeof *parts->texts, compare_texts);
  fputs(before, to);
  for (size_t i = 0, next; i < parts->count; i = next) {
    for (next = i + 1; next < parts->count && !strcmp(parts->texts[i], parts->texts[next]);) {
      next++;
    }
    fputs(i > 0 ? ", " : "", to);
    if (next - i > 1) {
      fprintf(to, "%zu x ", next - i);
    }
    fputs(parts->texts[i], to);
  }
  fputs(after, to);
  if (fclose(to) != 0) {
    free(text);
    return NULL;
  }
  return text;
}

/* ---- devices in a text ---- */

static const char *driver_of(hwloc_obj_t device) {
  const char *driver = hwloc_obj_get_info_by_name(device, DRIVER);
  return driver ? driver : "";
}

static char *describe(hwloc_obj_t device) {
  char *text, id[TOPOLOGY_PCI_ID_MAX];
  const char *driver = driver_of(device);
  int length = asprintf(&text, "%s %s%s%s", kind_of(device), format_id(device, id),
                        driver[0] ? " " : "", driver);
  return length < 0 ? NULL : text;
}

static char *describe_interface(hwloc_obj_t interface) {
  char *text;
  const char *driver = driver_of(interface);
  int length = asprintf(&text, "nic%s%s", driver[0] ? " " : "", driver);
  return length < 0 ? NULL : text;
}

/* ---- the tree ---- */

static bool add_devices(struct parts *parts, hwloc_obj_t above);

static bool add_bridge(struct parts *parts, hwloc_obj_t bridge) {
  struct parts inner = { 0 };
  bool is_good = add_devices(&inner, bridge);
  if (is_good && inner.count > 0) {
    bool is_root = bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
    const char *bracket = inner.count == 1 ? "" : is_root ? "root(" : "switch(";
    is_good = add_part(parts, join(&inner, bracket, inner.count == 1 ? "" : ")"));
  }
  free_parts(&inner);
  return is_good;
}

static bool add_device(struct parts *parts, hwloc_obj_t device) {
  switch (device->type) {
  case HWLOC_OBJ_BRIDGE:
    return add_bridge(parts, device);
  case HWLOC_OBJ_PCI_DEVICE:
    return !kind_of(device) || add_part(parts, describe(device));
  default:
    return !is_interface(device) || hwloc_obj_get_info_by_name(device, ON_USB) ||
           add_part(parts, describe_interface(device));
  }
}

static bool add_devices(struct parts *parts, hwloc_obj_t above) {
  bool is_good = true;
  for (hwloc_obj_t device = above->io_first_child; is_good && device;
       device = device->next_sibling) {
    is_good = add_device(parts, device);
  }
  return is_good;
}

/* What hangs on this part of the machine, and on its parts, if it is near the node. */
static bool add_near(struct parts *parts, hwloc_topology_t topology, hwloc_obj_t place, int node) {
  bool is_good = node_of(topology, place) != node || add_devices(parts, place);
  for (hwloc_obj_t child = place->first_child; is_good && child; child = child->next_sibling) {
    is_good = add_near(parts, topology, child, node);
  }
  return is_good;
}

static char *format(hwloc_topology_t topology) {
  struct parts nodes = { 0 };
  hwloc_obj_t machine = hwloc_get_root_obj(topology);
  bool is_good = true;
  for (int node = -1; is_good && node <= hwloc_bitmap_last(machine->nodeset); node++) {
    struct parts devices = { 0 };
    is_good = add_near(&devices, topology, machine, node) &&
              (devices.count == 0 ||
               add_part(&nodes, join(&devices, node < 0 ? "unplaced[" : "node[", "]")));
    free_parts(&devices);
  }
  char head[32];
  int count = count_nodes(machine);
  snprintf(head, sizeof head, "numa %d: ", count > 1 ? count : 1);
  char *text = is_good && nodes.count > 0 ? join(&nodes, head, "") : NULL;
  free_parts(&nodes);
  return text;
}

char *topology_read(const char *root) {
  hwloc_topology_t topology = get(root);
  return topology ? format(topology) : NULL;
}

/* ---- the fingerprint ---- */

void topology_fingerprint(const char *text, char id[TOPOLOGY_ID_MAX]) {
  uint8_t digest[HASH_SHA256_BYTES];
  id[0] = '\0';
  if (text) {
    hash_sha256(text, strlen(text), digest);
    hex_write(digest, TOPOLOGY_ID_DIGITS / 2, id);
  }
}

bool topology_is_id(const char *text, size_t length) {
  size_t digits = 0;
  while (digits < length && strchr("0123456789abcdef", text[digits]) && text[digits]) {
    digits++;
  }
  return length == TOPOLOGY_ID_DIGITS && digits == length;
}

void topology_identify(char id[TOPOLOGY_ID_MAX]) {
  const char *word = param_string(PARAM_TOPOLOGY);
  if (topology_is_id(word, strlen(word))) {
    snprintf(id, TOPOLOGY_ID_MAX, "%s", word);
    return;
  }
  if (word[0]) {
    LOG_WARN_EVERY(SETTING_WARN_INTERVAL_NS,
                   "STRATUS_TOPOLOGY=%s is ignored: it takes %d digits 0-9 and a-f, as stratus "
                   "doctor shows them",
                   word, TOPOLOGY_ID_DIGITS);
  }
  char *text = topology_read(sysfs_process_root);
  topology_fingerprint(text, id);
  free(text);
}
