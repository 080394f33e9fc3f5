/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_choice.h. */
#include "net_plugin/lane/rdma/rdma_choice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sysfs.h"

enum { MAPPED_BITS = 96 }; /* before the bits of an IPv4 address */

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

static bool has_gid_of_nic(const struct rdma_sysfs_port *facts, const struct nic *nic) {
  uint8_t address[16];
  bool has_address = map_address(nic, address);
  for (unsigned i = 0; has_address && i < facts->gid_count; i++) {
    const struct rdma_gid *gid = &facts->gids[i];
    if (!memcmp(gid->bytes, address, sizeof(address)) &&
        (!gid->netdev[0] || !strcmp(gid->netdev, nic->name))) {
      return true;
    }
  }
  return false;
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

/* ---- which of its GIDs ---- */

static bool is_in_range(const uint8_t bytes[16], const uint8_t range[16], unsigned bits) {
  unsigned whole = bits / 8, rest = bits % 8;
  uint8_t mask = (uint8_t)(0xff00 >> rest);
  return !memcmp(bytes, range, whole) && (rest == 0 || ((bytes[whole] ^ range[whole]) & mask) == 0);
}

static bool is_link_local(const uint8_t bytes[16]) {
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

/* Higher is better; 0: not to be used. */
static int rank(const struct rdma_gid *gid, const struct rdma_settings *settings,
                const struct nic *nic) {
  sa_family_t family = is_ipv4(gid->bytes) ? AF_INET : AF_INET6;
  uint8_t address[16];
  unsigned bits = nic->prefix_bits;
  if ((gid->roce_version && gid->roce_version != settings->roce_version) ||
      (settings->family != AF_UNSPEC && settings->family != family) ||
      !is_in_range(gid->bytes, settings->range.s6_addr, settings->prefix_bits) ||
      (gid->netdev[0] && strcmp(gid->netdev, nic->name) != 0)) {
    return 0;
  }
  int value = family == AF_INET ? 10 : 1;
  if (map_address(nic, address)) {
    bool is_same = !memcmp(gid->bytes, address, sizeof(address));
    bool is_near =
        bits && is_in_range(gid->bytes, address,
                            nic->address.ss_family == AF_INET ? MAPPED_BITS + bits : bits);
    value += is_same ? 3 : is_near ? 2 : 0;
  }
  return value + !is_link_local(gid->bytes);
}

static int find_index(const struct rdma_sysfs_port *facts, int index, char why[RDMA_WHY_MAX]) {
  for (unsigned i = 0; i < facts->gid_count; i++) {
    if (facts->gids[i].index == index) {
      return (int)i;
    }
  }
  snprintf(why, RDMA_WHY_MAX, "%s port %d has no GID %d (NCCL_IB_GID_INDEX)", facts->name,
           facts->port, index);
  return -ENOENT;
}

/* The second one where a subnet manager made it routable between subnets (NCCL: FLID), else the
 * first. */
static int choose_infiniband(const struct rdma_sysfs_port *facts, char why[RDMA_WHY_MAX]) {
  for (unsigned i = 0; i < facts->gid_count; i++) {
    const struct rdma_gid *gid = &facts->gids[i];
    if (gid->index == 1 && (gid->bytes[4] || gid->bytes[5])) {
      return (int)i;
    }
  }
  return find_index(facts, 0, why);
}

static void tell_why(const struct rdma_sysfs_port *facts, const struct rdma_settings *settings,
                     const struct nic *nic, char why[RDMA_WHY_MAX]) {
  char range[INET6_ADDRSTRLEN + 16] = "";
  if (settings->prefix_bits) {
    char text[RDMA_GID_TEXT_MAX];
    snprintf(range, sizeof(range), " in %.45s/%u",
             rdma_choice_gid_text(settings->range.s6_addr, text),
             settings->prefix_bits - (is_ipv4(settings->range.s6_addr) ? MAPPED_BITS : 0));
  }
  snprintf(why, RDMA_WHY_MAX, "%s port %d has no RoCE v%d GID%s%s on %s", facts->name, facts->port,
           settings->roce_version,
           settings->family == AF_INET    ? " of IPv4"
           : settings->family == AF_INET6 ? " of IPv6"
                                          : "",
           range, nic->name);
}

int rdma_choice_gid(const struct rdma_sysfs_port *facts, const struct rdma_settings *settings,
                    const struct nic *nic, char why[RDMA_WHY_MAX]) {
  if (facts->is_infiniband) {
    return choose_infiniband(facts, why);
  }
  if (facts->is_iwarp && facts->gid_count > 0) {
    return 0; /* rdma_cm addresses by IP; the GID is the hardware address */
  }
  if (settings->gid_index >= 0) {
    return find_index(facts, settings->gid_index, why);
  }
  int best = -ENOENT, best_rank = 0;
  for (unsigned i = 0; i < facts->gid_count; i++) {
    int value = rank(&facts->gids[i], settings, nic);
    if (value > best_rank) {
      best_rank = value;
      best = (int)i;
    }
  }
  if (best < 0) {
    tell_why(facts, settings, nic, why);
  }
  return best;
}

/* ---- may it be used? ---- */

enum rdma_cm_wish rdma_choice_cm(const struct rdma_traits *traits,
                                 const struct rdma_settings *with) {
  return traits->needs_cm ? RDMA_CM_MUST : (enum rdma_cm_wish)with->cm;
}

bool rdma_choice_is_allowed(const struct rdma_sysfs_port *port, const struct rdma_settings *with,
                            char why[RDMA_WHY_MAX]) {
  struct rdma_traits traits;
  rdma_quirks_find(port, &traits);
  bool is_named = name_list_has(&with->hcas, port->name, port->port);
  bool has_way = !traits.needs_cm || with->cm != RDMA_CM_NEVER;
  if (!is_named) {
    snprintf(why, RDMA_WHY_MAX, "NCCL_IB_HCA leaves out %s:%d", port->name, port->port);
  } else if (!traits.is_usable) {
    snprintf(why, RDMA_WHY_MAX, "%s: %s", port->name, traits.why_not);
  } else if (!has_way) {
    snprintf(why, RDMA_WHY_MAX, "%s needs librdmacm, and STRATUS_RDMA_CM=off", port->name);
  }
  return is_named && traits.is_usable && has_way;
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
  *gid = rdma_choice_gid(port, with, nic, why);
  return *gid < 0 ? -ENOENT : 0;
}

const char *rdma_choice_warning(const char *root, const struct rdma_sysfs_port *port,
                                const struct nic *nic, char text[RDMA_QUIRKS_TEXT_MAX]) {
  int64_t mtu = 0;
  sysfs_read_int(root, &mtu, "sys/class/net/%s/mtu", nic->name);
  return rdma_quirks_warning(port, (unsigned)mtu, getenv("NCCL_PROTO"), text);
}
