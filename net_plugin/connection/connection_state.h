/* SPDX-License-Identifier: Apache-2.0 */
/* connection_state: the inside of a connection, for the files connection*.c only.
 * Owns: the structs.  Threads: holder of the engine lock, or as the fields say.  Blocks: where an
 * RDMA lane ends, as its fini (lane.h); else never.
 * Fails: as stated.
 *
 * Each calls only those below it:
 *   connection_requests.c  request slots: posted, coalesced, complete; what a waiting thread polls;
 *                          what ends with a connection that has failed
 *   connection_setup.c     what set-up tells of lanes, and asks
 *   connection_release.c   the user takes its memory back, or leaves
 *   connection.c           its life, and the pump that runs after facts
 *   connection_lanes.c     its lanes: served, broken, gone; publishes completions; memory for
 *                          compressed chunks
 *   connection_failure.c   why it failed, in one message
 *   connection_stall.c     why nothing moves, and its reports
 *   connection_snapshot.c  how it is doing: counts, what waits and for how long */
#ifndef NET_PLUGIN_CONNECTION_CONNECTION_STATE_H
#define NET_PLUGIN_CONNECTION_CONNECTION_STATE_H

#include "net_plugin/connection/connection.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/lane/lane.h"

#define CONNECTION_REQUESTS LINK_WINDOW

/* Where a lane is watched: one per lane of the link, whether it is open or not. */
struct lane_slot {
  struct engine_source source;
  struct lane *lane; /* NULL: none open */
  struct connection *connection;

  struct nic_totals *totals;         /* of the NIC that the lane uses */
  uint64_t added[NIC_COUNTER_COUNT]; /* to totals, so far */

  void
      *coding; /* the link's, for compressed chunks, whatever lane is open; NULL: none was needed */
  size_t coding_bytes;
  bool has_no_coding; /* it could not be had */
  struct {
    uint64_t bytes_written, bytes_read, retransmits;
  } past; /* of lanes that are gone */
};

/* Checks now and then whether anything moves, while there is a request. */
struct connection_watch {
  uint64_t next_ns;         /* the next check; 0: nothing was waiting */
  uint64_t still_ns;        /* of the oldest request, as seen last */
  uint64_t report_after_ns; /* without a move */
  uint64_t losses;          /* of the link's lanes, as seen when anything had moved last */
};

struct connection {
  struct engine *engine;
  struct link *link;
  size_t link_bytes;
  struct connection_config config; /* as given; setup_data: NULL once it is destroyed */
  unsigned lanes;                  /* as the link's */
  bool is_sender;

  /* guarded by the engine lock */
  struct lane_slot *slots; /* by lane */
  uint64_t opened;         /* lanes that are open */
  uint64_t rdma_lanes;     /* of these, those that are queue pairs */
  struct link_ready ready; /* of these: can_write; lane_has_taken */
  /* Receiver: the devices that remote buffers have keys for. */
  struct lane_domain keys[WIRE_REMOTE_KEYS];
  unsigned next_key;
  int hot_lane;         /* where the next bytes are likely to arrive; -1: anywhere */
  int last_lane;        /* that brought some; -1: none */
  unsigned other_lane;  /* polled last in turn, besides the hot lane */
  unsigned other_polls; /* of another TCP lane than the hot one */
  unsigned idle_polls;  /* in a row that found nothing */
  /* Of each lane: where the next frame began, the last time that one had come there. */
  uint8_t followers[WIRE_MAX_LANES];
  uint64_t taken;     /* posts given to the link */
  uint64_t published; /* completions made visible */
  bool is_released;   /* no user memory is touched any more: closed, or memory was taken back */
  bool is_detached;   /* NCCL has closed it */
  bool is_closing_lanes, is_running;
  struct engine_timer timer;
  struct engine_deferred arrived; /* lanes were served, connection_pump is due */
  uint64_t linger_ns;             /* released: what is not delivered by then is dropped */
  uint64_t last_word_ns;          /* failed: the peer is told until then; 0: not failed */
  struct link_health health;      /* a trouble that was reported; LINK_WELL: there is none */
  unsigned reports;               /* of it */
  uint64_t close_deadline_ns;     /* is_closing_lanes: what is open then is dropped */
  uint64_t number;                /* counts the process's connections, from 1 */
  uint64_t created_ns;
  uint64_t checksum_errors;
  struct nic_totals *totals;
  uint64_t added[NIC_COUNTER_COUNT]; /* to totals, so far */
  struct connection_watch watch;
  struct list_node node;

