/* SPDX-License-Identifier: Apache-2.0 */
/* netlink: questions to the kernel's tables of links, addresses and routes (rtnetlink(7)).
 * Owns: nothing.  Threads: any.  Blocks: never: the kernel answers within the call.  Fails:
 * negative errno; a container may not be allowed to ask. */
#ifndef NET_PLUGIN_LANE_NETLINK_H
#define NET_PLUGIN_LANE_NETLINK_H

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>

struct netlink_request {
  struct nlmsghdr header;
  union {
    struct rtmsg route;
    struct ifinfomsg link;
    struct ifaddrmsg address;
  } body;
  uint8_t attributes[3 * RTA_SPACE(16)]; /* three addresses */
};

/* A request without attributes. type: RTM_GETROUTE, RTM_GETLINK, RTM_GETADDR; family: AF_UNSPEC for
 * all. */
struct netlink_request netlink_request_of(unsigned short type, unsigned char family);
void netlink_add(struct netlink_request *request, unsigned short type, const void *data,
                 unsigned bytes);

/* One entry of the answer. False: no more is wanted. */
typedef bool netlink_visit_fn(const struct nlmsghdr *entry, void *argument);
/* Asks for the one entry that fits; a refusal of the kernel is its errno. */
int netlink_ask(const struct netlink_request *request, netlink_visit_fn *visit, void *argument);
/* Asks for all. -EINTR: all were visited that the kernel named, but they changed meanwhile, so that
 * some may be missing, or have come twice. */
int netlink_dump(struct netlink_request *request, netlink_visit_fn *visit, void *argument);

#endif
