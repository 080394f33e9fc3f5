/* SPDX-License-Identifier: Apache-2.0 */
/* See peering_route.h. */
#include "net_plugin/setup/peering_route.h"

#include <limits.h>
#include <string.h>

#include "net_plugin/lane/tcp_address.h"

/* What pairing depends on: which fit each other, and how many paths each has. */
struct pairing {
  struct peering_route *route;
  bool is_any_family; /* none fits any */
  unsigned nic_paths[NIC_MAX_FUSED], address_paths[ADDRESSES_MAX];
};

static bool is_possible(const struct pairing *pairing, unsigned nic, unsigned address) {
  const struct peering_route *route = pairing->route;
  return pairing->is_any_family ||
         route->nics[nic].address.ss_family == route->remote.addresses[address].ss_family;
}

static bool is_near(const struct peering_route *route, unsigned nic, unsigned address) {
  return tcp_address_is_near(&route->remote.addresses[address], &route->nics[nic]);
}

/* The lower, the better: the subnet counts most, then an even load, then the order. */
static unsigned cost(const struct pairing *pairing, unsigned nic, unsigned address) {
  const struct peering_route *route = pairing->route;
  if (!is_possible(pairing, nic, address)) {
    return UINT_MAX;
  }
  bool is_in_order = nic % route->remote.count == address % route->nic_count;
  return (is_near(route, nic, address) ? 0 : 1000) +
         10 * (pairing->nic_paths[nic] + pairing->address_paths[address]) + (is_in_order ? 0 : 1);
}

static void add(struct pairing *pairing, unsigned nic, unsigned address) {
  struct peering_route *route = pairing->route;
  route->paths[route->path_count++] = (struct path){ (uint8_t)nic, (uint8_t)address };
  pairing->nic_paths[nic]++;
  pairing->address_paths[address]++;
}

/* Gives each NIC its best address; then each address that was left out its best NIC. */
static void find_homes(struct pairing *pairing) {
  struct peering_route *route = pairing->route;
  for (unsigned nic = 0; nic < route->nic_count; nic++) {
    unsigned best = 0;
    for (unsigned i = 1; i < route->remote.count; i++) {
      best = cost(pairing, nic, i) < cost(pairing, nic, best) ? i : best;
    }
    if (is_possible(pairing, nic, best)) {
      add(pairing, nic, best);
    }
  }
  for (unsigned address = 0; address < route->remote.count; address++) {
    unsigned best = 0;
    for (unsigned i = 1; i < route->nic_count; i++) {
      best = cost(pairing, i, address) < cost(pairing, best, address) ? i : best;
    }
    if (pairing->address_paths[address] == 0 && is_possible(pairing, best, address)) {
      add(pairing, best, address);
    }
  }
  route->home_count = route->path_count;
}

/* In their order otherwise. */
static void put_near_ones_first(struct peering_route *route) {
  struct path homes[NIC_MAX_FUSED * ADDRESSES_MAX];
  unsigned count = 0;
  for (int wanted = 1; wanted >= 0; wanted--) {
    for (unsigned i = 0; i < route->home_count; i++) {
      struct path path = route->paths[i];
      if (is_near(route, path.nic, path.address) == wanted) {
        homes[count++] = path;
      }
    }
  }
  memcpy(route->paths, homes, count * sizeof homes[0]);
}

static bool is_listed(const struct peering_route *route, unsigned nic, unsigned address) {
  for (unsigned i = 0; i < route->path_count; i++) {
    if (route->paths[i].nic == nic && route->paths[i].address == address) {
      return true;
    }
  }
  return false;
}

void peering_route_find_paths(struct peering_route *route) {
  struct pairing pairing = { .route = route };
  route->path_count = 0;
  find_homes(&pairing);
  if (route->path_count == 0) {
    pairing.is_any_family = true;
    find_homes(&pairing);
  }
  put_near_ones_first(route);
  for (unsigned nic = 0; nic < route->nic_count; nic++) {
    for (unsigned address = 0; address < route->remote.count; address++) {
      if (is_possible(&pairing, nic, address) && !is_listed(route, nic, address)) {
        add(&pairing, nic, address);
      }
    }
  }
}

/* Makes it the home path of lane 0, if it is one. */
static void lead_with(struct peering_route *route, struct path path) {
  for (unsigned i = 1; i < route->home_count; i++) {
    if (route->paths[i].nic == path.nic && route->paths[i].address == path.address) {
      route->paths[i] = route->paths[0];
      route->paths[0] = path;
    }
  }
}

void peering_route_learn(struct peering_route *route, const struct reply *reply,
                         struct path taken) {
  struct handle *remote = &route->remote;
  struct sockaddr_storage address = remote->addresses[taken.address];
  unsigned count = addresses_of_reply(reply, remote->addresses);
  if (count == 0) {
    return;
  }
  remote->count = count;
  remote->advertised = 0; /* a reply does not say */
  peering_route_find_paths(route);
  for (unsigned i = 0; i < count; i++) {
    if (memcmp(&remote->addresses[i], &address, sizeof address) == 0) {
      lead_with(route, (struct path){ taken.nic, (uint8_t)i });
    }
  }
}

struct path peering_route_choose(const struct peering_route *route, unsigned lane, unsigned turn) {
  return route->paths[(lane % route->home_count + turn) % route->path_count];
}

struct nic peering_route_nic(const struct peering_route *route, struct path path,
                             enum peering_binding binding) {
  struct nic nic = route->nics[path.nic];
  nic.has_neighbours = nic.has_neighbours && binding == PEERING_BIND_DEVICE;
  if (binding == PEERING_BIND_NOTHING) {
    nic.address.ss_family = AF_UNSPEC; /* fits no peer, so nothing is bound */
  }
  return nic;
}
