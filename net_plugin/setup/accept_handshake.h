/* SPDX-License-Identifier: Apache-2.0 */
/* accept_handshake: the listening side of a handshake: whether what the hello names exists, and,
 * once the peer has proved that it may join, what it gets: a new connection for a listener, a lane
 * for a connection, or a refusal. Where the peer offers an endpoint, the answer waits for one of
 * this side (accept_wait.h). Owns: nothing.  Threads: holder of the engine lock.  Blocks: where the
 * peer connects an RDMA lane anew, as the fini of the old one (lane.h); else never.
 * Fails: cannot; the peer then gets a refusal and is closed. */
#ifndef NET_PLUGIN_SETUP_ACCEPT_HANDSHAKE_H
#define NET_PLUGIN_SETUP_ACCEPT_HANDSHAKE_H

#include <sys/socket.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"

/* The hello is complete. 0: the challenge was sent, the proof comes next. Else close the socket:
 * -EPROTO, the hello is invalid; others, the peer got a refusal. */
int accept_handshake_hello(struct engine *engine, const struct nic *nic,
                           struct transcript *transcript, int fd);
/* A peer that has sent its proof. */
struct accept_peer {
  struct engine *engine;
  const struct nic *nic; /* where it arrived */
  struct list *waits;    /* of its port: accept_wait.h */
  int fd;
  struct sockaddr_storage from;
  struct transcript transcript;
  uint8_t proof[PROOF_BYTES];
};

/* Takes the socket over: sends the reply, perhaps later, and hands the socket on, or closes it.
 * -EACCES: a stranger, who gets no answer. */
int accept_handshake_proof(const struct accept_peer *peer);
/* The peer runs another wire version: replies with ours, and warns of both. */
void accept_handshake_refuse_version(const struct nic *nic, uint16_t wire_version,
                                     const char *version, int fd,
                                     const struct sockaddr_storage *from);

#endif
