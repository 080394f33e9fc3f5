/* SPDX-License-Identifier: Apache-2.0 */
/* peering: what set-up knows about a live connection: its identity and keys, and on the sender's
 * side how to dial its lanes. Owns: dials in progress.  Threads: holder of the engine lock. Blocks:
 * never. Fails: a lane that cannot connect is reported to the connection, which asks again
 * later. */
#ifndef NET_PLUGIN_SETUP_PEERING_H
#define NET_PLUGIN_SETUP_PEERING_H

#include <stdbool.h>

#include "net_plugin/connection/connection.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/peering_route.h"

/* Makes the connection of an agreed handshake; config: its names, and the link as negotiate.h fills
 * it. route: sender only, else NULL. Its first lane is not open yet. */
int peering_new(struct engine *engine, const struct connection_config *config,
                const struct hello *hello, const struct auth_keys *keys,
                const struct peering_route *route, struct connection **connection);

/* A dial has ended with this path for a lane. error: see nic_shares.h; the rest: see
 * connection_lane_opened. Sender only. */
void peering_lane_opened(struct connection *connection, unsigned lane, uint32_t epoch,
                         const struct lane_path *path, uint64_t received_before, int error);

/* The receiving connection with this identity, or NULL. */
struct connection *peering_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]);
/* The peer connected a lane: false if there is no descriptor for it. Receiver only. */
bool peering_take_lane(struct connection *connection, unsigned lane);
/* What the reply to its first hello lists, should that hello come once more. Receiver only. */
void peering_set_addresses(struct connection *connection,
                           const struct wire_address addresses[ADDRESSES_MAX]);
/* A hello that was accepted came from this address, and says where its process listens. Not where
 * the two addresses differ, which is told once: who translates addresses on the way would answer
 * for it. Receiver only. */
void peering_note_listener(struct connection *connection, const struct hello *hello,
                           const struct sockaddr_storage *from);
const struct wire_address *peering_addresses(const struct connection *connection);
/* What all its lanes are opened with. */
const struct auth_keys *peering_keys(const struct connection *connection);

/* "host-7 (10.0.0.7:4242, eth0)" */
void peering_name(char name[CONNECTION_NAME_BYTES], const char *host,
                  const struct sockaddr_storage *address, const char *nic);

#endif
