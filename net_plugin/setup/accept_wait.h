/* SPDX-License-Identifier: Apache-2.0 */
/* accept_wait: a peer that has proved that it may join, and that an endpoint is made and connected
 * for (endpoint.h). A worker asks the drivers; the peer waits, as this side waits for packets.
 *
 *   WAITING --the endpoint is ready, or cannot be, or takes too long--> done
 *           `--the peer leaves, the port goes--> closed
 *
 * Owns: socket and endpoint, until done has them.  Threads: holder of the engine lock.
 * Blocks: as accept_handshake.h.  Fails: without an endpoint the lane is a TCP flow. */
#ifndef NET_PLUGIN_SETUP_ACCEPT_WAIT_H
#define NET_PLUGIN_SETUP_ACCEPT_WAIT_H

#include <sys/socket.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/accept_handshake.h"

struct endpoint;

/* Has socket and endpoint now; endpoint: NULL, there is none. */
typedef void accept_wait_done_fn(const struct accept_peer *peer, struct endpoint *endpoint);

/* Takes both over. Negative errno: neither. */
int accept_wait_start(const struct accept_peer *peer, struct endpoint *endpoint,
                      accept_wait_done_fn *done);
/* Closes all. */
void accept_wait_end_all(struct list *waits);

#endif
