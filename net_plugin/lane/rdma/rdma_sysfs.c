/* SPDX-License-Identifier: Apache-2.0 */
/* /sys/class/infiniband. A GID's attributes are there only while it is set: reading them fails
 * otherwise, and that is no error. */
#include "net_plugin/lane/rdma/rdma_sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hca_port.h"
#include "common/sysfs.h"

#define PORT "sys/class/infiniband/%s/ports/%d/"

/* "0000:0000:0000:0000:0000:ffff:0a00:0001". False for one that is not set: all zeroes, or nothing
 * but the prefix of link-local ones. */
static bool parse_gid(const char *text, uint8_t bytes[16]) {
  unsigned part[8];
  if (sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3],
             &part[4], &part[5], &part[6], &part[7]) != 8) {
    return false;
  }
  unsigned rest = 0;
  for (int i = 0; i < 8; i++) {
    bytes[2 * i] = (uint8_t)(part[i] >> 8);
    bytes[2 * i + 1] = (uint8_t)part[i];
    rest |= i > 0 ? part[i] : 0;
  }
  return rest != 0;
}

static void read_gid_attributes(const char *root, const struct rdma_sysfs_port *facts,
                                struct rdma_gid *gid) {
  char text[SYSFS_TEXT_MAX];
  if (sysfs_read_text(root, text, sizeof(text), PORT "gid_attrs/types/%d", facts->name, facts->port,
                      gid->index) > 0) {
    /* "IB/RoCE v1" is also the type of InfiniBand's and iWARP's. */
    bool is_roce = !facts->is_infiniband && !facts->is_iwarp;
    gid->roce_version = strstr(text, "RoCE v2") ? 2 : is_roce && strstr(text, "RoCE v1") ? 1 : 0;
  }
  if (sysfs_read_text(root, text, sizeof(text), PORT "gid_attrs/ndevs/%d", facts->name, facts->port,
                      gid->index) > 0) {
    snprintf(gid->netdev, sizeof(gid->netdev), "%.*s", IF_NAMESIZE - 1, text);
  }
}

static void read_gids(const char *root, struct rdma_sysfs_port *facts) {
  struct sysfs_list list;
  if (sysfs_list(root, &list, PORT "gids", facts->name, facts->port) < 0) {
    return;
  }
  for (size_t i = 0; i < list.count && facts->gid_count < RDMA_GIDS_MAX; i++) {
    char text[SYSFS_TEXT_MAX];
    struct rdma_gid *gid = &facts->gids[facts->gid_count];
    *gid = (struct rdma_gid){ .index = atoi(list.entries[i]->d_name) };
    if (sysfs_read_text(root, text, sizeof(text), PORT "gids/%s", facts->name, facts->port,
                        list.entries[i]->d_name) > 0 &&
        parse_gid(text, gid->bytes)) {
      read_gid_attributes(root, facts, gid);
      facts->gid_count++;
    }
  }
  sysfs_list_free(&list);
}

/* "506b:4b03:00ac:0001" */
static uint64_t read_guid(const char *root, const char *name, const char *file) {
  char text[SYSFS_TEXT_MAX];
  unsigned part[4];
  if (sysfs_read_text(root, text, sizeof(text), "sys/class/infiniband/%s/%s", name, file) <= 0 ||
      sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4) {
    return 0;
  }
  return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 | part[3];
}

