/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_lane.h. lane->fd is an epoll set of everything that can happen. A thread that waits for
 * a message polls the completion queue; only when nothing has completed for a while the set is
 * checked, and the queue armed, so that a message that is polled for costs no interrupt and no
 * system call. */
#include "net_plugin/lane/rdma/rdma_lane.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_stats.h"

#define RDMA_PREFIX_BYTES 8
#define RDMA_IS_SEND (1ull << 32) /* in a work request's id, above its number */
enum rdma_source {
  RDMA_SOURCE_QUEUE,    /* completions */
  RDMA_SOURCE_SOCKET,   /* the peer is gone */
  RDMA_SOURCE_EVENTS,   /* of the device */
  RDMA_SOURCE_LOST,     /* the device is */
  RDMA_SOURCE_ENDPOINT, /* it cannot be connected, or is not any more */
  RDMA_SOURCES
};

struct rdma_lane {
  struct lane lane;
  int socket;
  struct rdma_qp *qp;
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

/* ---- sending ---- */

/* Slots of the peer that are free. */
static uint32_t credit(const struct rdma_lane *rdma) {
  return RDMA_SLOTS - (rdma->sent - rdma->peer_freed);
}

static bool has_slot(const struct rdma_lane *rdma) {
  return rdma->sent - rdma->done < RDMA_SLOTS;
}

/* The peer's last slot is for a send that only carries credit. */
static bool can_send(const struct rdma_lane *rdma) {
  return has_slot(rdma) && credit(rdma) > 1 && rdma->has_heard;
}

/* Can it write? */
static void update(struct rdma_lane *rdma) {
  rdma->lane.can_write = !rdma->is_closing && !rdma->lane.has_unwritten && can_send(rdma);
}

/* The next send's flags and identity: one in RDMA_SIGNAL_EVERY completes visibly. */
static void sign(struct rdma_lane *rdma, struct ibv_send_wr *request, bool is_last) {
  request->wr_id = RDMA_IS_SEND | (uint32_t)(rdma->sent + 1);
  if (is_last || rdma->sent + 1 - rdma->signalled >= RDMA_SIGNAL_EVERY) {
    request->send_flags |= IBV_SEND_SIGNALED;
    rdma->signalled = rdma->sent + 1;
  }
}

/* One send: `copied` bytes of the stream lie behind the prefix in the slot, more follow from
 * `piece` if its length is not 0. write: goes before it, or NULL. */
static int post(struct rdma_lane *rdma, uint32_t copied, struct ibv_sge piece,
                struct ibv_send_wr *write, bool is_last) {
  struct rdma_qp *qp = rdma->qp;
  uint8_t *slot = rdma_qp_send_slot(qp, rdma->sent % RDMA_SLOTS);
  bytes_put_le32(slot, rdma->freed);
  bytes_put_le32(slot + 4, copied + piece.length);
  struct ibv_sge pieces[2] = {
    { .addr = (uintptr_t)slot, .length = RDMA_PREFIX_BYTES + copied, .lkey = qp->slots_mr->lkey },
    piece,
  };
  struct ibv_send_wr request = {
    .sg_list = pieces,
    .num_sge = piece.length ? 2 : 1,
    .opcode = IBV_WR_SEND,
  };
  sign(rdma, &request, is_last);
  if (piece.length == 0 && pieces[0].length <= qp->max_inline) {
    request.send_flags |= IBV_SEND_INLINE;
  }
  struct ibv_send_wr *bad, *first = &request;
  if (write) {
    write->next = &request;
    first = write;
  }
  int error = ibv_post_send(qp->qp, first, &bad);
  if (error) {
    return -error;
  }
  rdma->bytes_written += RDMA_PREFIX_BYTES + copied + piece.length;
  rdma->announced = rdma->freed;
  rdma->sent++;
  return 0;
}

/* A send without bytes. */
static int send_credit(struct rdma_lane *rdma) {
  return post(rdma, 0, (struct ibv_sge){ 0 }, NULL, rdma->is_closing);
}

/* ---- frames ---- */

/* Where the payload can be read by the device; false: nowhere. */
static bool find_payload(const struct rdma_lane *rdma, const uint8_t *data, uint32_t bytes,
                         struct ibv_sge *piece) {
  const struct link_frame *frame = &rdma->frame;
  const struct lane_memory *memory = frame->memory;
  uint32_t remote;
  *piece = (struct ibv_sge){ .addr = (uintptr_t)data, .length = bytes };
  return frame->header[1] == WIRE_DATA && memory && lane_memory_covers(memory, data, bytes) &&
         rdma_memory_keys(memory, rdma->qp->endpoint.domain.index, &piece->lkey, &remote);
}

/* The next send of the frame: its header if that is not posted yet, and as much as fits. */
static int send_part(struct rdma_lane *rdma) {
  struct link_frame *frame = &rdma->frame;
  uint8_t *slot = rdma_qp_send_slot(rdma->qp, rdma->sent % RDMA_SLOTS) + RDMA_PREFIX_BYTES;
  uint32_t room = rdma->qp->send_bytes - RDMA_PREFIX_BYTES, copied = 0;
  if (!rdma->has_header_put) {
    memcpy(slot, frame->header, WIRE_HEADER_BYTES);
    copied = WIRE_HEADER_BYTES;
    room -= WIRE_HEADER_BYTES;
  }
  uint32_t left = frame->length - rdma->put, part = left < room ? left : room;
  struct ibv_sge piece = { 0 };
  if (part > 0) {
    const uint8_t *data = (const uint8_t *)frame->payload + rdma->put;
    if (part <= RDMA_COPY_BYTES || !find_payload(rdma, data, part, &piece)) {
      memcpy(slot + copied, data, part);
      copied += part;
      piece = (struct ibv_sge){ 0 };
    }
  }
  int error = post(rdma, copied, piece, NULL, false);
  if (!error) {
    rdma->has_header_put = true;
    rdma->put += part;
  }
  return error;
}

static int send_parts(struct rdma_lane *rdma) {
  bool is_whole = false;
  while (!is_whole && can_send(rdma)) {
    int error = send_part(rdma);
    if (error) {
      return error;
    }
    is_whole = rdma->put == rdma->frame.length;
  }
  rdma->lane.has_unwritten = !is_whole;
  return 0;
}

/* Can the payload be written to the target? False: it must be sent. */
static bool can_place(const struct rdma_lane *rdma, struct ibv_sge *piece, uint32_t *key) {
  const struct link_frame *frame = &rdma->frame;
  if (!frame->remote_buffer || frame->length <= LINK_PLACE_BYTES) {
    return false;
  }
  *key = frame->remote_buffer->keys[rdma->qp->peer_key];
  return *key != 0 && find_payload(rdma, frame->payload, frame->length, piece);
}

static int place(struct rdma_lane *rdma, struct ibv_sge piece, uint32_t key) {
  struct link_frame *frame = &rdma->frame;
  struct ibv_send_wr *bad, write = {
    .sg_list = &piece,
    .num_sge = 1,
    .opcode = IBV_WR_RDMA_WRITE,
    .wr.rdma = { .remote_addr = frame->remote_buffer->address + frame->offset, .rkey = key },
  };
  uint32_t immediate;
  int error;
  if (rdma->qp->device->has_immediate && wire_header_to_immediate(frame->header, &immediate)) {
    write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM; /* takes a receive of the peer's, as a send does */
    write.imm_data = htobe32(immediate);
    sign(rdma, &write, false);
    error = -ibv_post_send(rdma->qp->qp, &write, &bad);
    rdma->sent += error ? 0 : 1;
  } else {
    wire_header_place(frame->header);
    memcpy(rdma_qp_send_slot(rdma->qp, rdma->sent % RDMA_SLOTS) + RDMA_PREFIX_BYTES, frame->header,
           WIRE_HEADER_BYTES);
    error = post(rdma, WIRE_HEADER_BYTES, (struct ibv_sge){ 0 }, &write, false);
  }
  rdma->bytes_written += error ? 0 : frame->length;
  return error;
}

static int rdma_write(struct lane *lane, const struct link_frame *frame) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  struct ibv_sge piece;
  uint32_t key;
  rdma->frame = *frame;
  rdma->put = 0;
  rdma->has_header_put = false;
  int error = can_place(rdma, &piece, &key) ? place(rdma, piece, key) : send_parts(rdma);
  update(rdma);
  return error;
}

