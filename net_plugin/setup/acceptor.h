/* SPDX-License-Identifier: Apache-2.0 */
/* acceptor: the peers that have come to one port (listener.h), until each is let in or sent away:
 * what the hello names must exist, and the peer prove that it may join. Then it gets a new
 * connection of a listener, a lane of a connection, or a refusal. Those that wait are few, cheap
 * and short-lived, so that scanners and strangers cost nothing.
 *
 *   HELLO --hello--> PROOF --proof--> let in, or sent away
 *                             `-- an endpoint is made for it --> PROVED --it is, or not--> the same
 *   HELLO, PROOF --garbage, end, deadline, more peers than the port's share--> closed
 *   PROVED --the peer leaves, the port goes--> closed
 *
 * A peer has PENDING_PEER_NS for everything, however slowly it sends. Where a port has too many,
 * one goes of the network with the most (an IPv4 address, an IPv6 /64), there of the address with
 * the most: the oldest that has sent no hello, or the oldest. So one that floods evicts its own.
 *
 * Owns: the sockets of its peers, until acceptor_close_all.  Threads: holder of the engine lock.
 * Blocks: where the peer connects an RDMA lane anew, as the fini of the old one (lane.h); else
 * never.  Fails: without memory a peer is closed. */
#ifndef NET_PLUGIN_SETUP_ACCEPTOR_H
#define NET_PLUGIN_SETUP_ACCEPTOR_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/limits.h"

struct connection;

/* Who is meant by a first hello; listener.c makes them, and engines have them by id. */
struct listener {
  struct engine *engine;
  uint8_t id[TOKEN_BYTES], secret[AUTH_SECRET_BYTES];
  uint8_t handle_key[AUTH_KEY_BYTES]; /* made once, not for each stranger */
  /* Those of the handle and the others; none: the handle has all. */
  struct wire_address addresses[ADDRESSES_MAX];
  struct connection *pending[LISTENER_MAX_PENDING];
  unsigned pending_count;
  int error; /* what accept returns when nothing is pending */
  struct list_node node;
};

struct acceptor {
  struct engine *engine;
  struct nic nic;
  struct list waiting; /* peers: for hellos and proofs, the oldest first */
  unsigned count;      /* of these */
  struct list proved;  /* those that wait for their endpoint */
};

void acceptor_init(struct acceptor *acceptor, struct engine *engine, const struct nic *nic);
/* Somebody has come: takes the socket over. most: that may wait then. */
void acceptor_admit(struct acceptor *acceptor, int fd, const struct sockaddr_storage *from,
                    unsigned most);
/* Descriptors are missing: sends the oldest away that has come until then. False: there is none. */
bool acceptor_evict_oldest(struct acceptor *acceptor, uint64_t before_ns);
void acceptor_close_all(struct acceptor *acceptor);

#endif
