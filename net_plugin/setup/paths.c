/* SPDX-License-Identifier: Apache-2.0 */
/* See paths.h. */
#include "net_plugin/setup/paths.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "net_plugin/lane/tcp_socket.h"

/* What pairing depends on: which fit each other, and how many paths each has. */
struct pairing {
  const struct nic *nics;
  const struct sockaddr_storage *addresses;
  unsigned nic_count, address_count;
  bool is_any_family; /* none fits any */
  unsigned nic_paths[NIC_MAX_FUSED], address_paths[ADDRESSES_MAX];
};

static bool is_possible(const struct pairing *pairing, unsigned nic, unsigned address) {
  return pairing->is_any_family ||
         pairing->nics[nic].address.ss_family == pairing->addresses[address].ss_family;
}

/* The lower, the better: the subnet counts most, then an even load, then the order. */
static unsigned cost(const struct pairing *pairing, unsigned nic, unsigned address) {
  if (!is_possible(pairing, nic, address)) {
    return UINT_MAX;
  }
  bool is_near = tcp_address_is_near(&pairing->addresses[address], &pairing->nics[nic]);
  bool is_in_order = nic % pairing->address_count == address % pairing->nic_count;
  return (is_near ? 0 : 1000) + 10 * (pairing->nic_paths[nic] + pairing->address_paths[address]) +
         (is_in_order ? 0 : 1);
}

static void add(struct pairing *pairing, struct paths *paths, unsigned nic, unsigned address) {
  paths->list[paths->count++] = (struct path){ (uint8_t)nic, (uint8_t)address };
  pairing->nic_paths[nic]++;
  pairing->address_paths[address]++;
}

/* Gives each NIC its best address; then each address that was left out its best NIC. */
static void find_homes(struct pairing *pairing, struct paths *paths) {
  for (unsigned nic = 0; nic < pairing->nic_count; nic++) {
    unsigned best = 0;
    for (unsigned i = 1; i < pairing->address_count; i++) {
      best = cost(pairing, nic, i) < cost(pairing, nic, best) ? i : best;
    }
    if (is_possible(pairing, nic, best)) {
      add(pairing, paths, nic, best);
    }
  }
  for (unsigned address = 0; address < pairing->address_count; address++) {
    unsigned best = 0;
    for (unsigned i = 1; i < pairing->nic_count; i++) {
      best = cost(pairing, i, address) < cost(pairing, best, address) ? i : best;
    }
    if (pairing->address_paths[address] == 0 && is_possible(pairing, best, address)) {
      add(pairing, paths, best, address);
    }
  }
  paths->home_count = paths->count;
}

/* In their order otherwise. */
static void put_near_ones_first(const struct pairing *pairing, struct paths *paths) {
  struct path homes[NIC_MAX_FUSED * ADDRESSES_MAX];
  unsigned count = 0;
  for (int is_near = 1; is_near >= 0; is_near--) {
    for (unsigned i = 0; i < paths->home_count; i++) {
      struct path path = paths->list[i];
      if (tcp_address_is_near(&pairing->addresses[path.address], &pairing->nics[path.nic]) ==
          is_near) {
        homes[count++] = path;
      }
    }
  }
  memcpy(paths->list, homes, count * sizeof homes[0]);
}

static bool is_listed(const struct paths *paths, unsigned nic, unsigned address) {
  for (unsigned i = 0; i < paths->count; i++) {
    if (paths->list[i].nic == nic && paths->list[i].address == address) {
      return true;
    }
  }
  return false;
}

void paths_find(struct paths *paths, const struct nic *nics, unsigned nic_count,
                const struct sockaddr_storage *addresses, unsigned address_count) {
  struct pairing pairing = {
    .nics = nics, .addresses = addresses, .nic_count = nic_count, .address_count = address_count
  };
  *paths = (struct paths){ 0 };
  find_homes(&pairing, paths);
  if (paths->count == 0) {
    pairing.is_any_family = true;
    find_homes(&pairing, paths);
  }
  put_near_ones_first(&pairing, paths);
  for (unsigned nic = 0; nic < nic_count; nic++) {
    for (unsigned address = 0; address < address_count; address++) {
      if (is_possible(&pairing, nic, address) && !is_listed(paths, nic, address)) {
        add(&pairing, paths, nic, address);
      }
    }
  }
}

void paths_lead_with(struct paths *paths, struct path path) {
  for (unsigned i = 1; i < paths->home_count; i++) {
    if (paths->list[i].nic == path.nic && paths->list[i].address == path.address) {
      paths->list[i] = paths->list[0];
      paths->list[0] = path;
    }
  }
}

struct path paths_choose(const struct paths *paths, unsigned lane, unsigned turn) {
  return paths->list[(lane % paths->home_count + turn) % paths->count];
}
