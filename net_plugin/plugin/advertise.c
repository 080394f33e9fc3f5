/* SPDX-License-Identifier: Apache-2.0 */
/* See advertise.h. Everything is checked before an interface is changed: with half of a list some
 * connections would wait for a timeout. */
#include "net_plugin/plugin/advertise.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

#define VARIABLE "STRATUS_ADVERTISE_ADDRESS"
#define ACCEPTED "accepted is one address, or a list as in eth0=203.0.113.7,eth1=203.0.113.8"

struct wish {
  struct interface *interface;
  struct sockaddr_storage address; /* family 0: none */
  bool is_own;
};

struct advertise {
  const char *text;
  advertise_is_own_fn *is_own;
  struct wish wishes[INTERFACE_CHOSEN_MAX];
  unsigned count;
};

static bool parse_address(const char *text, struct sockaddr_storage *address) {
  *address = (struct sockaddr_storage){ 0 };
  struct sockaddr_in *in = (struct sockaddr_in *)address;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
  if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
    address->ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
    address->ss_family = AF_INET6;
  }
  return address->ss_family != AF_UNSPEC;
}

/* Why nobody on another host can dial it; NULL: one can. */
static const char *why_not(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET6) {
    const struct in6_addr *ip = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(ip)      ? "means each host itself"
           : IN6_IS_ADDR_LINKLOCAL(ip)   ? "holds on one link only"
           : IN6_IS_ADDR_UNSPECIFIED(ip) ? "is no host's"
           : IN6_IS_ADDR_MULTICAST(ip)   ? "is no host's"
                                         : NULL;
  }
  uint32_t ip = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
  return ip >> 24 == IN_LOOPBACKNET         ? "means each host itself"
         : ip >> 16 == 0xa9fe               ? "holds on one link only" /* 169.254.0.0/16 */
         : ip >> 24 == 0 || ip >> 28 >= 0xe ? "is no host's"
                                            : NULL;
}

static int refuse(const struct advertise *advertise, const char *part, size_t length,
                  const char *why) {
  char known[INTERFACE_CHOSEN_MAX * (IF_NAMESIZE + 1)] = "";
  size_t used = 0;
  for (unsigned i = 0; i < advertise->count; i++) {
    used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? "," : "",
                             advertise->wishes[i].interface->nic.name);
  }
  LOG_WARN(VARIABLE "=%s: \"%.*s\" %s; " ACCEPTED ", of the interfaces in use: %s", advertise->text,
           (int)length, part, why, used ? known : "none");
  return -EINVAL;
}

/* One entry, for one NIC or for all. */
static int read_entry(struct advertise *advertise, const char *entry, size_t length) {
  char text[IF_NAMESIZE + INET6_ADDRSTRLEN + 1];
  struct sockaddr_storage address;
  if (length >= sizeof(text)) {
    return refuse(advertise, entry, length, "is too long");
  }
  snprintf(text, sizeof(text), "%.*s", (int)length, entry);
  char *equals = strchr(text, '=');
  if (equals) {
    *equals = '\0';
  }
  if (!parse_address(equals ? equals + 1 : text, &address)) {
    return refuse(advertise, entry, length, "has no IPv4 or IPv6 address");
  }
  const char *why = why_not(&address);
  if (why) {
    return refuse(advertise, entry, length, why);
  }
  unsigned used = 0;
  for (unsigned i = 0; i < advertise->count; i++) {
    struct wish *wish = &advertise->wishes[i];
    if (!equals || strcmp(wish->interface->nic.name, text) == 0) {
      if (wish->address.ss_family != AF_UNSPEC) {
        return refuse(advertise, entry, length, "is a second one for the same NIC");
      }
      wish->address = address;
      wish->is_own = advertise->is_own(&address);
      used++;
    }
  }
  return used ? 0 : refuse(advertise, entry, length, "names none of the interfaces in use");
}

/* Names the NIC's address and the one that is to be dialled. */
static int check_wish(const struct advertise *advertise, const struct wish *wish) {
  char own[INTERFACE_ADDRESS_TEXT_MAX], dialled[INTERFACE_ADDRESS_TEXT_MAX];
  char other_own[INTERFACE_ADDRESS_TEXT_MAX];
  const struct interface *interface = wish->interface;
  if (wish->address.ss_family == AF_UNSPEC || wish->is_own) {
    return 0;
  }
  interface_address_text(&interface->nic.address, own);
  interface_address_text(&wish->address, dialled);
  if (interface->nic.address.ss_family != wish->address.ss_family) {
    LOG_WARN(VARIABLE ": %s listens at %s, where nobody arrives who dials %s: both must be IPv4, "
                      "or both IPv6 (NCCL_SOCKET_FAMILY), or the latter an address of this host",
             interface->nic.name, own, dialled);
    return -EINVAL;
  }
  for (const struct wish *other = advertise->wishes; other < wish; other++) {
    if (memcmp(&other->address, &wish->address, sizeof(wish->address)) == 0) {
      LOG_WARN(VARIABLE ": who dials %s cannot reach both %s (%s) and %s (%s): give each NIC an "
                        "address of its own, or choose one of them by NCCL_SOCKET_IFNAME",
               dialled, other->interface->nic.name,
               interface_address_text(&other->interface->nic.address, other_own),
               interface->nic.name, own);
      return -EINVAL;
    }
  }
  return 0;
}

static void change(const struct wish *wish) {
  char own[INTERFACE_ADDRESS_TEXT_MAX], dialled[INTERFACE_ADDRESS_TEXT_MAX];
  struct interface *interface = wish->interface;
  interface_address_text(&interface->nic.address, own);
  interface_address_text(&wish->address, dialled);
  if (wish->address.ss_family == AF_UNSPEC || strcmp(own, dialled) == 0) {
    return;
  }
  if (wish->is_own) {
    LOG_INFO("%s uses %s, an address of this host, and not its own %s (" VARIABLE ")",
             interface->nic.name, dialled, own);
    interface->nic.address = wish->address;
    interface->nic.has_host_address = true;
    interface->nic.has_neighbours = false;
    interface->nic.prefix_bits = 0; /* no subnet is on the NIC */
  } else {
    LOG_INFO("%s listens at %s, and other hosts dial %s (" VARIABLE ")", interface->nic.name, own,
             dialled);
    interface->nic.advertised = wish->address;
  }
}

int advertise_apply(const char *text, struct interface *list, size_t count,
                    advertise_is_own_fn *is_own) {
  struct advertise advertise = { .text = text, .is_own = is_own };
  int error = 0;
  for (size_t i = 0; i < count && advertise.count < INTERFACE_CHOSEN_MAX; i++) {
    if (list[i].verdict == INTERFACE_CHOSEN) {
      advertise.wishes[advertise.count++].interface = &list[i];
    }
  }
  while (*text && !error) {
    size_t length = strcspn(text, ",");
    error = read_entry(&advertise, text, length);
    text += length + (text[length] == ',');
  }
  for (unsigned i = 0; i < advertise.count && !error; i++) {
    error = check_wish(&advertise, &advertise.wishes[i]);
  }
  for (unsigned i = 0; i < advertise.count && !error; i++) {
    change(&advertise.wishes[i]);
  }
  return error;
}
