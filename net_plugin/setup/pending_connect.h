/* SPDX-License-Identifier: Apache-2.0 */
/* pending_connect: a connection that is being made for NCCL, between its first connect call and the
 * call that returns the connection. NCCL keeps its token in the handle and
 * passes it with each call. The token is random, and valid only with the listener's identity: the
 * bytes of a new handle come from the peer, and must not name another pending connect. An unknown
 * token starts a new one.
 *
 *   DIALLING --reply--> MADE --taken--> gone
 *   DIALLING --refused, unreachable--> WAITING --backoff--> DIALLING
 *   any --deadline, refusal with a proof--> FAILED --taken--> gone
 *   any --NCCL does not call any more--> gone
 *
 * Owns: its dial, and the connection until it is taken.  Threads: start and take: any, the engine
 * lock is taken inside; drop_all: holder of the engine lock.  Blocks: start, see endpoint_wait.
 * Fails: negative errno after a LOG_WARN that names the peer. */
#ifndef NET_PLUGIN_SETUP_PENDING_CONNECT_H
#define NET_PLUGIN_SETUP_PENDING_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/setup/peering.h"

int pending_connect_start(const struct peering_route *route, int dscp, unsigned share,
                          uint64_t *token);
/* *is_known false: there is none with this token. Else 0 with *connection NULL: not yet. */
int pending_connect_take(uint64_t token, const uint8_t listener[TOKEN_BYTES], bool *is_known,
                         struct connection **connection);
void pending_connect_drop_all(struct engine *engine);

#endif
