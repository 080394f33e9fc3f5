/* SPDX-License-Identifier: Apache-2.0 */
/* paths: which of our NICs talks to which of the peer's addresses.
 *
 * Every NIC and every address is on at least one home path, so that all of them carry lanes. A NIC
 * is paired with an address of its own subnet if there is one (rails that are not joined with each
 * other), else with the address of its own place in the order; of two that fit alike, with the one
 * that has fewer paths yet. All other pairs are detours, for when home paths do not work. Home
 * paths within a subnet come first: no other lane can replace the first one.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot; where no family fits, every pair is
 * a path, and routing decides. */
#ifndef NET_PLUGIN_SETUP_PATHS_H
#define NET_PLUGIN_SETUP_PATHS_H

#include <stdint.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/addresses.h"

struct path {
  uint8_t nic, address; /* indexes */
};

struct paths {
  unsigned home_count; /* the first ones of the list */
  unsigned count;
  struct path list[NIC_MAX_FUSED * ADDRESSES_MAX];
};

void paths_find(struct paths *paths, const struct nic *nics, unsigned nic_count,
                const struct sockaddr_storage *addresses, unsigned address_count);

/* Makes it the home path of lane 0, if it is one. */
void paths_lead_with(struct paths *paths, struct path path);

/* The lane's home path for turn 0; each further turn gives another path, until all had theirs. */
struct path paths_choose(const struct paths *paths, unsigned lane, unsigned turn);

#endif