static int rdma_resume(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  int error = lane->has_unwritten ? send_parts(rdma) : 0;
  update(rdma);
  return error;
}

/* ---- after completions ---- */

/* All that was sent has arrived: the peer may hear that this side is done. The last sends may not
 * have asked for completions. */
static int end_socket(struct rdma_lane *rdma) {
  int error = 0;
  if (rdma->signalled != rdma->sent && has_slot(rdma) && credit(rdma) > 0) {
    error = send_credit(rdma);
  }
  if (!error && rdma->done == rdma->sent && !rdma->is_shut) {
    rdma->is_shut = true;
    shutdown(rdma->socket, SHUT_WR);
  }
  return error;
}

/* After completions: what can be sent now, is. Closing: ends the socket when all has arrived. */
static int go_on(struct rdma_lane *rdma) {
  if (rdma->is_closing) {
    return end_socket(rdma);
  }
  int error = rdma_resume(&rdma->lane);
  if (!error && rdma->freed - rdma->announced >= RDMA_SLOTS / 2 && has_slot(rdma) &&
      credit(rdma) > 0) {
    error = send_credit(rdma);
    update(rdma);
  }
  return error;
}

/* ---- reading ---- */

/* The peer sent a prefix and bytes of the stream. */
static int send_arrived(struct rdma_lane *rdma, const struct ibv_wc *done, uint64_t now_ns) {
  const uint8_t *bytes = rdma_qp_receive_slot(rdma->qp, (unsigned)done->wr_id);
  if (done->byte_len < RDMA_PREFIX_BYTES ||
      bytes_get_le32(bytes + 4) != done->byte_len - RDMA_PREFIX_BYTES) {
    return -EPROTO;
  }
  uint32_t freed = bytes_get_le32(bytes);
  if (freed - rdma->peer_freed > rdma->sent - rdma->peer_freed) {
    return -EPROTO; /* more than were sent */
  }
  rdma->peer_freed = freed;
  return rdma->is_closing ? 0
                          : frame_in_take(&rdma->lane, &rdma->arriving, bytes + RDMA_PREFIX_BYTES,
                                          done->byte_len - RDMA_PREFIX_BYTES, now_ns);
}

