/* SPDX-License-Identifier: Apache-2.0 */
/* attempt: a connection being dialled for NCCL, between its first connect call and the one that
 * gets the connection. Known by a token, which travels in the handle, and by whom the handle is of.
 * The token is drawn by lot, as the handle's bytes came from the peer: it cannot name an attempt of
 * ours. One that is not known is simply a new attempt.
 *
 *   DIALLING --reply--> MADE --taken--> gone
 *   DIALLING --refused, unreachable--> WAITING --backoff--> DIALLING
 *   any --deadline, refusal with a proof--> FAILED --taken--> gone
 *   any --nobody asks any more--> gone
 *
 * Owns: its dial, and the connection until it is taken.  Threads: attempt_start and attempt_take
 * any, the engine lock is taken inside; attempt_drop_all: holder of the engine lock.  Blocks:
 * never. Fails: negative errno after a LOG_WARN that names the peer. */
#ifndef NET_PLUGIN_SETUP_ATTEMPT_H
#define NET_PLUGIN_SETUP_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/setup/peering.h"

int attempt_start(const struct peering_route *route, int dscp, uint64_t *token);
/* *is_known false: there is no such attempt. Else 0 with *connection NULL: not yet. */
int attempt_take(uint64_t token, const uint8_t listener[TOKEN_BYTES], bool *is_known,
                 struct connection **connection);
void attempt_drop_all(struct engine *engine);

#endif