/* What all ports of a device share. */
static void read_device(const char *root, const char *name, struct rdma_sysfs_port *out) {
  char text[SYSFS_TEXT_MAX], path[SYSFS_PATH_MAX];
  uint64_t number;
  int64_t node;
  *out = (struct rdma_sysfs_port){ .numa_node = -1 };
  snprintf(out->name, sizeof(out->name), "%s", name);
  out->is_iwarp =
      sysfs_read_text(root, text, sizeof(text), "sys/class/infiniband/%s/node_type", name) > 0 &&
      strstr(text, "RNIC");
  out->node_guid = read_guid(root, name, "node_guid");
  out->guid = read_guid(root, name, "sys_image_guid");
  out->guid = out->guid ? out->guid : out->node_guid;
  if (sysfs_read_text(root, text, sizeof(text), "sys/class/infiniband/%s/parent", name) > 0) {
    snprintf(out->parent, sizeof(out->parent), "%.*s", IF_NAMESIZE - 1, text);
  }
  if (sysfs_resolve(root, path, sizeof(path), "sys/class/infiniband/%s/device", name) > 0 &&
      strlen(path) < sizeof(out->pci_path) &&
      sysfs_read_hex(root, &number, "%s/vendor", path + 1) >= 0) {
    memcpy(out->pci_path, path, strlen(path) + 1);
    out->pci_vendor = (uint16_t)number;
    out->pci_device =
        sysfs_read_hex(root, &number, "%s/device", path + 1) >= 0 ? (uint16_t)number : 0;
    if (sysfs_read_int(root, &node, "%s/numa_node", path + 1) >= 0 && node >= 0 &&
        node < INT16_MAX) {
      out->numa_node = (int)node;
    }
  }
  sysfs_read_driver(root, out->driver, sizeof(out->driver), "sys/class/infiniband/%s/device", name);
}

static void read_port(const char *root, struct rdma_sysfs_port *out) {
  char text[SYSFS_TEXT_MAX];
  if (sysfs_read_text(root, text, sizeof(text), PORT "link_layer", out->name, out->port) > 0) {
    out->is_infiniband = !strcmp(text, "InfiniBand");
  }
  struct hca_port now;
  hca_port_read(root, out->name, out->port, &now);
  snprintf(out->state, sizeof(out->state), "%s", now.state);
  out->is_active = now.is_active;
  /* Of one that is down, too: people are shown what it says, and no lane is made on it. */
  out->speed_mbps = now.mbps;
  read_gids(root, out);
}

unsigned rdma_sysfs_list(const char *root, struct rdma_sysfs_port out[RDMA_PORTS_MAX]) {
  struct sysfs_list devices, ports;
  unsigned count = 0;
  if (sysfs_list(root, &devices, "sys/class/infiniband") < 0) {
    return 0;
  }
  for (size_t i = 0; i < devices.count; i++) {
    if (strlen(devices.entries[i]->d_name) >= RDMA_HCA_NAME_MAX ||
        sysfs_list(root, &ports, "sys/class/infiniband/%s/ports", devices.entries[i]->d_name) < 0) {
      continue;
    }
    for (size_t j = 0; j < ports.count && count < RDMA_PORTS_MAX; j++) {
      read_device(root, devices.entries[i]->d_name, &out[count]);
      out[count].port = atoi(ports.entries[j]->d_name);
      read_port(root, &out[count++]);
    }
    sysfs_list_free(&ports);
  }
  sysfs_list_free(&devices);
  return count;
}

/* ---- GPU memory ---- */

void rdma_sysfs_read_gpu(const char *root, struct rdma_gpu_facts *out) {
  static const struct {
    const char *path, *name;
  } modules[] = {
    { "sys/module/nvidia_peermem/version", "nvidia_peermem" },
    { "sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem" },
    { "sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem (nc)" },
  };
  char text[SYSFS_TEXT_MAX];
  *out = (struct rdma_gpu_facts){ 0 };
  for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]) && !out->has_peermem; i++) {
    if (sysfs_exists(root, "%s", modules[i].path)) {
      out->has_peermem = true;
      snprintf(out->peermem, sizeof(out->peermem), "%s", modules[i].name);
    }
  }
  if (sysfs_read_text(root, text, sizeof(text), "sys/module/nvidia/version") > 0) {
    snprintf(out->nvidia, sizeof(out->nvidia), "%.*s", (int)sizeof(out->nvidia) - 1, text);
  }
  out->has_open_driver =
      sysfs_read_text(root, text, sizeof(text), "proc/driver/nvidia/version") > 0 &&
      strstr(text, "Open Kernel Module");
}
