/* SPDX-License-Identifier: Apache-2.0 */
/* dialer: the connecting side of a connection, from NCCL's first connect call until it is gone: how
 * its lanes are dialled, the first one like those that its link orders later. What lies between the
 * calls of connect, until there is a connection, is in connector.c.
 *
 * Owns: dials in progress.  Threads: holder of the engine lock.  Blocks: never.  Fails: a lane
 * that cannot connect is reported to the connection, which asks again later. */
#ifndef NET_PLUGIN_SETUP_DIALER_H
#define NET_PLUGIN_SETUP_DIALER_H

#include "net_plugin/setup/nic_shares.h"
#include "net_plugin/setup/peering.h"
#include "net_plugin/setup/peering_route.h"
#include "net_plugin/setup/settings.h"

struct lane_dial {
  struct dialer *dialer;
  unsigned lane;
  uint32_t epoch;
  unsigned failures;          /* since it was up */
  unsigned endpoint_failures; /* in a row */
  uint64_t endpoint_ns;       /* when its endpoint was connected; 0: it has none */
  uint64_t no_endpoint_ns;    /* none is tried before */
  struct path path;           /* that it was dialled on last */
  struct dial *dial;          /* NULL: none in progress */
};

struct dialer {
  struct peering peering;
  struct peering_route route;
  struct settings settings;
  struct hello hello;  /* each dial fills in the rest */
  uint64_t connecting; /* lanes that are to be up and are not, as far as is known here */
  struct nic_shares shares;
  struct engine_timer upgrade;
  unsigned vain_upgrades;  /* in a row */
  size_t bytes;            /* of the struct that this is the head of */
  struct lane_dial *dials; /* as many as hello.params.lanes, at most */
  /* While there is no connection: a dial of lane 0 has failed; reply as in dial.h. is_final: there
   * was a reply, but no connection could be made of it. */
  void (*first_failed)(struct dialer *dialer, int error, const struct reply *reply, bool is_final);
};

/* bytes: of the caller's struct, which begins with this one; the rest is zero. NULL: no memory. */
struct dialer *dialer_new(size_t bytes, unsigned lanes);
/* Without a connection, dials lane 0 with the next epoch: NICs and handle are in the route, hello,
 * keys and settings are complete. 0, or a negative errno: it could not even start. */
int dialer_dial_first(struct dialer *dialer, uint64_t deadline_ns);
/* While there is no connection. Whoever ends that ends the dialer, too. */
void dialer_free(struct dialer *dialer);

#endif
