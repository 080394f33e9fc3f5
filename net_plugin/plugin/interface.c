/* SPDX-License-Identifier: Apache-2.0 */
/* A search marks each address with a verdict; the default choice is a chain of searches, the first
 * of which that finds anything decides. */
#include "net_plugin/plugin/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
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
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/host_nics.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/lane/tcp_address.h"

struct interface_wishes interface_read_wishes(void) {
  return (struct interface_wishes){
    .ifname = getenv("NCCL_SOCKET_IFNAME"),
    .family = getenv("NCCL_SOCKET_FAMILY"),
    .comm_id = getenv("NCCL_COMM_ID"),
  };
}

bool interface_is_of_link(const struct sockaddr_storage *address) {
  if (address->ss_family == AF_INET6) {
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
  }
  return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 16 == 0xa9fe;
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
    [INTERFACE_OF_THIS_HOST] = "is a bridge without a NIC, which leads to this host alone; name it "
                               "in NCCL_SOCKET_IFNAME to use it",
    [INTERFACE_OF_ITS_LINK] = "has an address of its link alone; name it in NCCL_SOCKET_IFNAME to "
                              "use it",
    [INTERFACE_SAME_HARDWARE] = "has the hardware address of another in use, and so its path; name "
                                "it in NCCL_SOCKET_IFNAME to use it",
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

/* ---- the list ---- */

static const struct host_link *find_link(const struct host_link *links, int count, unsigned index) {
  for (int i = 0; i < count; i++) {
    if (links[i].index == index) {
      return &links[i];
    }
  }
  return NULL;
}

static void fill(struct interface *to, const struct host_link *link,
                 const struct host_address *from) {
  *to = (struct interface){
    .nic = { .index = link->index,
             .address = from->address,
             .prefix_bits = from->prefix_bits,
             .has_neighbours = !(link->flags & (IFF_LOOPBACK | IFF_NOARP)) },
    .flags = link->flags,
    .address_flags = from->flags,
  };
  memcpy(to->nic.name, link->name, sizeof(to->nic.name));
  for (unsigned i = 0; i < link->hardware_bytes && !to->hardware_bytes; i++) {
    to->hardware_bytes = link->hardware[i] ? link->hardware_bytes : 0;
  }
  memcpy(to->hardware, link->hardware, to->hardware_bytes);
}

/* The kernel is asked where there is a choice; it lists the addresses of an interface and family
 * one after the other. */
static void find_route_sources(struct interface *list, int count) {
  struct sockaddr_storage source = { 0 };
  for (int i = 0; i < count; i++) {
    struct interface *it = &list[i];
    bool is_usable = (it->flags & IFF_RUNNING) && !(it->flags & IFF_LOOPBACK);
    bool is_first = i == 0 || list[i - 1].nic.index != it->nic.index ||
                    list[i - 1].nic.address.ss_family != it->nic.address.ss_family;
    if (is_first) {
      bool is_only = i + 1 == count || list[i + 1].nic.index != it->nic.index ||
                     list[i + 1].nic.address.ss_family != it->nic.address.ss_family;
      if (!is_usable || is_only ||
          !route_source(it->nic.index, it->nic.address.ss_family, &source)) {
        source = (struct sockaddr_storage){ 0 };
      }
    }
    it->is_route_source = tcp_address_is_same_ip(&it->nic.address, &source);
  }
}

int interface_list(struct interface **list) {
  struct host_link *links = NULL;
  struct host_address *addresses = NULL;
  int link_count = host_links(&links);
  int count = link_count < 0 ? link_count : host_addresses(&addresses), listed = 0;
  *list = count >= 0 ? calloc((size_t)count + 1, sizeof(**list)) : NULL;
  for (int i = 0; *list && i < count; i++) {
    const struct host_link *link = find_link(links, link_count, addresses[i].index);
    if (link) { /* else it has come between the two questions */
      fill(&(*list)[listed++], link, &addresses[i]);
    }
  }
  free(links);
  free(addresses);
  if (!*list) {
    return count < 0 ? count : -ENOMEM;
  }
  find_route_sources(*list, listed);
  return listed;
}

/* ---- searches ---- */

static bool is_ipv6_loopback(const struct interface *interface) {
  return interface->nic.address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&interface->nic.address)->sin6_addr);
}

