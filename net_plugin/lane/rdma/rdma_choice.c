/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_choice.h. */
#include "net_plugin/lane/rdma/rdma_choice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sysfs.h"

static bool is_ipv4(const void *bytes) {
  static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
  return !memcmp(bytes, mapped, sizeof(mapped));
}

const char *rdma_choice_gid_text(const void *bytes, char text[RDMA_GID_TEXT_MAX]) {
  bool is_mapped = is_ipv4(bytes);
  inet_ntop(is_mapped ? AF_INET : AF_INET6, (const char *)bytes + (is_mapped ? 12 : 0), text,
            RDMA_GID_TEXT_MAX);
  return text;
}

/* The NIC's address as a GID has it. */
static bool map_address(const struct nic *nic, uint8_t bytes[16]) {
  if (nic->address.ss_family == AF_INET) {
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)&nic->address;
    memset(bytes, 0, 16);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, &ipv4->sin_addr, 4);
    return true;
  }
  if (nic->address.ss_family == AF_INET6) {
    memcpy(bytes, &((const struct sockaddr_in6 *)&nic->address)->sin6_addr, 16);
    return true;
  }
  return false;
}

/* ---- which NIC a port belongs to ---- */

static bool is_of_nic(const struct rdma_gid *gid, const struct nic *nic) {
  uint8_t address[16];
  return map_address(nic, address) && !memcmp(gid->bytes, address, sizeof(address)) &&
         (!gid->netdev[0] || !strcmp(gid->netdev, nic->name));
}

static bool has_gid_of_nic(const struct rdma_sysfs_port *facts, const struct nic *nic) {
  bool has_one = false;
  for (unsigned i = 0; i < facts->gid_count; i++) {
    has_one |= is_of_nic(&facts->gids[i], nic);
  }
  return has_one;
}

static bool is_on_same_function(const char *root, const struct rdma_sysfs_port *facts,
                                const struct nic *nic) {
  char path[SYSFS_PATH_MAX];
  int64_t port = 0;
  if (!facts->pci_path[0] ||
      sysfs_resolve(root, path, sizeof(path), "sys/class/net/%s/device", nic->name) <= 0 ||
      strcmp(path, facts->pci_path) != 0) {
    return false;
  }
  /* Cards with one function for two ports count them here. */
  bool is_counted = sysfs_read_int(root, &port, "sys/class/net/%s/dev_port", nic->name) >= 0;
  return !is_counted || port == 0 || port + 1 == facts->port;
}

/* The GUID or the GID of a software device, or of a card that borrows an interface, is made of the
 * hardware address: as in an IPv6 address, or that address itself. */
static bool has_hardware_address(const char *root, const struct rdma_sysfs_port *facts,
                                 const struct nic *nic) {
  char text[SYSFS_TEXT_MAX];
  unsigned part[6];
  uint8_t bytes[6];
  uint64_t guid = 0;
  if (sysfs_read_text(root, text, sizeof(text), "sys/class/net/%s/address", nic->name) <= 0 ||
      sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &part[0], &part[1], &part[2], &part[3], &part[4],
             &part[5]) != 6) {
    return false;
  }
  for (int i = 0; i < 6; i++) {
    bytes[i] = (uint8_t)part[i];
    guid = guid << 8 | (i == 0 ? part[i] ^ 2 : part[i]);
    guid = i == 2 ? guid << 16 | 0xfffe : guid;
  }
  return facts->node_guid == guid ||
         (facts->gid_count > 0 && !memcmp(facts->gids[0].bytes, bytes, sizeof(bytes)));
}

bool rdma_choice_is_of_nic(const char *root, const struct rdma_sysfs_port *facts,
                           const struct nic *nic) {
  if (facts->is_infiniband) {
    return is_on_same_function(root, facts, nic);
  }
  if (facts->is_iwarp) {
    return !strcmp(facts->parent, nic->name) || has_gid_of_nic(facts, nic) ||
           has_hardware_address(root, facts, nic) || is_on_same_function(root, facts, nic);
  }
  /* RoCE: every address of an interface is a GID of its port. The name alone would not do: in
   * another network namespace there may be an interface, and a port that is seen here, too, of the
   * same. */
  return has_gid_of_nic(facts, nic);
}

/* ---- what stands for it ---- */

/* Of RoCE the NIC's address, v2 before v1, as librdmacm takes it; of the others the first. */
static int find_gid(const struct rdma_sysfs_port *facts, const struct nic *nic) {
  int best = -ENOENT;
  for (unsigned i = 0; i < facts->gid_count; i++) {
    const struct rdma_gid *gid = &facts->gids[i];
    if (facts->is_infiniband || facts->is_iwarp) {
      return 0;
    }
    if (is_of_nic(gid, nic) && (best < 0 || gid->roce_version == 2)) {
      best = (int)i;
    }
  }
  return best;
}

/* ---- may it be used? ---- */

bool rdma_choice_is_allowed(const struct rdma_sysfs_port *port, const struct rdma_settings *with,
                            char why[RDMA_WHY_MAX]) {
  struct rdma_traits traits;
  rdma_quirks_find(port, &traits);
  bool is_named = name_list_has(&with->hcas, port->name, port->port);
  if (!is_named) {
    snprintf(why, RDMA_WHY_MAX, "NCCL_IB_HCA leaves out %s:%d", port->name, port->port);
  } else if (!traits.is_usable) {
    snprintf(why, RDMA_WHY_MAX, "%s: %s", port->name, traits.why_not);
  }
  return is_named && traits.is_usable;
}

int rdma_choice_judge(const struct rdma_sysfs_port *port, const struct rdma_settings *with,
                      const struct nic *nic, int *gid, char why[RDMA_WHY_MAX]) {
  if (!rdma_choice_is_allowed(port, with, why)) {
    return -ENOENT;
  }
  if (!port->is_active) {
    snprintf(why, RDMA_WHY_MAX, "port %d of %s is %s", port->port, port->name,
             port->state[0] ? port->state : "in an unknown state");
    return -ENOENT;
  }
  if (nic->advertised.ss_family != AF_UNSPEC) {
    snprintf(why, RDMA_WHY_MAX,
             "others dial it by STRATUS_ADVERTISE_ADDRESS, and what translates that passes on TCP");
    return -ENOENT;
  }
  *gid = find_gid(port, nic);
  if (*gid < 0) {
    snprintf(why, RDMA_WHY_MAX, "%s port %d has no GID of %s", port->name, port->port, nic->name);
  }
  return *gid < 0 ? -ENOENT : 0;
}

const char *rdma_choice_warning(const char *root, const struct rdma_sysfs_port *port,
                                const struct nic *nic, char text[RDMA_QUIRKS_TEXT_MAX]) {
  int64_t mtu = 0;
  sysfs_read_int(root, &mtu, "sys/class/net/%s/mtu", nic->name);
  return rdma_quirks_warning(port, (unsigned)mtu, getenv("NCCL_PROTO"), text);
}
