/* SPDX-License-Identifier: Apache-2.0 */
/* peering_route: both ends of a connection's flows: our NICs, the peer's addresses, and the paths
 * between them.
 *
 * Every NIC and every address is on at least one home path, so that all of them carry lanes. A NIC
 * is paired with an address of its own subnet if there is one (rails that are not joined with each
 * other), else with the address of its own place in the order; of two that fit alike, with the one
 * that has fewer paths yet. All other pairs are detours, for when home paths do not work. The first
 * home path is within a subnet, if any is: no other lane can replace the first one.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; where no family fits, every pair is
 * a path, and routing decides. */
#ifndef NET_PLUGIN_SETUP_PEERING_ROUTE_H
#define NET_PLUGIN_SETUP_PEERING_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/handle.h"

struct path {
  uint8_t nic, address; /* indexes */
};

struct peering_route {
  struct nic nics[NIC_MAX_FUSED];
  unsigned nic_count;
  struct handle remote;
  /* What follows is made of these. */
  struct path paths[NIC_MAX_FUSED * ADDRESSES_MAX];
  unsigned home_count; /* the first ones of the paths */
  unsigned path_count;
};

/* From NICs and handle. */
void peering_route_find_paths(struct peering_route *route);
/* A reply listed all addresses of the peer: finds the paths again. The first lane has taken this
 * one of those that there were, and keeps it, if it is no detour. */
void peering_route_learn(struct peering_route *route, const struct reply *reply, struct path taken);

/* The lane's home path for turn 0; each further turn gives another path, until all had theirs. */
struct path peering_route_choose(const struct peering_route *route, unsigned lane, unsigned turn);

/* How firmly a dial is bound to its NIC. Less is for hosts whose routing or ARP does not let
 * packets through the NIC that they should use. */
enum peering_binding { PEERING_BIND_DEVICE, PEERING_BIND_ADDRESS, PEERING_BIND_NOTHING };
#define PEERING_BINDINGS 3u

/* The NIC of a path, prepared for a dial that is bound so. */
struct nic peering_route_nic(const struct peering_route *route, struct path path,
                             enum peering_binding binding);

#endif
