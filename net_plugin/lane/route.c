/* SPDX-License-Identifier: Apache-2.0 */
/* See route.h. */
#include "net_plugin/lane/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "net_plugin/lane/netlink.h"
#include "net_plugin/lane/tcp_address.h"

/* ---- asking ---- */

/* From: NULL: any of the host's. */
static void add_addresses(struct netlink_request *request, const struct sockaddr_storage *from,
                          const struct sockaddr_storage *to) {
  unsigned bytes;
  const void *target = tcp_address_ip(to, &bytes);
  request->body.route.rtm_dst_len = (unsigned char)(8 * bytes);
  netlink_add(request, RTA_DST, target, bytes);
  if (from) {
    const void *source = tcp_address_ip(from, &bytes);
    request->body.route.rtm_src_len = (unsigned char)(8 * bytes);
    netlink_add(request, RTA_SRC, source, bytes);
  }
}

/* ---- reading ---- */

/* NULL: it has none of this type. */
static const struct rtattr *attribute(const struct nlmsghdr *header, unsigned type) {
  const struct rtmsg *route = NLMSG_DATA(header);
  size_t left = RTM_PAYLOAD(header);
  for (const struct rtattr *each = RTM_RTA(route); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    if (each->rta_type == type) {
      return each;
    }
  }
  return NULL;
}

/* What it holds. NULL: there is none, or one of another size. */
static const void *value(const struct nlmsghdr *header, unsigned type, size_t bytes) {
  const struct rtattr *found = attribute(header, type);
  return found && RTA_PAYLOAD(found) == bytes ? RTA_DATA(found) : NULL;
}

static uint32_t number_of(const void *bytes) {
  uint32_t number;
  memcpy(&number, bytes, sizeof number);
  return number;
}

/* Whether it names this NIC as one of its next hops; *names_any: it names some. */
static bool names(const struct nlmsghdr *header, unsigned index, bool *names_any) {
  const void *single = value(header, RTA_OIF, sizeof(uint32_t));
  const struct rtattr *several = attribute(header, RTA_MULTIPATH);
  bool is_named = single && number_of(single) == index;
  *names_any = single || several;
  int left = several ? (int)RTA_PAYLOAD(several) : 0;
  const struct rtnexthop *hop = several ? RTA_DATA(several) : NULL;
  for (; left >= (int)sizeof *hop && RTNH_OK(hop, left); hop = RTNH_NEXT(hop)) {
    is_named = is_named || (unsigned)hop->rtnh_ifindex == index;
    left -= (int)RTNH_ALIGN(hop->rtnh_len);
  }
  return is_named;
}

/* A number above 255 has no room in the header. */
static uint32_t table_of(const struct nlmsghdr *header) {
  const struct rtmsg *route = NLMSG_DATA(header);
  const void *table = value(header, RTA_TABLE, sizeof(uint32_t));
  return table ? number_of(table) : route->rtm_table;
}

