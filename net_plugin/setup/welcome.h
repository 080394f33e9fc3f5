/* SPDX-License-Identifier: Apache-2.0 */
/* welcome: decides about a guest: whether what its hello names exists, and, once it has proved that
 * it may, what becomes of it: a new connection for a listener, a lane for a connection, or neither.
 * Owns: nothing.  Threads: holder of the engine lock.  Blocks: never.
 * Fails: cannot; the guest then gets a refusal and is closed. */
#ifndef NET_PLUGIN_SETUP_WELCOME_H
#define NET_PLUGIN_SETUP_WELCOME_H

#include <sys/socket.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"

/* What a guest has said, and what it was asked. */
struct welcome_talk {
  uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
};

/* The hello is complete. 0: the challenge was made and sent, go on to the proof. Else close the
 * socket: -EPROTO, the hello is no good; others, it was told what is wrong. */
int welcome_hello(struct engine *engine, const struct nic *nic, struct welcome_talk *talk, int fd);
/* The proof is complete. Sends the reply and hands the socket on, or closes it. -EACCES: a
 * stranger, who gets no answer. */
int welcome_proof(struct engine *engine, const struct nic *nic, const struct welcome_talk *talk,
                  int fd, const struct sockaddr_storage *from);
/* The guest runs another wire version: tells it ours, and the user both. */
void welcome_other_version(const struct nic *nic, uint16_t wire_version, const char *version,
                           int fd, const struct sockaddr_storage *from);

#endif
