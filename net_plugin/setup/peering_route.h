/* SPDX-License-Identifier: Apache-2.0 */
/* peering_route: both ends of a connection's flows: our NICs, the peer's addresses, and the paths
 * between them. A plain value; peering.h fills it. */
#ifndef NET_PLUGIN_SETUP_PEERING_ROUTE_H
#define NET_PLUGIN_SETUP_PEERING_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/no_path.h"
#include "net_plugin/setup/paths.h"

struct peering_route {
  struct nic nics[NIC_MAX_FUSED];
  unsigned nic_count;
  struct handle remote;
  bool is_own[ADDRESSES_MAX]; /* the address is one of this host's */
  struct paths paths;         /* between them */
  uint32_t process;           /* of the peer, from its reply */
};

static inline enum no_path_address peering_route_kind(const struct peering_route *route,
                                                      unsigned address) {
  bool is_advertised = route->remote.advertised >> address & 1;
  return route->is_own[address] ? NO_PATH_OWN : is_advertised ? NO_PATH_ADVERTISED : NO_PATH_OF_NIC;
}

#endif