static bool is_of_link(const struct sockaddr_storage *address) {
  return address->ss_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* ---- one way ---- */

enum match_kind { MATCH_UNKNOWN, MATCH_NONE, MATCH_OWN, MATCH_OTHERS };

/* A route of the tables. */
struct match {
  enum match_kind kind;
  unsigned index; /* of the NIC in question */
  uint32_t table;
  unsigned bits;  /* of its destination */
  bool is_named;  /* the NIC is a next hop */
  bool names_any; /* some NIC is */
};

static bool read_match(const struct nlmsghdr *entry, void *argument) {
  struct match *match = argument;
  const struct rtmsg *route = NLMSG_DATA(entry);
  if (entry->nlmsg_type == RTM_NEWROUTE) {
    match->kind = route->rtm_type == RTN_LOCAL ? MATCH_OWN : MATCH_OTHERS;
    match->table = table_of(entry);
    match->bits = route->rtm_dst_len;
    match->is_named = names(entry, match->index, &match->names_any);
  }
  return false;
}

/* What the tables have for sockets that are bound to the NIC with this index (0: to none). */
static struct match find_match(uint32_t bound, unsigned index, const struct sockaddr_storage *from,
                               const struct sockaddr_storage *to) {
  struct match match = { .kind = MATCH_UNKNOWN, .index = index };
  struct netlink_request request = netlink_request_of(RTM_GETROUTE, (unsigned char)to->ss_family);
  /* The route of the tables, or none: not what is made up for a bound socket. */
  request.body.route.rtm_flags = RTM_F_FIB_MATCH;
  add_addresses(&request, from, to);
  if (bound) {
    netlink_add(&request, RTA_OIF, &bound, sizeof bound);
  }
  int error = netlink_ask(&request, read_match, &match);
  if (error == -EHOSTUNREACH || error == -ENETUNREACH) {
    match.kind = MATCH_NONE;
  }
  return match;
}

enum route_way route_find(const struct nic *nic, const struct sockaddr_storage *peer) {
  if (!nic->index || nic->address.ss_family != peer->ss_family) {
    return ROUTE_UNKNOWN;
  }
  /* An address of the link is one of this NIC's link. */
  uint32_t bound = is_of_link(peer) ? nic->index : 0;
  struct match best = find_match(bound, nic->index, &nic->address, peer), ours = best;
  if (best.kind == MATCH_OWN) {
    return ROUTE_OWN;
  }
  if (!best.is_named) {
    ours = find_match(nic->index, nic->index, &nic->address, peer);
  }
  if (best.kind == MATCH_UNKNOWN || ours.kind == MATCH_UNKNOWN) {
    return ROUTE_UNKNOWN;
  }
  /* Where the tables differ, a rule for what leaves through the NIC has chosen. */
  bool is_outdone = best.kind == MATCH_OTHERS && best.table == ours.table && best.bits > ours.bits;
  /* IPv6 prefers the NIC that was asked for, no more. */
  bool is_through = ours.kind == MATCH_OTHERS && ours.is_named && !is_outdone;
  return is_through ? ROUTE_THROUGH : ROUTE_ELSEWHERE;
}

bool route_exists_to(const struct sockaddr_storage *address) {
  return find_match(0, 0, NULL, address).kind != MATCH_NONE;
}

bool route_is_own(const struct sockaddr_storage *address) {
  return find_match(0, 0, NULL, address).kind == MATCH_OWN;
}

bool route_is_through(unsigned index, const struct sockaddr_storage *from,
                      const struct sockaddr_storage *to) {
  struct match match = { .index = index };
  struct netlink_request request = netlink_request_of(RTM_GETROUTE, (unsigned char)to->ss_family);
  if (from->ss_family == to->ss_family) {
    add_addresses(&request, from, to);
    netlink_ask(&request, read_match, &match);
  }
  return match.is_named || !match.names_any;
}

/* ---- afar ---- */

/* RFC 5737, RFC 3849 */
#define FAR_IPV4 "203.0.113.1"
#define FAR_IPV6 "2001:db8::1"

struct sockaddr_storage route_far(int family) {
  struct sockaddr_storage far = { .ss_family = (sa_family_t)family };
  if (family == AF_INET6) {
    inet_pton(AF_INET6, FAR_IPV6, &((struct sockaddr_in6 *)&far)->sin6_addr);
  } else {
    inet_pton(AF_INET, FAR_IPV4, &((struct sockaddr_in *)&far)->sin_addr);
  }
  return far;
}

static bool read_source(const struct nlmsghdr *entry, void *argument) {
  struct sockaddr_storage *source = argument;
  bool is_route = entry->nlmsg_type == RTM_NEWROUTE;
  const void *in = is_route ? value(entry, RTA_PREFSRC, sizeof(struct in_addr)) : NULL;
  const void *in6 = is_route ? value(entry, RTA_PREFSRC, sizeof(struct in6_addr)) : NULL;
  if (in) {
    source->ss_family = AF_INET;
    memcpy(&((struct sockaddr_in *)source)->sin_addr, in, sizeof(struct in_addr));
  } else if (in6) {
    source->ss_family = AF_INET6;
    memcpy(&((struct sockaddr_in6 *)source)->sin6_addr, in6, sizeof(struct in6_addr));
  }
  return false;
}

bool route_source(unsigned index, int family, struct sockaddr_storage *source) {
  const struct sockaddr_storage far = route_far(family);
  uint32_t bound = index;
  struct match match = find_match(bound, index, NULL, &far);
  struct netlink_request request = netlink_request_of(RTM_GETROUTE, (unsigned char)family);
  *source = (struct sockaddr_storage){ 0 };
  add_addresses(&request, NULL, &far);
  netlink_add(&request, RTA_OIF, &bound, sizeof bound);
  return match.is_named && netlink_ask(&request, read_source, source) == 0 &&
         source->ss_family == family;
}

/* ---- any way ---- */

/* To others: not one of the host's own addresses, nor the link's own network, which every NIC with
 * IPv6 has. */
static bool is_to_others(const struct nlmsghdr *header, const struct nic *nic) {
  const struct rtmsg *route = NLMSG_DATA(header);
  unsigned bytes;
  const uint8_t *own = tcp_address_ip(&nic->address, &bytes);
  const void *to = value(header, RTA_DST, bytes); /* NULL: all */
  if (route->rtm_type != RTN_UNICAST || route->rtm_table == RT_TABLE_LOCAL) {
    return false;
  }
  if (to && route->rtm_dst_len == 8 * bytes && memcmp(to, own, bytes) == 0) {
    return false;
  }
  bool is_link_only =
      to && route->rtm_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)to);
  return !is_link_only || is_of_link(&nic->address);
}

struct way {
  const struct nic *nic;
  bool is_found;
};

static bool find_way(const struct nlmsghdr *entry, void *argument) {
  struct way *way = argument;
  bool names_any;
  way->is_found = entry->nlmsg_type == RTM_NEWROUTE && names(entry, way->nic->index, &names_any) &&
                  is_to_others(entry, way->nic);
  return !way->is_found;
}

bool route_exists_through(const struct nic *nic) {
  struct way way = { .nic = nic };
  struct netlink_request request =
      netlink_request_of(RTM_GETROUTE, (unsigned char)nic->address.ss_family);
  return !nic->index || netlink_dump(&request, find_way, &way) != 0 || way.is_found;
}
