/* SPDX-License-Identifier: Apache-2.0 */
/* route: what the kernel's routing tables say about a way through one NIC.
 *
 * A socket that is bound to a NIC leaves by it even where no route does: the kernel then takes the
 * peer for a neighbour and asks for it on that link (ip_route_output_key_hash_rcu in
 * net/ipv4/route.c), where nobody may answer.
 *
 * What the host says to itself leaves through no NIC: the kernel says that it came in through the
 * one that owns the address, but answers of a socket that is bound there go by the wire, and are
 * dropped as they come back from a source of this host (fib_validate_source).
 *
 * Owns: nothing.  Threads: any.  Blocks: never: the kernel answers within the call (rtnetlink(7);
 * RTM_GETROUTE takes no lock since Linux 4.15).  Fails: cannot: the kernel may not tell. */
#ifndef NET_PLUGIN_LANE_ROUTE_H
#define NET_PLUGIN_LANE_ROUTE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

enum route_way {
  ROUTE_UNKNOWN,  /* the kernel does not tell */
  ROUTE_OWN,      /* to this host itself, whichever NIC has the address */
  ROUTE_THROUGH,  /* through the NIC; another may have one that is as specific, and goes first */
  ROUTE_ELSEWHERE /* none through the NIC, or a more specific one in the same table */
};

/* How packets from the NIC's address get to `peer`, rules included. */
enum route_way route_find(const struct nic *nic, const struct sockaddr_storage *peer);
/* Whether the host has a way there, from any of its addresses; true: or not known. */
bool route_exists_to(const struct sockaddr_storage *address);
/* An address of this host; false: or not known. */
bool route_is_own(const struct sockaddr_storage *address);
/* Whether packets of a socket that is bound to no NIC leave through the one with this index; true:
 * or not known. */
bool route_is_through(unsigned index, const struct sockaddr_storage *from,
                      const struct sockaddr_storage *to);
/* The address that packets to afar, beyond the NIC's own subnets, get as their source where they
 * leave through the NIC with this index. False: no route leads there through it, or it is not
 * known. */
bool route_source(unsigned index, int family, struct sockaddr_storage *source);
/* An address that nobody has: whatever leads there is a default route. */
struct sockaddr_storage route_far(int family);
/* Whether any route of the NIC's address family leads through it to others, whatever the rules;
 * true: or not known. */
bool route_exists_through(const struct nic *nic);

#endif
