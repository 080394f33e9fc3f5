/* SPDX-License-Identifier: Apache-2.0 */
/* peering: what set-up knows of a connection on either side: with whom, by which keys, how many of
 * the process's descriptors its flows take, and whether the peer's process is gone.
 *
 * A process that was killed sends nothing, but its host refuses every dial. Anyone on the path can
 * forge that, so it counts only while no lane is left and nothing else is heard.
 *
 * Owns: its share of the flow budget; one record for each process, while somebody has it.
 * Threads: holder of the engine lock; peer_*: any.  Blocks: never.
 * Fails: negative errno where stated. */
#ifndef NET_PLUGIN_SETUP_PEERING_H
#define NET_PLUGIN_SETUP_PEERING_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/connection/connection.h"
#include "net_plugin/setup/auth.h"

/* ---- what all connections to one process know of it together, whichever engine they live on ----
 */

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

/* ---- one connection ---- */

/* The head of a struct dialer and of a struct receiver; it is the connection's setup data. */
struct peering {
  struct engine *engine;
  struct connection *connection; /* NULL: not made yet */
  struct auth_keys keys;         /* what all its lanes are opened with */
  struct peer *process;          /* with the connection */
  uint64_t counted;              /* lanes that count among the process's flows */
  unsigned least_lanes;          /* that it gets however few descriptors there are */
  uint64_t refused_ns;           /* every dial, or inquiry, was refused since then; 0: not so */
  int last_error;                /* of a dial, or an inquiry; 0: it succeeded, or there was none */
  char peer[CONNECTION_NAME_BYTES]; /* "host-7 (10.0.0.7:4242, eth0)" */
};

/* Makes the connection of an agreed handshake with the process that these are of. nic: ours. Its
 * first lane is not open yet. */
int peering_connect(struct peering *peering, const struct link_config *link,
                    const struct connection_setup *setup, const struct conn_params *theirs,
                    const struct sockaddr_storage *their_address, const char *nic);
/* The connection is gone, or could not be made. */
void peering_end(struct peering *peering);

/* False: there is no descriptor for the lane. */
bool peering_take_lane(struct peering *peering, unsigned lane);
void peering_give_lane(struct peering *peering, unsigned lane);
/* As connection_setup's lane_closed. */
void peering_lane_closed(struct peering *peering, unsigned lane, bool has_left);

/* How a dial, or an inquiry, ended. True: the process is gone. */
bool peering_heard(struct peering *peering, bool is_refused);

/* "eth0 is up, the last try..." */
const char *peering_path_text(const struct peering *peering, const struct nic *nics, unsigned count,
                              char text[CONNECTION_PATH_TEXT]);

#endif
