/* SPDX-License-Identifier: Apache-2.0 */
/* peer_gate: accepts connections and hands over those whose caller proves that it knows the key
 * (peer_proof.h). Any number of others may come, stay silent or send anything: they cost at most
 * PEER_GATE_PENDING descriptors, each for at most PEER_GATE_PROOF_NS.
 * Owns: connections that are not proven yet; neither the listening socket nor the key, both of
 * which must outlive it.  Threads: one.  Blocks: peer_gate_next.  Fails: as it says. */
#ifndef COMMON_PEER_GATE_H
#define COMMON_PEER_GATE_H

#include "common/peer_proof.h"

struct peer_gate;

/* `server`: a listening socket, which is made not to block. NULL: out of memory. */
struct peer_gate *peer_gate_new(int server, const struct peer_key *key);
void peer_gate_free(struct peer_gate *gate); /* closes what is not proven yet */

/* The next connection that is proven, whose descriptor is then the caller's, with what its other
 * end said. 0; -ETIMEDOUT at `until_ns` (UINT64_MAX: never); negative errno if the listening socket
 * fails. */
int peer_gate_next(struct peer_gate *gate, uint64_t until_ns, int *fd,
                   uint8_t hello[PEER_HELLO_BYTES]);
/* How many were closed without a proof so far. */
uint64_t peer_gate_refused(const struct peer_gate *gate);

#endif
