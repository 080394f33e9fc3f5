/* SPDX-License-Identifier: Apache-2.0 */
/* The text: a tree of paths, in which what stands alone at a place moves up, and what is beside
 * each other is sorted by what it is. */
#include "common/topology.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/hca_port.h"
#include "common/hex.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"

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

/* ---- the tree ---- */

/* How much of the paths, whole parts of them, the first and the last and so all have in common. */
static size_t common_length(const struct topology_device *devices, size_t count) {
  const char *first = devices[0].path, *last = devices[count - 1].path;
  size_t length = 0;
  for (size_t i = 0;; i++) {
    bool is_part = (first[i] == '/' || !first[i]) && (last[i] == '/' || !last[i]);
    length = is_part ? i : length;
    if (!first[i] || first[i] != last[i]) {
      return length;
    }
  }
}

/* What the last part of that much of a path is. */
static const char *bracket_of(const char *path, size_t length) {
  size_t start = length;
  while (start > 0 && path[start - 1] != '/') {
    start--;
  }
  if (length - start == 7 && strncmp(path + start, "devices", 7) == 0) {
    return "";
  }
  if (strncmp(path + start, "pci", 3) == 0) {
    return "root(";
  }
  return isxdigit((unsigned char)path[start]) && memchr(path + start, '.', length - start)
             ? "switch("
             : "bus(";
}

/* Devices in the order of their paths. */
static char *format_tree(const struct topology_device *devices, size_t count) {
  if (count == 1) {
    return strdup(devices->text);
  }
  struct parts parts = { 0 };
  size_t length = common_length(devices, count);
  const char *bracket = bracket_of(devices->path, length);
  bool is_good = true;
  for (size_t i = 0, next; is_good && i < count; i = next) {
    const char *name = devices[i].path + length;
    size_t name_length = name[0] ? 1 + strcspn(name + 1, "/") : 0;
    for (next = i + 1; next < count && name_length > 0; next++) {
      const char *other = devices[next].path + length;
      if (strncmp(name, other, name_length) != 0 ||
          (other[name_length] && other[name_length] != '/')) {
        break;
      }
    }
    /* Two of one path cannot be told apart by it. */
    bool is_one = next - i == 1 || strcmp(devices[i].path, devices[next - 1].path) == 0;
    for (size_t one = i; is_one && is_good && one < next; one++) {
      is_good = add_part(&parts, strdup(devices[one].text));
    }
    is_good = is_good && (is_one || add_part(&parts, format_tree(devices + i, next - i)));
  }
  char *text = is_good ? join(&parts, bracket, bracket[0] ? ")" : "") : NULL;
  free_parts(&parts);
  return text;
}

static char *format_node(const struct topology_device *devices, size_t count) {
  struct parts tree = { 0 };
  char *text = NULL;
  if (add_part(&tree, format_tree(devices, count))) {
    text = join(&tree, devices->numa < 0 ? "unplaced[" : "node[", "]");
  }
  free_parts(&tree);
  return text;
}

static int compare_devices(const void *a, const void *b) {
  const struct topology_device *x = a, *y = b;
  int order = (x->numa > y->numa) - (x->numa < y->numa);
  order = order != 0 ? order : strcmp(x->path, y->path);
  return order != 0 ? order : strcmp(x->text, y->text);
}

char *topology_format(struct topology_device *devices, size_t count, int numa_count) {
  struct parts nodes = { 0 };
  bool is_good = true;
  /* With one node, whether firmware tells that a device is near it says nothing. */
  for (size_t i = 0; i < count && numa_count <= 1; i++) {
    devices[i].numa = 0;
  }
  qsort(devices, count, sizeof *devices, compare_devices);
  for (size_t i = 0, next; is_good && i < count; i = next) {
    for (next = i + 1; next < count && devices[i].numa == devices[next].numa;) {
      next++;
    }
    is_good = add_part(&nodes, format_node(devices + i, next - i));
  }
  char head[32];
  snprintf(head, sizeof head, "numa %d: ", numa_count > 1 ? numa_count : 1);
  char *text = is_good ? join(&nodes, head, "") : NULL;
  free_parts(&nodes);
  return text;
}

