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
  uint8_t bytes[4096]; /* a route with its next hops */
};

static void add(struct request *request, unsigned short type, const void *data, unsigned bytes) {
  size_t end = NLMSG_ALIGN(request->header.nlmsg_len);
  struct rtattr attribute = { .rta_len = (unsigned short)RTA_LENGTH(bytes), .rta_type = type };
  uint8_t *at = (uint8_t *)request + end;
  memcpy(at, &attribute, sizeof attribute);
  memcpy(at + RTA_LENGTH(0), data, bytes);
  request->header.nlmsg_len = (uint32_t)(end + RTA_SPACE(bytes));
}

static void make_request(struct request *request, const struct nic *nic,
                         const struct sockaddr_storage *peer) {
  unsigned bytes;
  const void *to = tcp_address_ip(peer, &bytes), *from = tcp_address_ip(&nic->address, &bytes);
  uint32_t index = nic->index;
  *request = (struct request){
    .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                .nlmsg_type = RTM_GETROUTE,
                .nlmsg_flags = NLM_F_REQUEST },
    /* The route of the tables, or none: not what is made up for a bound socket. */
    .route = { .rtm_family = (unsigned char)peer->ss_family,
               .rtm_dst_len = (unsigned char)(8 * bytes),
               .rtm_src_len = (unsigned char)(8 * bytes),
               .rtm_flags = RTM_F_FIB_MATCH },
  };
  add(request, RTA_DST, to, bytes);
  add(request, RTA_SRC, from, bytes);
  add(request, RTA_OIF, &index, sizeof index);
}

/* With one next hop a route names its NIC; IPv6 prefers the one that was asked for, no more. */
static bool is_through(const struct nlmsghdr *header, const struct nic *nic) {
  const struct rtmsg *route = NLMSG_DATA(header);
  size_t left = RTM_PAYLOAD(header);
  for (const struct rtattr *each = RTM_RTA(route); RTA_OK(each, left);
       each = RTA_NEXT(each, left)) {
    uint32_t index;
    if (each->rta_type == RTA_OIF && RTA_PAYLOAD(each) == sizeof index) {
      memcpy(&index, RTA_DATA(each), sizeof index);
      return index == nic->index;
    }
  }
  return true;
}

static bool judge(const union answer *answer, size_t bytes, const struct nic *nic) {
  const struct nlmsghdr *header = &answer->header;
  if (!NLMSG_OK(header, bytes)) {
    return true;
  }
  if (header->nlmsg_type == NLMSG_ERROR &&
      header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
    int error = ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
    return error != -EHOSTUNREACH && error != -ENETUNREACH;
  }
  return header->nlmsg_type != RTM_NEWROUTE || is_through(header, nic);
}

bool route_leads_through(const struct nic *nic, const struct sockaddr_storage *peer) {
  struct request request;
  union answer answer;
  if (nic->address.ss_family != peer->ss_family) {
    return true;
  }
  int fd = DESCRIPTOR(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (fd < 0) {
    return true;
  }
  make_request(&request, nic, peer);
  ssize_t got = send(fd, &request, request.header.nlmsg_len, 0) < 0
                    ? -1
                    : recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
  descriptor_close(fd);
  return got < 0 || judge(&answer, (size_t)got, nic);
}