/* The peer wrote a message to its place. The immediate data stands for the frame's header. */
static int write_arrived(struct rdma_lane *rdma, const struct ibv_wc *done, uint64_t now_ns) {
  struct wire_header header;
  if (rdma->is_closing) {
    return 0;
  }
  if (rdma->arriving.in_payload || rdma->arriving.header_got > 0) {
    return -EPROTO;
  }
  int error = wire_header_from_immediate(be32toh(done->imm_data), done->byte_len,
                                         link_near(rdma->lane.link), &header);
  return error ? error : frame_in_begin(&rdma->lane, &rdma->arriving, &header, now_ns);
}

static int completed(struct rdma_lane *rdma, const struct ibv_wc *done, size_t *got,
                     uint64_t now_ns) {
  if (done->status != IBV_WC_SUCCESS) {
    return rdma_qp_failed(rdma->qp, done, rdma->is_closing);
  }
  if ((done->wr_id & RDMA_IS_SEND) != 0) {
    rdma->done = (uint32_t)done->wr_id; /* and all before it */
    return 0;
  }
  *got += done->byte_len;
  rdma->has_heard = true;
  bool is_write = done->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  rdma->bytes_read += is_write ? 0 : done->byte_len;
  int error = is_write ? write_arrived(rdma, done, now_ns) : send_arrived(rdma, done, now_ns);
  if (!error) {
    error = rdma_qp_post_receive(rdma->qp, (unsigned)done->wr_id);
    rdma->freed++;
  }
  return error;
}

