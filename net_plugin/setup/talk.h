/* SPDX-License-Identifier: Apache-2.0 */
/* talk: one end of a handshake in progress, dialled or accepted: its socket, the message that is
 * arriving, and the endpoint (endpoint.h) that the handshake waits for.
 * Owns: socket and endpoint, until whoever ends it hands them on.  Threads: holder of the engine
 * lock.  Blocks: never.  Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_TALK_H
#define NET_PLUGIN_SETUP_TALK_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/setup/handshake.h"

struct talk {
  struct engine_source source;          /* first: what engines call has this address */
  struct engine_source endpoint_source; /* while the endpoint is waited for */
  struct engine_timer timer;
  struct engine *engine;
  int fd;                    /* -1: none */
  struct endpoint *endpoint; /* NULL: none */
  size_t got;                /* of the message */
  uint8_t message[HANDSHAKE_MAX_BYTES];
  struct transcript transcript;
};

/* 0: a whole message is in `message`. -EAGAIN: not yet. Reads no byte beyond it: what follows the
 * last one belongs to the lane. Looks at the prefix before the rest is there: who is none of ours
 * sends less, and another wire version may have messages of another size.
 * -EPROTO and -EPROTONOSUPPORT as handshake_prefix_check, *prefix for the latter; else the path is
 * broken, -ECONNRESET where the peer has closed it. */
int talk_receive(struct talk *talk, enum handshake_kind *kind, struct handshake_prefix *prefix);
/* Calls endpoint_source when the endpoint has a result. 0, or there is no descriptor for it. */
int talk_watch_endpoint(struct talk *talk);
void talk_drop_endpoint(struct talk *talk);
/* Nothing is called any more. Before the socket is closed: then its number may belong to another
 * thread's descriptor, which is not ours to unwatch. */
void talk_stop(struct talk *talk);
/* Stops, closes the socket and frees the endpoint. */
void talk_close(struct talk *talk);

#endif
