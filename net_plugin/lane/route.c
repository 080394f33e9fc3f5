/* SPDX-License-Identifier: Apache-2.0 */
/* See route.h. */
#include "net_plugin/lane/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "net_plugin/lane/tcp_socket.h"

struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  uint8_t attributes[3 * RTA_SPACE(sizeof(struct in6_addr))];
};

union answer {
  struct nlmsghdr header;
  uint8_t bytes[16384]; /* the kernel makes no longer ones for this room (netlink_dump) */
};

/* ---- asking ---- */

static void add(struct request *request, unsigned short type, const void *data, unsigned bytes) {
  size_t end = NLMSG_ALIGN(request->header.nlmsg_len);
  struct rtattr attribute = { .rta_len = (unsigned short)RTA_LENGTH(bytes), .rta_type = type };
  uint8_t *at = (uint8_t *)request + end;
  memcpy(at, &attribute, sizeof attribute);
  memcpy(at + RTA_LENGTH(0), data, bytes);
  request->header.nlmsg_len = (uint32_t)(end + RTA_SPACE(bytes));
}

static struct request request_of(int family, unsigned short flags) {
  return (struct request){
    .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                .nlmsg_type = RTM_GETROUTE,
                .nlmsg_flags = (unsigned short)(NLM_F_REQUEST | flags) },
    .route = { .rtm_family = (unsigned char)family },
  };
}

/* From: NULL: any of the host's. */
static void add_addresses(struct request *request, const struct sockaddr_storage *from,
                          const struct sockaddr_storage *to) {
  unsigned bytes;
  const void *target = tcp_address_ip(to, &bytes);
  request->route.rtm_dst_len = (unsigned char)(8 * bytes);
  add(request, RTA_DST, target, bytes);
  if (from) {
    const void *source = tcp_address_ip(from, &bytes);
    request->route.rtm_src_len = (unsigned char)(8 * bytes);
    add(request, RTA_SRC, source, bytes);
  }
}

/* A socket that has sent the request, or -1. */
static int send_request(const struct request *request) {
  int fd = DESCRIPTOR(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (fd >= 0 && send(fd, request, request->header.nlmsg_len, 0) < 0) {
    descriptor_close(fd);
    fd = -1;
  }
  return fd;
}

/* The bytes of the one answer, or -1. */
static ssize_t ask(const struct request *request, union answer *answer) {
  int fd = send_request(request);
  if (fd < 0) {
    return -1;
  }
  ssize_t got = recv(fd, answer, sizeof *answer, MSG_DONTWAIT);
  descriptor_close(fd);
  return got;
}

/* ---- reading ---- */

/* Whether it names this NIC as one of its next hops; *names_any: it names some. */
static bool names(const struct nlmsghdr *header, unsigned index, bool *names_any) {
  const struct rtmsg *route = NLMSG_DATA(header);
  size_t left = RTM_PAYLOAD(header);
  bool is_named = false;
  *names_any = false;
  for (const struct rtattr *each = RTM_RTA(route); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    if (each->rta_type == RTA_OIF && RTA_PAYLOAD(each) == sizeof(uint32_t)) {
      uint32_t number;
      memcpy(&number, RTA_DATA(each), sizeof number);
      is_named = is_named || number == index;
      *names_any = true;
    } else if (each->rta_type == RTA_MULTIPATH) {
      int hops = (int)RTA_PAYLOAD(each);
      const struct rtnexthop *hop = RTA_DATA(each);
      for (; hops >= (int)sizeof *hop && RTNH_OK(hop, hops); hop = RTNH_NEXT(hop)) {
        is_named = is_named || (unsigned)hop->rtnh_ifindex == index;
        *names_any = true;
        hops -= (int)RTNH_ALIGN(hop->rtnh_len);
      }
    }
  }
  return is_named;
}

/* The address that it leads to, in network order; NULL: all. */
static const uint8_t *destination_of(const struct nlmsghdr *header) {
  const struct rtmsg *route = NLMSG_DATA(header);
  size_t left = RTM_PAYLOAD(header);
  for (const struct rtattr *each = RTM_RTA(route); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    if (each->rta_type == RTA_DST) {
      return RTA_DATA(each);
    }
  }
  return NULL;
}

/* An error of the kernel's answer, or 0. */
static int error_of(const struct nlmsghdr *header) {
  bool is_error = header->nlmsg_type == NLMSG_ERROR &&
                  header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr));
  return is_error ? ((const struct nlmsgerr *)NLMSG_DATA(header))->error : 0;
}

/* A number above 255 has no room in the header. */
static uint32_t table_of(const struct nlmsghdr *header) {
  const struct rtmsg *route = NLMSG_DATA(header);
  size_t left = RTM_PAYLOAD(header);
  uint32_t table = route->rtm_table;
  for (const struct rtattr *each = RTM_RTA(route); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    if (each->rta_type == RTA_TABLE && RTA_PAYLOAD(each) == sizeof table) {
      memcpy(&table, RTA_DATA(each), sizeof table);
    }
  }
  return table;
}