static bool rdma_has_news(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  if (rdma->news_count == 0) {
    rdma->news_count = ibv_poll_cq(rdma->qp->cq, RDMA_NEWS_MOST, rdma->news);
  }
  return rdma->news_count != 0;
}

/* All completions there are, within limits; *count: how many. */
static int drain(struct rdma_lane *rdma, size_t *got, unsigned *count, uint64_t now_ns) {
  int n = 0, error = 0;
  do {
    if (!rdma_has_news(&rdma->lane)) {
      return 0;
    }
    n = rdma->news_count;
    rdma->news_count = 0;
    if (n < 0) {
      return -EIO;
    }
    for (int i = 0; i < n && !error; i++) {
      error = completed(rdma, &rdma->news[i], got, now_ns);
    }
    *count += (unsigned)n;
  } while (!error && n == RDMA_NEWS_MOST && *got < LANE_READ_BYTES);
  return error;
}

/* The peer writes nothing there, but it ends the socket when it ends the lane. */
static int check_socket(struct rdma_lane *rdma) {
  uint8_t byte;
  ssize_t n = recv(rdma->socket, &byte, 1, MSG_DONTWAIT);
  if (n < 0) {
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
  }
  if (n > 0) {
    return -EPROTO;
  }
  if (rdma->is_closing) {
    rdma->is_closed = true;
    return 0;
  }
  return -EPIPE;
}

/* ---- what can happen ---- */

/* Checks the set, and arms the queue again if its event was consumed. */
static int check_sources(struct rdma_lane *rdma, size_t *got, unsigned *count, uint64_t now_ns) {
  struct epoll_event events[RDMA_SOURCES];
  int error = 0;
  int n = epoll_wait(rdma->lane.fd, events, RDMA_SOURCES, 0);
  rdma->checked_ns = now_ns;
  for (int i = 0; i < n && !error; i++) {
    switch (events[i].data.u32) {
    case RDMA_SOURCE_QUEUE:
      if (rdma_qp_take_event(rdma->qp)) {
        error = rdma_qp_arm(rdma->qp);
        error = error ? error : drain(rdma, got, count, now_ns);
      }
      break;
    case RDMA_SOURCE_SOCKET:
    case RDMA_SOURCE_ENDPOINT:
      /* What the peer sent before it left is in the queue already. */
      error = drain(rdma, got, count, now_ns);
      if (!error) {
        bool is_socket = events[i].data.u32 == RDMA_SOURCE_SOCKET;
        error = is_socket ? check_socket(rdma) : endpoint_result(&rdma->qp->endpoint);
      }
      break;
    case RDMA_SOURCE_EVENTS:
      rdma_device_take_events(rdma->qp->device);
      break;
    default: /* the device is lost: the caller looks */
      break;
    }
  }
  return error;
}

/* A reader that was called because the set is readable must check why. */
static bool is_check_due(const struct rdma_lane *rdma, uint64_t now_ns) {
  uint64_t since_ns = now_ns - rdma->checked_ns;
  bool has_checked = rdma->checked_ns > rdma->moved_ns;
  bool is_due = rdma->lane.is_polled ? since_ns >= RDMA_POLLED_CHECK_NS
                                     : !has_checked || since_ns >= RDMA_CHECK_NS;
  return is_due && now_ns - rdma->moved_ns >= RDMA_QUIET_NS;
}

