/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of GIDs. */
#include "net_plugin/lane/rdma/rdma_gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAPPED_BITS = 96 }; /* before the bits of an IPv4 address */

bool rdma_gid_is_ipv4(const void *bytes) {
  static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
  return !memcmp(bytes, mapped, sizeof(mapped));
}

const char *rdma_gid_text(const void *bytes, char text[RDMA_GID_TEXT_MAX]) {
  bool is_ipv4 = rdma_gid_is_ipv4(bytes);
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, (const char *)bytes + (is_ipv4 ? 12 : 0), text,
            RDMA_GID_TEXT_MAX);
  return text;
}

static bool is_in_range(const uint8_t bytes[16], const uint8_t range[16], unsigned bits) {
  unsigned whole = bits / 8, rest = bits % 8;
  uint8_t mask = (uint8_t)(0xff00 >> rest);
  return !memcmp(bytes, range, whole) && (rest == 0 || ((bytes[whole] ^ range[whole]) & mask) == 0);
}

/* The NIC's address as a GID has it, and the bits of its subnet there. */
static bool map_address(const struct nic *nic, uint8_t bytes[16], unsigned *bits) {
  if (nic->address.ss_family == AF_INET) {
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)&nic->address;
    memset(bytes, 0, 16);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, &ipv4->sin_addr, 4);
    *bits = nic->prefix_bits ? MAPPED_BITS + nic->prefix_bits : 0;
    return true;
  }
  if (nic->address.ss_family == AF_INET6) {
    memcpy(bytes, &((const struct sockaddr_in6 *)&nic->address)->sin6_addr, 16);
    *bits = nic->prefix_bits;
    return true;
  }
  return false;
}

static bool is_link_local(const uint8_t bytes[16]) {
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

/* Higher is better; 0: not to be used. */
static int rank(const struct rdma_gid *gid, const struct rdma_settings *settings,
                const struct nic *nic) {
  bool is_ipv4 = rdma_gid_is_ipv4(gid->bytes);
  sa_family_t family = is_ipv4 ? AF_INET : AF_INET6;
  uint8_t address[16];
  unsigned bits = 0;
  if ((gid->roce_version && gid->roce_version != settings->roce_version) ||
      (settings->family != AF_UNSPEC && settings->family != family) ||
      !is_in_range(gid->bytes, settings->range.s6_addr, settings->prefix_bits) ||
      (gid->netdev[0] && strcmp(gid->netdev, nic->name) != 0)) {
    return 0;
  }
  int value = is_ipv4 ? 10 : 1;
  if (map_address(nic, address, &bits)) {
    bool is_same = !memcmp(gid->bytes, address, sizeof(address));
    bool is_near = bits && is_in_range(gid->bytes, address, bits);
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
    bool is_ipv4 = rdma_gid_is_ipv4(settings->range.s6_addr);
    snprintf(range, sizeof(range), " in %.45s/%u", rdma_gid_text(settings->range.s6_addr, text),
             settings->prefix_bits - (is_ipv4 ? MAPPED_BITS : 0));
  }
  snprintf(why, RDMA_WHY_MAX, "%s port %d has no RoCE v%d GID%s%s on %s", facts->name, facts->port,
           settings->roce_version,
           settings->family == AF_INET    ? " of IPv4"
           : settings->family == AF_INET6 ? " of IPv6"
                                          : "",
           range, nic->name);
}

int rdma_gid_choose(const struct rdma_sysfs_port *facts, const struct rdma_settings *settings,
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