static bool is_of_link(const struct sockaddr_storage *address) {
  unsigned bytes;
  const uint8_t *ip = tcp_address_ip(address, &bytes);
  return address->ss_family == AF_INET6 && ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

/* ---- one way ---- */

enum match_kind { MATCH_UNKNOWN, MATCH_NONE, MATCH_OWN, MATCH_OTHERS };

/* A route of the tables. */
struct match {
  enum match_kind kind;
  uint32_t table;
  unsigned bits; /* of its destination */
  bool is_named; /* the NIC is a next hop */
};

/* What the tables have for sockets that are bound to the NIC with this index (0: to none). */
static struct match find_match(uint32_t bound, unsigned index, const struct sockaddr_storage *from,
                               const struct sockaddr_storage *to) {
  union answer answer;
  struct match match = { .kind = MATCH_UNKNOWN };
  struct request request = request_of(to->ss_family, 0);
  /* The route of the tables, or none: not what is made up for a bound socket. */
  request.route.rtm_flags = RTM_F_FIB_MATCH;
  add_addresses(&request, from, to);
  if (bound) {
    add(&request, RTA_OIF, &bound, sizeof bound);
  }
  ssize_t got = ask(&request, &answer);
  if (got < 0 || !NLMSG_OK(&answer.header, (size_t)got)) {
    return match;
  }
  int error = error_of(&answer.header);
  if (error == -EHOSTUNREACH || error == -ENETUNREACH) {
    match.kind = MATCH_NONE;
  } else if (answer.header.nlmsg_type == RTM_NEWROUTE) {
    const struct rtmsg *route = NLMSG_DATA(&answer.header);
    bool names_any;
    match.kind = route->rtm_type == RTN_LOCAL ? MATCH_OWN : MATCH_OTHERS;
    match.table = table_of(&answer.header);
    match.bits = route->rtm_dst_len;
    match.is_named = names(&answer.header, index, &names_any);
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

bool route_is_own(const struct sockaddr_storage *address) {
  return find_match(0, 0, NULL, address).kind == MATCH_OWN;
}

bool route_is_through(unsigned index, const struct sockaddr_storage *from,
                      const struct sockaddr_storage *to) {
  union answer answer;
  struct request request = request_of(to->ss_family, 0);
  add_addresses(&request, from, to);
  ssize_t got = from->ss_family == to->ss_family ? ask(&request, &answer) : -1;
  bool names_any = false, is_named = false;
  if (got >= 0 && NLMSG_OK(&answer.header, (size_t)got) &&
      answer.header.nlmsg_type == RTM_NEWROUTE) {
    is_named = names(&answer.header, index, &names_any);
  }
  return is_named || !names_any;
}

/* ---- any way ---- */

/* To others: not one of the host's own addresses, nor the link's own network, which every NIC with
 * IPv6 has. */
static bool is_to_others(const struct nlmsghdr *header, const struct nic *nic) {
  const struct rtmsg *route = NLMSG_DATA(header);
  const uint8_t *to = destination_of(header);
  unsigned bytes;
  const uint8_t *own = tcp_address_ip(&nic->address, &bytes);
  if (route->rtm_type != RTN_UNICAST || route->rtm_table == RT_TABLE_LOCAL) {
    return false;
  }
  if (to && route->rtm_dst_len == 8 * bytes && memcmp(to, own, bytes) == 0) {
    return false;
  }
  bool is_link_only =
      to && route->rtm_family == AF_INET6 && to[0] == 0xfe && (to[1] & 0xc0) == 0x80;
  return !is_link_only || is_of_link(&nic->address);
}

enum verdict { FOUND, NONE, MORE };

static enum verdict judge(const union answer *answer, size_t bytes, const struct nic *nic) {
  for (const struct nlmsghdr *each = &answer->header; NLMSG_OK(each, bytes);
       each = NLMSG_NEXT(each, bytes)) {
    bool names_any;
    if (each->nlmsg_type == NLMSG_DONE) {
      return NONE;
    }
    if (each->nlmsg_type != RTM_NEWROUTE) {
      return FOUND; /* an error: not known */
    }
    if (names(each, nic->index, &names_any) && is_to_others(each, nic)) {
      return FOUND;
    }
  }
  return MORE;
}

bool route_exists_through(const struct nic *nic) {
  union answer answer;
  const struct request request = request_of(nic->address.ss_family, NLM_F_DUMP);
  int fd = nic->index ? send_request(&request) : -1;
  enum verdict verdict = fd < 0 ? FOUND : MORE;
  while (verdict == MORE) {
    ssize_t got = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    verdict = got <= 0 ? FOUND : judge(&answer, (size_t)got, nic);
  }
  if (fd >= 0) {
    descriptor_close(fd);
  }
  return verdict == FOUND;
}
