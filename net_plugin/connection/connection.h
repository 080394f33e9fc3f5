/* SPDX-License-Identifier: Apache-2.0 */
/* connection: one NCCL connection on its engine: a link, its lanes, and the requests of NCCL's
 * progress thread.
 *
 * The progress thread fills request slots and counts them in `posted`; the engine takes them to the
 * link and counts finished ones in `completed`. Each field has one writer; release on the count,
 * acquire by the reader. Completion is in order, so a request is done when the count has passed it.
 *
 * Owns: link memory, lanes.  Threads: as marked.  Blocks: connection_progress sleeps up to 200 us
 * where nothing has moved for half a second (engine_idle_sleep); withdraw and detach
 * wait for the engine lock; whoever ends an RDMA lane, for its fini (lane.h); the others never.
 * Fails: connection_error. */
#ifndef NET_PLUGIN_ENGINE_CONNECTION_H
#define NET_PLUGIN_ENGINE_CONNECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/lane_path.h"
#include "net_plugin/link/link.h"

#define CONNECTION_NAME_BYTES 128
#define CONNECTION_PATH_TEXT 768

struct connection;

/* What NCCL holds as a request. */
struct request {
  struct connection *connection;
  uint64_t number; /* of the message, from 0 */
  void *data;
  const void *registration;         /* of the data by the user; NULL: none */
  const struct lane_memory *memory; /* that the data is in; NULL: none */
  size_t bytes;                     /* posted size; after completion the transferred size */
  bool is_in_use;                   /* progress thread only */
};

/* How set-up is called back; locked. */
struct connection_setup {
  /* Dial the lane with this epoch; then connection_lane_opened, connection_lane_failed or
   * connection_lane_refused. Sender only. */
  void (*open_lane)(struct connection *connection, unsigned lane, uint32_t epoch);
  /* The lane, which was open, is closed. has_left: by the peer's kernel (FIN); what resets flows
   * or drops packets between the hosts does not do that. */
  void (*lane_closed)(struct connection *connection, unsigned lane, bool has_left);
  /* In words: the state of our NICs, and what the last dial, or inquiry, ended with. */
  const char *(*path_text)(struct connection *connection, char text[CONNECTION_PATH_TEXT]);
  /* Forget everything about the connection: dials, keys. */
  void (*gone)(struct connection *connection);
};

struct connection_config {
  struct link_config link;
  const struct connection_setup *setup;
  void *setup_data;         /* set-up's own data about the connection */
  uint64_t stall_report_ns; /* a request that does not move is reported after so long; 0: never */
  char peer[CONNECTION_NAME_BYTES]; /* for messages: host, address, NIC */
  char nic[CONNECTION_NAME_BYTES];  /* our side, for messages */
};

/* ---- locked ---- */

int connection_new(struct engine *engine, const struct connection_config *config,
                   struct connection **connection);
/* The path is taken over in every case. */
void connection_lane_opened(struct connection *connection, unsigned lane, uint32_t epoch,
                            const struct lane_path *path);
/* Keys of a target, as the link was made; they stay. */
unsigned connection_remote_keys(const struct connection *connection);
/* Does the lane take compressed chunks? As the link was made, and while there was memory for them.
 * Receiver only. */
bool connection_takes_codec(const struct connection *connection, unsigned lane);
/* The peer does not, on this lane. Sender only. */
void connection_lane_is_raw(struct connection *connection, unsigned lane);
/* Which key of remote buffers is for this device. Receiver only. */
uint8_t connection_key_index(struct connection *connection, struct lane_domain domain);
/* How many of its lanes are open? */
unsigned connection_open_lanes(const struct connection *connection);
/* Its BYE came. */
bool connection_is_peer_closed(const struct connection *connection);
/* The lane is up and could be an RDMA lane, but is not. Sender only. */
bool connection_lane_is_flow(const struct connection *connection, unsigned lane);
/* A better path may be had: the lane reconnects. Sender only. */
void connection_lane_outdated(struct connection *connection, unsigned lane);
void connection_lane_failed(struct connection *connection, unsigned lane, uint32_t epoch);
/* One end has no descriptor for it: see link_lane_refused. */
void connection_lane_refused(struct connection *connection, unsigned lane, uint32_t epoch);
/* The peer no longer knows the connection, say: it ends with this negative errno. */
void connection_fail(struct connection *connection, int error);
/* It has failed, and is kept until NCCL has asked and closed it: nothing can join it any more. */
bool connection_has_failed(const struct connection *connection);
/* Another connection of this process has failed lately that the same thread of NCCL drives. NCCL
 * may never ask that one: all that it was to bring may have come. */
bool connection_has_failed_sibling(const struct connection *connection);
/* Before a lane of a new epoch is accepted: ends the old one. False: the connection has no such
 * lane, or had a later epoch of it. Receiver only. */
bool connection_lane_fenced(struct connection *connection, unsigned lane, uint32_t new_epoch);
/* Drops it at once: the lanes are not drained. */
void connection_destroy(struct connection *connection);
/* Walks the connections of an engine: NULL gives the first, NULL comes after the last. */
struct connection *connection_next(struct engine *engine, const struct connection *after);
void *connection_setup_data(const struct connection *connection);

/* ---- NCCL's progress thread ---- */

/* What is posted goes out at the latest when the connection was asked for progress twice since.
 * registration: what connection_withdraw takes back; NULL: nothing does. memory: covers the data,
 * for RDMA; NULL: none does. 0, or as connection_error; *request is NULL then, and if all slots are
 * in use. */
int connection_post(struct connection *connection, void *data, size_t bytes,
                    const void *registration, const struct lane_memory *memory,
                    struct request **request);
bool connection_is_done(const struct request *request);
/* Moves bytes unless it is done. *is_done: its slot is free, and it keeps its values until the next
 * post. Else 0, or as connection_error. */
int connection_test(struct request *request, bool *is_done);
/* 0, or the negative errno that ended the connection; said once in the log. */
int connection_error(struct connection *connection);
/* Moves bytes, those of this connection first. */
void connection_progress(struct connection *connection);
bool connection_is_sender(const struct connection *connection);

/* ---- any thread ---- */

/* The most lanes that it can have. */
unsigned connection_lane_count(const struct connection *connection);

/* ---- the user takes its memory back: any thread, but none posts meanwhile ---- */

/* The registration ends: after this returns no thread and no NIC reads or writes memory for a
 * request that was posted with it. Costs nothing if these are complete, whatever else is in flight.
 * If one is not, it never will be, nor can what was posted after it: the connection ends with
 * -ECANCELED. */
void connection_withdraw(struct connection *connection, const void *registration);
/* The user is done with it: no user memory is touched from the beginning of this call, what was
 * posted and not taken yet is dropped, and the pointer is invalid. Only messages that were copied
 * are still delivered. NULL is nothing: NCCL closes what connect or accept never gave, too
 * (proxyProgressAsync in src/proxy.cc marks what ended with an error as connected, for
 * sendProxyFree and recvProxyFree in src/transport/net.cc; v2.19.3, v2.22.3, v2.29.7, v2.30.7). */
void connection_detach(struct connection *connection);
/* The same for all that an engine has, under its lock, once NCCL is gone: it does not close what it
 * made while it aborted. */
void connection_detach_all(struct engine *engine);

#endif