/* ---- the devices ---- */

/* Functions on PCI by their class, whoever may use them, so that the namespace that a process is in
 * changes little; speeds from the interfaces and RDMA devices that hang on them; and interfaces
 * that are not on PCI. */
struct machine_devices {
  const char *root;
  struct topology_device *devices;
  size_t count;
};

/* Takes over the path. */
static bool add_device(struct machine_devices *all, struct topology_device device) {
  struct topology_device *devices =
      device.path ? reallocarray(all->devices, all->count + 1, sizeof *devices) : NULL;
  if (!devices) {
    free(device.path);
    return false;
  }
  all->devices = devices;
  devices[all->count++] = device;
  return true;
}

/* Those in a directory, which need not be there, as long as `read` has memory. */
static bool read_all(struct machine_devices *all, const char *directory,
                     bool (*read)(struct machine_devices *all, const char *name)) {
  struct sysfs_list list;
  bool is_good = true;
  if (sysfs_list(all->root, &list, "%s", directory) < 0) {
    return true;
  }
  for (size_t i = 0; is_good && i < list.count; i++) {
    is_good = read(all, list.entries[i]->d_name);
  }
  sysfs_list_free(&list);
  return is_good;
}

static bool read_function(struct machine_devices *all, const char *address) {
  struct pci_function function;
  struct topology_device found = { .numa = -1 };
  char device[SYSFS_PATH_MAX];
  snprintf(device, sizeof device, "sys/bus/pci/devices/%s", address);
  if (!pci_read(all->root, device, &function)) {
    return true;
  }
  bool is_virtual = sysfs_exists(all->root, "%s/physfn", device);
  found.kind = pci_is_gpu(&function)        ? "gpu"
               : pci_is_nvswitch(&function) ? "nvswitch"
               : pci_is_nic(&function)      ? "nic"
                                            : NULL;
  char path[SYSFS_PATH_MAX];
  int64_t node;
  if (!found.kind || is_virtual || sysfs_resolve(all->root, path, sizeof path, "%s", device) < 0) {
    return true;
  }
  pci_format_id(&function, found.id);
  if (pci_is_nic(&function)) {
    sysfs_read_driver(all->root, found.driver, sizeof found.driver, "%s", device);
  }
  if (sysfs_read_int(all->root, &node, "%s/numa_node", device) == 0 && node >= 0 &&
      node <= INT16_MAX) {
    found.numa = (int)node;
  }
  found.path = strdup(path);
  return add_device(all, found);
}

/* The function that the path leads to or through. */
static struct topology_device *find_function(struct machine_devices *all, const char *path) {
  for (size_t i = 0; i < all->count; i++) {
    size_t length = strlen(all->devices[i].path);
    if (strncmp(path, all->devices[i].path, length) == 0 &&
        (path[length] == '/' || path[length] == '\0')) {
      return &all->devices[i];
    }
  }
  return NULL;
}

static void take_speed(struct topology_device *device, int64_t mbps) {
  /* -1 as drivers print it, in 16 bits or 32. */
  bool is_told = mbps > 0 && mbps != UINT16_MAX && mbps < INT32_MAX;
  bool is_made_up = strncmp(device->driver, "virtio", 6) == 0;
  if (is_told && !is_made_up && mbps > device->mbps) {
    device->mbps = (uint32_t)mbps;
  }
}

