/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_lane_state: the inside of an RDMA lane, for the files rdma_lane*.c only.
 * Owns: the struct.  Threads: the lane's.  Blocks: as lane.h.  Fails: negative errno: broken.
 *
 *   rdma_lane.c       what arrives; its life
 *   rdma_lane_send.c  what it sends */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_LANE_STATE_H
#define NET_PLUGIN_LANE_RDMA_RDMA_LANE_STATE_H

#include "net_plugin/lane/lane.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_qp.h"

#define RDMA_PREFIX_BYTES 8
#define RDMA_IS_SEND (1ull << 32) /* in a work request's id, above its number */
enum rdma_source {
  RDMA_SOURCE_QUEUE,  /* completions */
  RDMA_SOURCE_SOCKET, /* the peer is gone */
  RDMA_SOURCE_EVENTS, /* of the device */
  RDMA_SOURCE_LOST,   /* the device is */
  RDMA_SOURCE_STEP,   /* a worker has taken a step of the connecting */
  RDMA_SOURCE_CM,     /* librdmacm: how the connecting goes on, and that it has ended */
  RDMA_SOURCES
};

struct rdma_lane {
  struct lane lane;
  int socket;
  struct rdma_qp *qp;
  bool is_joining; /* a worker connects the queue pair */
  bool is_closing, is_closed, is_shut;
  bool has_heard; /* the peer is there */
  /* Completions that were polled and not handled yet, or what ibv_poll_cq failed with. */
  struct ibv_wc news[RDMA_NEWS_MOST];
  int news_count;
  uint64_t moved_ns;   /* the last completion */
  uint64_t checked_ns; /* when the epoll set was last checked */

  /* Sends, by number from 0; modulo 2^32. */
  uint32_t sent, done, signalled; /* posted; completed, all below; the last that will complete */
  uint32_t peer_freed;            /* slots that the peer posted again */
  struct link_frame frame;        /* being written */
  uint32_t put;                   /* of its payload */
  bool has_header_put;

  uint32_t freed, announced; /* receive slots posted again; what the peer knows of it */
  struct frame_in arriving;
  uint64_t bytes_written, bytes_read;
};

int rdma_lane_write(struct lane *lane, const struct link_frame *frame);
int rdma_lane_resume(struct lane *lane);
/* After completions: what can be sent now, is. Closing: ends the socket when all has arrived. */
int rdma_lane_continue(struct rdma_lane *rdma);
/* A send without bytes. */
int rdma_lane_send_credit(struct rdma_lane *rdma);
/* Can it write? */
void rdma_lane_update(struct rdma_lane *rdma);
/* Broke while closing: nothing is to be waited for. Always 0. */
int rdma_lane_give_up(struct rdma_lane *rdma);

#endif
