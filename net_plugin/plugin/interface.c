/* SPDX-License-Identifier: Apache-2.0 */
/* A search marks each address with a verdict; the default choice is a chain of searches, the first
 * of which that finds anything decides. */
#include "net_plugin/plugin/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/name_list.h"
#include "common/plain.h"
#include "net_plugin/lane/tcp_socket.h"

struct interface_wishes interface_read_wishes(void) {
  return (struct interface_wishes){
    .ifname = getenv("NCCL_SOCKET_IFNAME"),
    .family = getenv("NCCL_SOCKET_FAMILY"),
    .comm_id = getenv("NCCL_COMM_ID"),
  };
}

unsigned interface_prefix_bits(const struct sockaddr_storage *netmask) {
  unsigned bits = 0, count;
  const uint8_t *bytes = tcp_address_ip(netmask, &count);
  for (unsigned i = 0; i < count && netmask->ss_family != AF_UNSPEC; i++) {
    bits += (unsigned)__builtin_popcount(bytes[i]);
  }
  return bits;
}

const char *interface_address_text(const struct sockaddr_storage *address,
                                   char text[INTERFACE_ADDRESS_TEXT_MAX]) {
  if (getnameinfo((const struct sockaddr *)address, tcp_address_bytes(address), text,
                  INTERFACE_ADDRESS_TEXT_MAX, NULL, 0, NI_NUMERICHOST) != 0) {
    snprintf(text, INTERFACE_ADDRESS_TEXT_MAX, "?");
  }
  return text;
}

const char *interface_verdict_text(enum interface_verdict verdict) {
  static const char *const texts[] = {
    [INTERFACE_CHOSEN] = "chosen",
    [INTERFACE_NOT_RUNNING] = "is down or has no carrier",
    [INTERFACE_OTHER_FAMILY] = "NCCL_SOCKET_FAMILY asks for the other address family",
    [INTERFACE_LOOPBACK_ADDRESS] = "the IPv6 loopback address is never used",
    [INTERFACE_NOT_NAMED] = "does not match NCCL_SOCKET_IFNAME",
    [INTERFACE_LESS_PREFERRED] = "better ones exist; name it in NCCL_SOCKET_IFNAME to use it",
    [INTERFACE_SECOND_ADDRESS] = "another address of the interface is used",
    [INTERFACE_OVER_LIMIT] = "the limit of 16 interfaces is reached",
    [INTERFACE_WITHOUT_HCA] = "none of the HCAs in NCCL_IB_HCA is on it",
  };
  return texts[verdict];
}

const char *interface_wish_text(const struct interface_wishes *wishes,
                                char text[INTERFACE_WISH_TEXT_MAX]) {
  const char *names = wishes->ifname ? wishes->ifname : "";
  bool is_odd = strpbrk(names, " \t\r\n\"'*?[]") != NULL;
  snprintf(text, INTERFACE_WISH_TEXT_MAX, "NCCL_SOCKET_IFNAME=\"%.128s\"%s", names,
           is_odd ? ", where a name is the beginning of an interface's, without quotes, blanks and "
                    "wildcards"
                  : "");
  return plain_text(text);
}

int interface_list(struct interface out[INTERFACE_MAX]) {
  struct ifaddrs *first;
  if (getifaddrs(&first)) {
    return -errno;
  }
  int count = 0;
  for (const struct ifaddrs *i = first; i && count < INTERFACE_MAX; i = i->ifa_next) {
    if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6)) {
      continue;
    }
    struct interface *to = &out[count++];
    *to = (struct interface){ .flags = i->ifa_flags };
    snprintf(to->name, sizeof(to->name), "%s", i->ifa_name);
    to->address.ss_family = i->ifa_addr->sa_family;
    memcpy(&to->address, i->ifa_addr, tcp_address_bytes(&to->address));
    if (i->ifa_netmask) {
      memcpy(&to->netmask, i->ifa_netmask, tcp_address_bytes(&to->address));
    }
  }
  freeifaddrs(first);
  return count;
}

/* ---- searches ---- */

static bool is_ipv6_loopback(const struct interface *interface) {
  return interface->address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&interface->address)->sin6_addr);
}

static bool has_chosen_before(const struct interface *list, size_t index) {
  for (size_t i = 0; i < index; i++) {
    if (list[i].verdict == INTERFACE_CHOSEN && !strcmp(list[i].name, list[index].name)) {
      return true;
    }
  }
  return false;
}