static bool read_interface(struct machine_devices *all, const char *name) {
  char path[SYSFS_PATH_MAX];
  int64_t mbps;
  if (sysfs_resolve(all->root, path, sizeof path, "sys/class/net/%s/device", name) < 0) {
    return true; /* veth, bridge, loopback */
  }
  struct topology_device *function = find_function(all, path);
  if (function) {
    if (sysfs_read_int(all->root, &mbps, "sys/class/net/%s/speed", name) == 0) {
      take_speed(function, mbps);
    }
    return true;
  }
  if (strstr(path, "/pci")) {
    return true; /* on USB, or a virtual function */
  }
  struct topology_device found = { .path = strdup(path), .numa = -1, .kind = "nic" };
  sysfs_read_driver(all->root, found.driver, sizeof found.driver, "sys/class/net/%s/device", name);
  return add_device(all, found);
}

/* One that is down counts for nothing: its rate is not what it will have, and another boot shall
 * have the same text. */
static void read_port(struct machine_devices *all, const char *name, int port,
                      struct topology_device *device) {
  struct hca_port facts;
  hca_port_read(all->root, name, port, &facts);
  if (facts.is_active) {
    take_speed(device, facts.mbps);
  }
}

static bool read_rdma(struct machine_devices *all, const char *name) {
  struct sysfs_list ports;
  char path[SYSFS_PATH_MAX];
  struct topology_device *device = NULL;
  if (sysfs_resolve(all->root, path, sizeof path, "sys/class/infiniband/%s/device", name) > 0) {
    device = find_function(all, path);
  }
  if (device && sysfs_list(all->root, &ports, "sys/class/infiniband/%s/ports", name) == 0) {
    for (size_t i = 0; i < ports.count; i++) {
      read_port(all, name, atoi(ports.entries[i]->d_name), device);
    }
    sysfs_list_free(&ports);
  }
  return true;
}

/* Without a link a NIC tells no speed, or another time another one: it has that of its kind. */
static uint32_t speed_of(const struct machine_devices *all, const struct topology_device *device) {
  uint32_t mbps = device->mbps;
  for (size_t i = 0; device->mbps == 0 && i < all->count; i++) {
    const struct topology_device *other = &all->devices[i];
    if (strcmp(other->id, device->id) == 0 && strcmp(other->driver, device->driver) == 0 &&
        other->mbps > mbps) {
      mbps = other->mbps;
    }
  }
  return mbps;
}

static char *describe(const struct machine_devices *all, const struct topology_device *device) {
  char *text, speed[16] = "";
  uint32_t mbps = speed_of(all, device);
  if (mbps > 0) {
    snprintf(speed, sizeof speed, " %" PRIu32, mbps);
  }
  int length = asprintf(&text, "%s%s%s%s%s%s", device->kind, device->id[0] ? " " : "", device->id,
                        device->driver[0] ? " " : "", device->driver, speed);
  return length < 0 ? NULL : text;
}

static int count_numa(const char *root) {
  /* Memory of GPUs and CXL comes as nodes, too, some of it with a driver. */
  int count = sysfs_read_list_count(root, "sys/devices/system/node/has_cpu");
  return count > 0 ? count : sysfs_read_list_count(root, "sys/devices/system/node/online");
}

char *topology_read(const char *root) {
  struct machine_devices all = { .root = root };
  bool is_good = read_all(&all, "sys/bus/pci/devices", read_function) &&
                 read_all(&all, "sys/class/net", read_interface) &&
                 read_all(&all, "sys/class/infiniband", read_rdma) && all.count > 0;
  for (size_t i = 0; is_good && i < all.count; i++) {
    all.devices[i].text = describe(&all, &all.devices[i]);
    is_good = all.devices[i].text;
  }
  char *text = is_good ? topology_format(all.devices, all.count, count_numa(root)) : NULL;
  for (size_t i = 0; i < all.count; i++) {
    free(all.devices[i].text);
    free(all.devices[i].path);
  }
  free(all.devices);
  return text;
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
  char *text = topology_read(param_string(PARAM_SYSFS_ROOT));
  topology_fingerprint(text, id);
  free(text);
}