/* How good an address of an interface is, of its family. Users and DHCP give several for a purpose:
 * a virtual one that moves to another host (/32, secondary), or one that is to go (deprecated).
 * What the routes send from is meant for traffic; for IPv6 that may be a temporary one, which the
 * kernel marks as it does secondary ones. */
static unsigned rank(const struct interface *it) {
  const unsigned flags = it->address_flags;
  bool is_v6 = it->nic.address.ss_family == AF_INET6, is_primary = !(flags & IFA_F_SECONDARY);
  const bool merits[] = {
    !(flags & IFA_F_DADFAILED), /* the weightiest first */
    !interface_is_of_link(&it->nic.address),
    !(flags & IFA_F_DEPRECATED),
    !is_v6 || is_primary,
    it->is_route_source,
    it->nic.prefix_bits < (is_v6 ? 128 : 32),
    is_primary,
    !(flags & IFA_F_TENTATIVE),
  };
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof(merits) / sizeof(merits[0]); i++) {
    sum = sum << 1 | merits[i];
  }
  return sum;
}

/* One address for each interface: of the family that comes first, as NCCL has it, the best. */
static void keep_best_addresses(struct interface *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t best = i;
    for (size_t j = i + 1; j < count && list[i].verdict == INTERFACE_CHOSEN; j++) {
      if (list[j].verdict != INTERFACE_CHOSEN || strcmp(list[j].nic.name, list[i].nic.name) != 0) {
        continue;
      }
      bool is_better = list[j].nic.address.ss_family == list[i].nic.address.ss_family &&
                       rank(&list[j]) > rank(&list[best]);
      list[is_better ? best : j].verdict = INTERFACE_SECOND_ADDRESS;
      best = is_better ? j : best;
    }
  }
}

static bool is_of_this_host(const struct interface *it) {
  return it->is_inner_bridge;
}

static bool is_of_its_link(const struct interface *it) {
  return interface_is_of_link(&it->nic.address);
}

/* Those of which this holds are left out, unless it holds of all. */
static void leave_out(struct interface *list, size_t count,
                      bool (*is_so)(const struct interface *it), enum interface_verdict verdict) {
  bool has_others = false;
  for (size_t i = 0; i < count; i++) {
    has_others |= list[i].verdict == INTERFACE_CHOSEN && !is_so(&list[i]);
  }
  for (size_t i = 0; i < count && has_others; i++) {
    if (list[i].verdict == INTERFACE_CHOSEN && is_so(&list[i])) {
      list[i].verdict = verdict;
    }
  }
}

/* A VLAN, a port of a bond, what a virtual machine has beside its VF: one path with two names. The
 * first is what NCCL's bootstrap takes. */
static void leave_out_same_hardware(struct interface *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t j = i + 1; j < count && list[i].verdict == INTERFACE_CHOSEN; j++) {
      if (list[j].verdict == INTERFACE_CHOSEN && list[i].hardware_bytes &&
          list[i].hardware_bytes == list[j].hardware_bytes &&
          memcmp(list[i].hardware, list[j].hardware, list[i].hardware_bytes) == 0) {
        list[j].verdict = INTERFACE_SAME_HARDWARE;
      }
    }
  }
}

static size_t keep_to_limit(struct interface *list, size_t count) {
  size_t chosen = 0;
  for (size_t i = 0; i < count; i++) {
    if (list[i].verdict == INTERFACE_CHOSEN && chosen == INTERFACE_CHOSEN_MAX) {
      list[i].verdict = INTERFACE_OVER_LIMIT;
    }
    chosen += list[i].verdict == INTERFACE_CHOSEN;
  }
  return chosen;
}