/* Chooses by name. What is left out by name gets `unnamed`. Returns how many are chosen. */
static size_t select_by_name(struct interface *list, size_t count, int family, const char *names,
                             enum interface_verdict unnamed) {
  struct name_list wanted;
  name_list_parse(&wanted, "NCCL_SOCKET_IFNAME", names, false);
  size_t chosen = 0;
  for (size_t i = 0; i < count; i++) {
    struct interface *it = &list[i];
    if (!(it->flags & IFF_RUNNING)) {
      it->verdict = INTERFACE_NOT_RUNNING;
    } else if (family != AF_UNSPEC && it->address.ss_family != family) {
      it->verdict = INTERFACE_OTHER_FAMILY;
    } else if (is_ipv6_loopback(it)) {
      it->verdict = INTERFACE_LOOPBACK_ADDRESS;
    } else if (!name_list_has(&wanted, it->name, NAME_LIST_ANY_PORT)) {
      it->verdict = unnamed;
    } else if (has_chosen_before(list, i)) {
      it->verdict = INTERFACE_SECOND_ADDRESS;
    } else if (chosen == INTERFACE_CHOSEN_MAX) {
      it->verdict = INTERFACE_OVER_LIMIT;
    } else {
      it->verdict = INTERFACE_CHOSEN;
      chosen++;
    }
  }
  return chosen;
}

/* "10.0.0.1:port", "host:port" or "[fe80::1%eth0]:port", as NCCL_COMM_ID has it. */
static int parse_comm_id(const char *text, struct sockaddr_storage *address) {
  char host[NI_MAXHOST];
  bool is_bracketed = *text == '[';
  snprintf(host, sizeof(host), "%s", text + is_bracketed);
  host[strcspn(host, is_bracketed ? "]" : ":")] = '\0';

  struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct addrinfo *found;
  int rc = getaddrinfo(host, NULL, &hints, &found);
  if (rc) {
    LOG_WARN("NCCL_COMM_ID=%s: cannot resolve %s (%s)", text, host, gai_strerror(rc));
    return -EINVAL;
  }
  *address = (struct sockaddr_storage){ 0 };
  memcpy(address, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return 0;
}

static bool is_in_subnet(const struct interface *interface, const struct sockaddr_storage *remote) {
  if (interface->address.ss_family != remote->ss_family || interface->netmask.ss_family == 0) {
    return false;
  }
  unsigned bytes;
  const uint8_t *mask = tcp_address_ip(&interface->netmask, &bytes);
  const uint8_t *local = tcp_address_ip(&interface->address, &bytes);
  const uint8_t *other = tcp_address_ip(remote, &bytes);
  for (unsigned i = 0; i < bytes; i++) {
    if ((local[i] ^ other[i]) & mask[i]) {
      return false;
    }
  }
  /* All links have the same link-local subnet. */
  return remote->ss_family != AF_INET6 ||
         ((const struct sockaddr_in6 *)&interface->address)->sin6_scope_id ==
             ((const struct sockaddr_in6 *)remote)->sin6_scope_id;
}

/* The first address in the subnet of NCCL_COMM_ID, alone. */
static size_t select_by_subnet(struct interface *list, size_t count, const char *comm_id) {
  struct sockaddr_storage remote;
  if (parse_comm_id(comm_id, &remote)) {
    return 0;
  }
  size_t chosen = 0;
  for (size_t i = 0; i < count; i++) {
    bool is_first = chosen == 0 && is_in_subnet(&list[i], &remote);
    list[i].verdict = is_first ? INTERFACE_CHOSEN : INTERFACE_LESS_PREFERRED;
    chosen += is_first;
  }
  return chosen;
}

size_t interface_select(struct interface *list, size_t count,
                        const struct interface_wishes *wishes) {
  int family = name_list_family("NCCL_SOCKET_FAMILY", wishes->family);
  /* One character is no name: NCCL takes it for unset. */
  if (wishes->ifname && strlen(wishes->ifname) > 1) {
    return select_by_name(list, count, family, wishes->ifname, INTERFACE_NOT_NAMED);
  }
  size_t chosen = select_by_name(list, count, family, "ib", INTERFACE_LESS_PREFERRED);
  if (chosen == 0 && wishes->comm_id && strlen(wishes->comm_id) > 1) {
    chosen = select_by_subnet(list, count, wishes->comm_id);
  }
  static const char *const fallbacks[] = { "^docker,lo,virbr", "docker", "lo", "virbr" };
  for (size_t i = 0; i < sizeof(fallbacks) / sizeof(fallbacks[0]) && chosen == 0; i++) {
    chosen = select_by_name(list, count, family, fallbacks[i], INTERFACE_LESS_PREFERRED);
  }
  return chosen;
}
