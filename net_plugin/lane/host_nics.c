/* SPDX-License-Identifier: Apache-2.0 */
/* See host_nics.h. Not by getifaddrs, which has no flags of addresses and calls an address with a
 * label ("eth0:1") an interface. */
#include "net_plugin/lane/host_nics.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/descriptor.h"
#include "net_plugin/lane/netlink.h"
#include "net_plugin/lane/tcp_address.h"

/* What changes while it is read is asked for again, but not for ever: each of a thousand addresses
 * may be in duplicate address detection. */
#define TRIES 5

/* A list that grows. */
struct items {
  uint8_t *bytes;
  size_t count, room, size;
  int error;
};

/* Appends a zeroed one; NULL: no memory. */
static void *append(struct items *items) {
  if (items->count == items->room) {
    size_t room = items->room ? 2 * items->room : 32;
    uint8_t *bytes = realloc(items->bytes, room * items->size);
    if (!bytes) {
      items->error = -ENOMEM;
      return NULL;
    }
    items->bytes = bytes;
    items->room = room;
  }
  return memset(items->bytes + items->count++ * items->size, 0, items->size);
}

static int collect(unsigned short type, netlink_visit_fn *visit, struct items *items) {
  int error = -EINTR;
  for (int i = 0; i < TRIES && error == -EINTR; i++) {
    struct netlink_request request = netlink_request_of(type, AF_UNSPEC);
    items->count = 0;
    error = netlink_dump(&request, visit, items);
    error = items->error ? items->error : error;
  }
  if (error && error != -EINTR) {
    free(items->bytes);
    return error;
  }
  return (int)items->count;
}

/* ---- links ---- */

static bool add_link(const struct nlmsghdr *entry, void *argument) {
  struct host_link *link = entry->nlmsg_type == RTM_NEWLINK ? append(argument) : NULL;
  if (!link) {
    return entry->nlmsg_type != RTM_NEWLINK;
  }
  const struct ifinfomsg *info = NLMSG_DATA(entry);
  size_t left = IFLA_PAYLOAD(entry);
  link->index = (unsigned)info->ifi_index;
  link->flags = info->ifi_flags;
  for (const struct rtattr *each = IFLA_RTA(info); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    size_t bytes = RTA_PAYLOAD(each);
    if (each->rta_type == IFLA_IFNAME) {
      snprintf(link->name, sizeof link->name, "%.*s", (int)bytes, (const char *)RTA_DATA(each));
    } else if (each->rta_type == IFLA_ADDRESS && bytes <= sizeof link->hardware) {
      memcpy(link->hardware, RTA_DATA(each), bytes);
      link->hardware_bytes = (unsigned)bytes;
    }
  }
  return true;
}

int host_links(struct host_link **list) {
  struct items items = { .size = sizeof **list };
  int count = collect(RTM_GETLINK, add_link, &items);
  *list = count < 0 ? NULL : (struct host_link *)(void *)items.bytes;
  return count;
}

/* ---- addresses ---- */

static void set_ip(struct host_address *address, const struct ifaddrmsg *info,
                   const struct rtattr *ip) {
  struct sockaddr_in *in = (struct sockaddr_in *)&address->address;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address->address;
  address->address.ss_family = info->ifa_family;
  if (info->ifa_family == AF_INET && RTA_PAYLOAD(ip) == sizeof in->sin_addr) {
    memcpy(&in->sin_addr, RTA_DATA(ip), sizeof in->sin_addr);
  } else if (info->ifa_family == AF_INET6 && RTA_PAYLOAD(ip) == sizeof in6->sin6_addr) {
    memcpy(&in6->sin6_addr, RTA_DATA(ip), sizeof in6->sin6_addr);
    in6->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? info->ifa_index : 0;
  }
}

static bool add_address(const struct nlmsghdr *entry, void *argument) {
  const struct ifaddrmsg *info = NLMSG_DATA(entry);
  bool is_one = entry->nlmsg_type == RTM_NEWADDR &&
                (info->ifa_family == AF_INET || info->ifa_family == AF_INET6);
  struct host_address *address = is_one ? append(argument) : NULL;
  if (!address) {
    return !is_one;
  }
  address->index = info->ifa_index;
  address->flags = info->ifa_flags;
  address->prefix_bits = info->ifa_prefixlen;
  size_t left = IFA_PAYLOAD(entry);
  bool is_local = false; /* else IFA_ADDRESS is, and not the peer's */
  for (const struct rtattr *each = IFA_RTA(info); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
    if (each->rta_type == IFA_LOCAL || (each->rta_type == IFA_ADDRESS && !is_local)) {
      is_local = each->rta_type == IFA_LOCAL;
      set_ip(address, info, each);
    } else if (each->rta_type == IFA_FLAGS && RTA_PAYLOAD(each) == sizeof(uint32_t)) {
      memcpy(&address->flags, RTA_DATA(each), sizeof(uint32_t)); /* beyond the first eight */
    }
  }
  return true;
}

int host_addresses(struct host_address **list) {
  struct items items = { .size = sizeof **list };
  int count = collect(RTM_GETADDR, add_address, &items);
  *list = count < 0 ? NULL : (struct host_address *)(void *)items.bytes;
  return count;
}

int host_link_name(unsigned index, char name[IF_NAMESIZE]) {
  descriptor_begin(); /* the C library asks by a socket */
  int error = if_indextoname(index, name) ? 0 : -errno;
  descriptor_end();
  return error;
}

int host_address_find(unsigned index, const struct sockaddr_storage *address, unsigned *flags) {
  struct host_address *list;
  int count = host_addresses(&list), found = count < 0 ? count : 0;
  for (int i = 0; i < count && !found; i++) {
    const struct host_address *it = &list[i];
    if ((index == 0 || it->index == index) && tcp_address_is_same_ip(&it->address, address)) {
      *flags = it->flags;
      found = 1;
    }
  }
  free(list);
  return found;
}