/* Chooses by name. What is left out by name gets `unnamed`: INTERFACE_NOT_NAMED if it is the user
 * who names. Returns how many are chosen. */
static size_t select_by_name(struct interface *list, size_t count, int family, const char *names,
                             enum interface_verdict unnamed) {
  struct name_list wanted;
  name_list_parse(&wanted, "NCCL_SOCKET_IFNAME", names, false);
  for (size_t i = 0; i < count; i++) {
    struct interface *it = &list[i];
    if (!(it->flags & IFF_RUNNING)) {
      it->verdict = INTERFACE_NOT_RUNNING;
    } else if (family != AF_UNSPEC && it->nic.address.ss_family != family) {
      it->verdict = INTERFACE_OTHER_FAMILY;
    } else if (is_ipv6_loopback(it)) {
      it->verdict = INTERFACE_LOOPBACK_ADDRESS;
    } else {
      bool is_wanted = name_list_has(&wanted, it->nic.name, NAME_LIST_ANY_PORT);
      it->verdict = is_wanted ? INTERFACE_CHOSEN : unnamed;
    }
  }
  keep_best_addresses(list, count);
  if (unnamed != INTERFACE_NOT_NAMED) {
    leave_out(list, count, is_of_this_host, INTERFACE_OF_THIS_HOST);
    leave_out(list, count, is_of_its_link, INTERFACE_OF_ITS_LINK);
    leave_out_same_hardware(list, count);
  }
  return keep_to_limit(list, count);
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
  /* All links have the same link-local subnet. */
  return tcp_address_is_near(remote, &interface->nic) &&
         (remote->ss_family != AF_INET6 ||
          ((const struct sockaddr_in6 *)&interface->nic.address)->sin6_scope_id ==
              ((const struct sockaddr_in6 *)remote)->sin6_scope_id);
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

/* ---- NCCL_IB_HCA ---- */

/* Whether naming could have made it a NIC, or did. */
static bool is_eligible(const struct interface *interface) {
  return interface->verdict == INTERFACE_CHOSEN || interface->verdict == INTERFACE_NOT_NAMED ||
         interface->verdict == INTERFACE_LESS_PREFERRED ||
         interface->verdict == INTERFACE_OF_ITS_LINK ||
         interface->verdict == INTERFACE_SAME_HARDWARE ||
         interface->verdict == INTERFACE_OVER_LIMIT;
}

/* The place of the address with which this interface was found; count: none. */
static size_t find_found(const struct interface *interfaces, const size_t *found,
                         unsigned found_count, size_t count, const char *name) {
  for (unsigned i = 0; i < found_count; i++) {
    if (!strcmp(interfaces[found[i]].nic.name, name)) {
      return found[i];
    }
  }
  return count;
}

void interface_choose_hcas(struct interface *interfaces, size_t count) {
  size_t found[INTERFACE_CHOSEN_MAX];
  unsigned found_count = 0;
  char text[ENDPOINT_TEXT_MAX];
  for (size_t i = 0; i < count && found_count < INTERFACE_CHOSEN_MAX; i++) {
    if (is_eligible(&interfaces[i]) &&
        find_found(interfaces, found, found_count, count, interfaces[i].nic.name) == count &&
        endpoint_find(&interfaces[i].nic, text)) {
      found[found_count++] = i;
    }
  }
  for (size_t i = 0; i < count && found_count > 0; i++) {
    struct interface *it = &interfaces[i];
    size_t at = find_found(interfaces, found, found_count, count, it->nic.name);
    if (at < count && is_eligible(it)) {
      it->verdict = at == i ? INTERFACE_CHOSEN : INTERFACE_SECOND_ADDRESS;
    } else if (it->verdict == INTERFACE_CHOSEN) {
      it->verdict = INTERFACE_WITHOUT_HCA;
    }
  }
}