  /* shared */
  _Atomic uint64_t posted;    /* written by the progress thread */
  _Atomic uint64_t completed; /* written by the engine */
  atomic_int error;           /* negative errno, written by the engine */
  _Atomic uintptr_t driver;   /* the thread that posted last; 0: none did */
  struct engine_task task;

  /* progress thread */
  bool is_error_reported;
  bool has_untaken;   /* receiver: receives were posted since the last poll */
  unsigned peeks;     /* calls of progress_cq_peek, where there may be RDMA lanes */
  unsigned coalesced; /* sender: posts that were not submitted yet */
  size_t coalesced_bytes;
  uint64_t polled_posts; /* `posted` at the last poll with some of these */
  uint64_t submitted_ns; /* when all posts had been submitted */
  struct request requests[CONNECTION_REQUESTS];
};

static inline bool connection_is_rdma(const struct connection *connection, unsigned lane) {
  return (connection->rdma_lanes & lane_bit(lane)) != 0;
}

/* Lanes are open, and all are RDMA. */
static inline bool connection_is_all_rdma(const struct connection *connection) {
  return connection->opened && connection->opened == connection->rdma_lanes;
}

/* Lanes whose path did not take the last frame whole. */
static inline uint64_t connection_blocked(const struct connection *connection) {
  return connection->opened & ~connection->ready.taken;
}

/* ---- connection.c ---- */

/* Takes what was posted, carries out orders, writes, publishes. May destroy the connection. */
void connection_pump(struct connection *connection, uint64_t now_ns);
/* Opens and closes lanes as the link wants it. */
void connection_carry_out_orders(struct connection *connection, uint64_t now_ns);

/* ---- connection_failure.c ---- */

/* It has failed: see connection_has_failed_sibling. */
void connection_note_failure(const struct connection *connection);
/* The user gets this error for the first time: the log says why. root: what began it, for the peers
 * of this process. Takes the engine lock. */
void connection_report_failure(struct connection *connection, int error,
                               char root[WIRE_MAX_REASON_BYTES + 1]);
/* Reports a peer in trouble, when that is due, and that it answers again. */
void connection_watch_peer(struct connection *connection, uint64_t now_ns);
/* When a report is due, if nothing changes; LINK_NO_DEADLINE: none is. */
uint64_t connection_next_report_ns(const struct connection *connection);

/* ---- connection_lanes.c ---- */

/* What epoll calls for a lane_slot. */
void connection_lane_ready(struct engine_source *source, uint32_t epoll_events);
/* Makes visible to the user what has completed, or that the link has failed. */
void connection_publish(struct connection *connection);
/* Does what the events ask for, and defers what follows from it. */
void connection_serve_lane(struct connection *connection, unsigned index, uint32_t epoll_events,
                           uint64_t now_ns);
/* What the epoll set should report, and whether the lane takes a frame. */
void connection_update_lane(struct connection *connection, unsigned index);
/* All lanes are RDMA, and nothing has completed on any. Reads no clock, moves nothing. */
bool connection_is_quiet(const struct connection *connection);
/* Tells the link of all lanes on which the peer's host answers. */
void connection_look_for_host(struct connection *connection, uint64_t now_ns);
/* The path failed with this negative errno: the link is told. */
void connection_lane_broke(struct connection *connection, unsigned index, int error,
                           uint64_t now_ns);
/* The same where a write failed: what arrived before is read first. It may say why, and a kernel
 * that resets a flow keeps it readable. */
void connection_lane_takes_nothing(struct connection *connection, unsigned index, int error,
                                   uint64_t now_ns);
/* Frees what is open of the lane; the link is not told, but fails if a device may still write for
 * it. */
void connection_drop_lane(struct connection *connection, unsigned index);

/* link_coding_memory_fn; owner: the connection. */
void *connection_coding_memory(void *owner, unsigned lane, size_t bytes);
void connection_free_coding(struct connection *connection);

/* ---- connection_snapshot.c ---- */

/* The slot's lane has been opened, is about to be freed: for the counts. */
void connection_lane_starting(struct connection *connection, unsigned index);
void connection_lane_ending(struct connection *connection, unsigned index);
/* The last snapshot, for the log: it is about to be destroyed, and nothing of it is gone yet. */
void connection_report_end(struct connection *connection, uint64_t now_ns);

/* ---- connection_stall.c ---- */

/* A request waits that is not watched yet. */
void connection_watch_start(struct connection *connection, uint64_t now_ns);
/* At watch.next_ns. */
void connection_watch_stall(struct connection *connection, uint64_t now_ns);

#endif
