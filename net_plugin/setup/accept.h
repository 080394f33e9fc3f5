/* SPDX-License-Identifier: Apache-2.0 */
/* accept: what becomes of a peer that has come to a port (port.h): whether what the hello names
 * exists, and, once the peer has proved that it may join, what it gets: a new connection for a
 * listener, a lane for a connection, or a refusal. Where it offers an endpoint, the answer waits
 * for one of this side.
 *
 * Owns: nothing.  Threads: holder of the engine lock.  Blocks: where the peer connects an RDMA lane
 * anew, as the fini of the old one (lane.h); else never.  Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_ACCEPT_H
#define NET_PLUGIN_SETUP_ACCEPT_H

#include <sys/socket.h>

#include "net_plugin/setup/talk.h"

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
