/* SPDX-License-Identifier: Apache-2.0 */
/* listener_registry: listeners as accept_handshake.c sees them.
 * Owns: nothing.  Threads: holder of the engine lock.  Blocks: never. */
#ifndef NET_PLUGIN_SETUP_LISTENER_REGISTRY_H
#define NET_PLUGIN_SETUP_LISTENER_REGISTRY_H

#include <stdint.h>

#include "net_plugin/setup/handshake.h"

struct connection;
struct engine;
struct listener;

struct listener *listener_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]);
/* AUTH_SECRET_BYTES, and AUTH_KEY_BYTES made of it: valid while it is registered. */
const uint8_t *listener_secret(const struct listener *listener);
const uint8_t *listener_handle_key(const struct listener *listener);
/* What the reply to a first hello lists: none if the handle has room for all. */
const struct address_list *listener_addresses(const struct listener *listener);
/* The listener keeps it until NCCL accepts it. */
void listener_connection_made(struct listener *listener, struct connection *connection);
/* The peer of this listener came and cannot be used: listener_accept returns the error. */
void listener_fail(struct listener *listener, int error);
/* For an engine that stops; connections are ended separately. */
void listener_drop_all(struct engine *engine);

#endif
