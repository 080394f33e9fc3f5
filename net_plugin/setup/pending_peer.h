/* SPDX-License-Identifier: Apache-2.0 */
/* pending_peer: connections to a listening socket whose peers have not proved yet that they belong
 * to the job. They are few, cheap and short-lived, so that scanners and strangers cost nothing.
 *
 *   HELLO --hello--> PROOF --proof--> acceptor.c has it
 *                             `-- an endpoint is made for it --> PROVED --it is, or not--> the same
 *   HELLO, PROOF --garbage, end, deadline, more peers than the port's share--> closed
 *   PROVED --the peer leaves, the port goes--> closed
 *
 * A peer has PENDING_PEER_NS for everything, however slowly it sends. The process has one budget of
 * pending peers: PENDING_PEERS_MAX, or less where it may open few descriptors. Each port has an
 * equal share, so that engines need not ask each other. Where a port has too many, one goes of the
 * network with the most (an IPv4 address, an IPv6 /64), there of the address with the most: the
 * oldest that has sent no hello, or the oldest. So one that floods evicts its own. Where
 * descriptors are short, one goes that has had its turn (port.c).
 *
 * Owns: the sockets of its peers.  Threads: holder of the engine lock.  Blocks: never.  Fails:
 * cannot; without memory a peer is closed. */
#ifndef NET_PLUGIN_SETUP_PENDING_PEER_H
#define NET_PLUGIN_SETUP_PENDING_PEER_H

#include <sys/socket.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"

struct pending_peers {
  struct engine *engine;
  const struct nic *nic; /* where they arrive */
  struct list waiting;   /* for hellos and proofs, the oldest first */
  unsigned count;        /* of these */
  struct list proved;    /* those that wait for their endpoint */
};

void pending_peers_init(struct pending_peers *peers, struct engine *engine, const struct nic *nic);
/* Takes the socket over. */
void pending_peers_admit(struct pending_peers *peers, int fd, const struct sockaddr_storage *from);
/* Closes the oldest if it was accepted before this. */
bool pending_peers_evict(struct pending_peers *peers, uint64_t before_ns);
/* Before the port goes. */
void pending_peers_close_all(struct pending_peers *peers);

#endif
