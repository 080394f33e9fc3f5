/* SPDX-License-Identifier: Apache-2.0 */
/* peer: what all connections to one process know of it together, whichever engine they live on.
 * Owns: one record for each process, while somebody has it.  Threads: any.
 * Blocks: peer_get and peer_put, for microseconds.  Fails: peer_get, without memory. */
#ifndef NET_PLUGIN_SETUP_PEER_H
#define NET_PLUGIN_SETUP_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct peer;

/* process: as in hellos and replies. NULL: no memory. */
struct peer *peer_get(uint32_t process);
void peer_put(struct peer *peer);

/* Its kernel has closed a flow (FIN) of which its process had said nothing. */
void peer_left(struct peer *peer, uint64_t now_ns);
/* It has proved itself on a new flow. */
void peer_came(struct peer *peer);
/* Its flows come from another address than it listens at. True the first time. */
bool peer_note_translated(struct peer *peer);
/* It has left, and not come again; since_ns: nobody has listened since then. */
bool peer_has_left(const struct peer *peer, uint64_t since_ns);

#endif
