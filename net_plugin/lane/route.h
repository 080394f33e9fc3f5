/* SPDX-License-Identifier: Apache-2.0 */
/* route: what the kernel's routing tables say about a way through one NIC.
 *
 * A socket that is bound to a NIC leaves by it even where no route does: the kernel then takes the
 * peer for a neighbour and asks for it on that link (ip_route_output_key_hash_rcu in
 * net/ipv4/route.c), where nobody may answer.
 *
 * Owns: nothing.  Threads: any.  Blocks: never: the kernel answers within the call (rtnetlink(7);
 * RTM_GETROUTE takes no lock since Linux 4.15).  Fails: cannot; what the kernel does not tell
 * (before Linux 4.13, or where a container may not ask) counts as a way that is there. */
#ifndef NET_PLUGIN_LANE_ROUTE_H
#define NET_PLUGIN_LANE_ROUTE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

/* Whether packets from the NIC's address to `peer` have a route through the NIC, rules included. */
bool route_leads_through(const struct nic *nic, const struct sockaddr_storage *peer);
/* Whether such packets of a socket that is not bound to a NIC leave through the one with this
 * index.
 */
bool route_is_through(unsigned index, const struct sockaddr_storage *from,
                      const struct sockaddr_storage *to);
/* Whether any route of the NIC's address family leads through it to others, whatever the rules. */
bool route_exists_through(const struct nic *nic);

#endif
