/* SPDX-License-Identifier: Apache-2.0 */
/* receiver: what set-up knows of a connection that was accepted. It never dials, so it asks where
 * the peer's process listens, while no lane is up.
 * Owns: an inquiry in progress.  Threads: holder of the engine lock.  Blocks: never.  Fails:
 * negative errno where stated. */
#ifndef NET_PLUGIN_SETUP_RECEIVER_H
#define NET_PLUGIN_SETUP_RECEIVER_H

#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/peering.h"

struct dial;

struct receiver {
  struct peering peering;
  uint8_t id[TOKEN_BYTES]; /* the connection's, in hellos */
  /* What the reply to its first hello lists, should that hello come once more. */
  struct wire_address addresses[ADDRESSES_MAX];
  struct sockaddr_storage listens; /* where the peer's process does; AF_UNSPEC: unknown */
  struct dial *inquiry;            /* NULL: none is in progress */
  struct engine_timer inquire;     /* the next one */
};

/* Of a hello from this address, which the listener's keys prove. */
int receiver_new(struct engine *engine, const struct hello *hello,
                 const struct sockaddr_storage *from, const struct auth_keys *keys,
                 const struct link_config *link, const char *nic, struct receiver **receiver);
/* That of the connection with this identity, or NULL. */
struct receiver *receiver_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]);
/* A hello that was accepted came from this address, and says where its process listens. Not where
 * the two addresses differ, which is told once: who translates addresses on the way would answer
 * for it. */
void receiver_note_listener(struct receiver *receiver, const struct hello *hello,
                            const struct sockaddr_storage *from);

#endif