static int rdma_read(struct lane *lane, uint64_t now_ns, size_t *got) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  unsigned count = 0;
  *got = 0;
  int error = drain(rdma, got, &count, now_ns);
  if (!error && count == 0 && is_check_due(rdma, now_ns)) {
    error = check_sources(rdma, got, &count, now_ns);
  }
  if (count > 0) {
    rdma->moved_ns = now_ns;
  }
  if (!error && atomic_load_explicit(&rdma->qp->device->is_lost, memory_order_relaxed)) {
    error = -ENODEV;
  }
  error = error ? error : go_on(rdma);
  if (error && rdma->is_closing) {
    rdma->is_closed = true; /* broke: nothing is to be waited for */
    return 0;
  }
  return error;
}

/* ---- life ---- */

/* Its last frame must arrive before the queue pair goes: see go_on. */
static void rdma_close(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  rdma->is_closing = true;
  lane->can_write = lane->has_unwritten = false;
  rdma->is_closed = go_on(rdma) != 0;
}

static bool rdma_is_closed(const struct lane *lane) {
  return ((const struct rdma_lane *)lane)->is_closed;
}

/* Of the socket only the addresses are of interest. */
static void rdma_stats(const struct lane *lane, struct lane_stats *stats) {
  const struct rdma_lane *rdma = (const struct rdma_lane *)lane;
  struct lane_stats socket;
  tcp_stats_read(rdma->socket, &socket);
  *stats = (struct lane_stats){ .bytes_written = rdma->bytes_written,
                                .bytes_read = rdma->bytes_read + rdma->arriving.placed_bytes,
                                .local = socket.local,
                                .remote = socket.remote };
}

/* The socket of the handshake is idle, so the kernel sends keepalives to the peer's host, and a
 * queue pair whose path is dead breaks by itself while something is in flight. */
static uint64_t rdma_answered(const struct lane *lane, uint64_t now_ns) {
  return tcp_stats_answered_ns(((const struct rdma_lane *)lane)->socket, now_ns);
}

static int rdma_fini(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  int error = endpoint_stop(&rdma->qp->endpoint);
  endpoint_free(&rdma->qp->endpoint);
  descriptor_close(rdma->socket);
  descriptor_close(lane->fd);
  free(rdma);
  return error;
}

static const struct lane_ops rdma_ops = {
  rdma_read,      rdma_has_news, rdma_write,         lane_never_moves, rdma_resume, rdma_close,
  rdma_is_closed, rdma_stats,    lane_is_unmeasured, rdma_answered,    rdma_fini,
};

int rdma_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                   struct endpoint *endpoint, bool is_dialler, struct lane **lane) {
  struct rdma_lane *rdma = calloc(1, sizeof(*rdma));
  int set = rdma ? DESCRIPTOR(epoll_create1(EPOLL_CLOEXEC)) : -1;
  if (set < 0) {
    free(rdma);
    return rdma ? -errno : -ENOMEM;
  }
  rdma->lane =
      (struct lane){ .ops = &rdma_ops, .link = link, .index = index, .epoch = epoch, .fd = set };
  rdma->socket = fd;
  rdma->qp = rdma_qp_of(endpoint);
  rdma->has_heard = is_dialler;
  const int descriptors[] = {
    [RDMA_SOURCE_QUEUE] = rdma->qp->channel->fd,
    [RDMA_SOURCE_SOCKET] = rdma->socket,
    [RDMA_SOURCE_EVENTS] = rdma->qp->device->events->async_fd,
    [RDMA_SOURCE_LOST] = rdma->qp->device->lost_fd,
    [RDMA_SOURCE_ENDPOINT] = endpoint_fd(endpoint),
  };
  int error = 0;
  for (unsigned i = 0; i < sizeof descriptors / sizeof *descriptors && !error; i++) {
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
    error = epoll_ctl(set, EPOLL_CTL_ADD, descriptors[i], &event) == 0 ? 0 : -errno;
  }
  if (!error && is_dialler) {
    error = send_credit(rdma);
  }
  if (error) {
    descriptor_close(set);
    free(rdma);
    return error;
  }
  update(rdma);
  *lane = &rdma->lane;
  return 0;
}
