/* SPDX-License-Identifier: Apache-2.0 */
/* See peering_route.h. */
#include "net_plugin/setup/peering_route.h"

#include <limits.h>
#include <string.h>

#include "net_plugin/lane/tcp_address.h"

/* What pairing depends on: which pairs are paths already, and how many each has. */
struct pairing {
  struct peering_route *route;
  bool is_any_family; /* none fits any */
  bool is_path[NIC_MAX_FUSED][ADDRESSES_MAX];
  unsigned nic_paths[NIC_MAX_FUSED], address_paths[ADDRESSES_MAX];
};

static bool is_possible(const struct pairing *pairing, unsigned nic, unsigned address) {
  const struct peering_route *route = pairing->route;
  bool fits = pairing->is_any_family ||
              route->nics[nic].address.ss_family == route->remote.addresses[address].ss_family;
  return fits && !pairing->is_path[nic][address];
}

/* The lower, the better: the subnet counts most, then an even load, then the order. */
static unsigned cost(const struct pairing *pairing, unsigned nic, unsigned address) {
  const struct peering_route *route = pairing->route;
  bool is_near = tcp_address_is_near(&route->remote.addresses[address], &route->nics[nic]);
  bool is_in_order = nic % route->remote.count == address % route->nic_count;
  return (is_near ? 0 : 1000) + 10 * (pairing->nic_paths[nic] + pairing->address_paths[address]) +
         (is_in_order ? 0 : 1);
}

static void add(struct pairing *pairing, unsigned nic, unsigned address) {
  struct peering_route *route = pairing->route;
  route->paths[route->path_count++] = (struct path){ (uint8_t)nic, (uint8_t)address };
  pairing->is_path[nic][address] = true;
  pairing->nic_paths[nic]++;
  pairing->address_paths[address]++;
}

/* The best path for a NIC, or to an address, that has none yet. False: there is none. */
static bool add_home(struct pairing *pairing, bool is_for_nic) {
  struct peering_route *route = pairing->route;
  unsigned best = UINT_MAX, best_nic = 0, best_address = 0;
  for (unsigned nic = 0; nic < route->nic_count; nic++) {
    for (unsigned address = 0; address < route->remote.count; address++) {
      bool is_needed = is_for_nic ? !pairing->nic_paths[nic] : !pairing->address_paths[address];
      if (is_needed && is_possible(pairing, nic, address) && cost(pairing, nic, address) < best) {
        best = cost(pairing, nic, address);
        best_nic = nic;
        best_address = address;
      }
    }
  }
  if (best < UINT_MAX) {
    add(pairing, best_nic, best_address);
  }
  return best < UINT_MAX;
}

void peering_route_find_paths(struct peering_route *route) {
  struct pairing pairing = { .route = route };
  route->path_count = 0;
  pairing.is_any_family = !add_home(&pairing, true);
  while (add_home(&pairing, true)) {
  }
  while (add_home(&pairing, false)) {
  }
  route->home_count = route->path_count;
  for (unsigned nic = 0; nic < route->nic_count; nic++) {
    for (unsigned address = 0; address < route->remote.count; address++) {
      if (is_possible(&pairing, nic, address)) {
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
