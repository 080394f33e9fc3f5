/* SPDX-License-Identifier: Apache-2.0 */
/* See netlink.h. */
#include "net_plugin/lane/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/descriptor.h"

/* The kernel makes no longer answers for this room (netlink_dump in net/netlink/af_netlink.c), but
 * for a single entry that is longer, which is cut. */
union answer {
  struct nlmsghdr header;
  uint8_t bytes[16384];
};

struct netlink_request netlink_request_of(unsigned short type, unsigned char family) {
  size_t body = type == RTM_GETROUTE  ? sizeof(struct rtmsg)
                : type == RTM_GETLINK ? sizeof(struct ifinfomsg)
                                      : sizeof(struct ifaddrmsg);
  struct netlink_request request = {
    .header = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(body),
                .nlmsg_type = type,
                .nlmsg_flags = NLM_F_REQUEST },
  };
  request.body.route.rtm_family = family; /* the first byte of each */
  return request;
}

void netlink_add(struct netlink_request *request, unsigned short type, const void *data,
                 unsigned bytes) {
  size_t end = NLMSG_ALIGN(request->header.nlmsg_len);
  struct rtattr attribute = { .rta_len = (unsigned short)RTA_LENGTH(bytes), .rta_type = type };
  uint8_t *at = (uint8_t *)request + end;
  memcpy(at, &attribute, sizeof attribute);
  memcpy(at + RTA_LENGTH(0), data, bytes);
  request->header.nlmsg_len = (uint32_t)(end + RTA_SPACE(bytes));
}

/* Of the kernel's answer, or 0. */
static int error_of(const struct nlmsghdr *header) {
  if (header->nlmsg_type != NLMSG_ERROR) {
    return 0;
  }
  bool is_whole = header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr));
  int error = is_whole ? ((const struct nlmsgerr *)NLMSG_DATA(header))->error : 0;
  return error ? error : -EPROTO;
}

/* One message of the answer. True: it was the last. */
static bool read_answer(const union answer *answer, size_t bytes, netlink_visit_fn *visit,
                        void *argument, int *error) {
  for (const struct nlmsghdr *each = &answer->header; NLMSG_OK(each, bytes);
       each = NLMSG_NEXT(each, bytes)) {
    int refusal = error_of(each);
    *error = refusal ? refusal : each->nlmsg_flags & NLM_F_DUMP_INTR ? -EINTR : *error;
    bool is_entry = !refusal && each->nlmsg_type != NLMSG_DONE;
    if (!is_entry || !visit(each, argument) || !(each->nlmsg_flags & NLM_F_MULTI)) {
      return true;
    }
  }
  return false;
}

int netlink_ask(const struct netlink_request *request, netlink_visit_fn *visit, void *argument) {
  union answer answer;
  int fd = DESCRIPTOR(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  int error = fd < 0 || send(fd, request, request->header.nlmsg_len, 0) < 0 ? -errno : 0;
  bool is_over = error != 0;
  while (!is_over) {
    ssize_t got = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    is_over = got <= 0 || read_answer(&answer, (size_t)got, visit, argument, &error);
    error = got < 0 ? -errno : error;
  }
  if (fd >= 0) {
    descriptor_close(fd);
  }
  return error;
}

int netlink_dump(struct netlink_request *request, netlink_visit_fn *visit, void *argument) {
  request->header.nlmsg_flags |= NLM_F_DUMP;
  return netlink_ask(request, visit, argument);
}
