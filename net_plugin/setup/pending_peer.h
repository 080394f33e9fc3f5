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
#include "net_plugin/setup/talk.h"

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

/* ---- what becomes of a peer: acceptor.c ----
 *
 * Whether what the hello names exists, and, once the peer has proved that it may join, what it
 * gets: a new connection for a listener, a lane for a connection, or a refusal. Where it offers an
 * endpoint, the answer waits for one of this side. Blocks: where the peer connects an RDMA lane
 * anew, as the fini of the old one (lane.h); else never. */

/* A peer, and what both have said. */
struct accept_peer {
  struct talk talk;
  const struct nic *nic; /* where it arrived */
  struct sockaddr_storage from;
};

/* The hello is complete. 0: the challenge was sent, the proof comes next. Else close the socket:
 * -EPROTO, the hello is invalid; others, the peer got a refusal. */
int accept_hello(struct accept_peer *peer);
/* The proof is complete. -EINPROGRESS: an endpoint is being made for the peer; once that is over,
 * or takes too long, it gets its answer. Else the socket has been taken over: the reply was sent,
 * and the socket handed on, or closed. -EACCES: a stranger, who gets no answer. */
int accept_proof(struct accept_peer *peer);
/* The answer that has waited. Takes socket and endpoint over. */
void accept_answer(struct accept_peer *peer);
/* The peer runs another wire version: replies with ours, and warns of both. */
void accept_refuse_version(const struct accept_peer *peer, const struct handshake_prefix *theirs);

#endif
