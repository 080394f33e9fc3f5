/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_lane.h. lane->fd is an epoll set of everything that can happen. A thread that waits for
 * a message polls the completion queue; only when nothing has completed for a while the set is
 * checked, and the queue armed, so that a message that is polled for costs no interrupt and no
 * system call.
 */
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
#include "net_plugin/lane/rdma/rdma_lane_state.h"
#include "net_plugin/lane/tcp_stats.h"

/* ---- reading ---- */

static int completion_failed(const struct rdma_lane *rdma, const struct ibv_wc *done) {
  bool is_late = done->status == IBV_WC_WR_FLUSH_ERR; /* something else broke the queue pair */
  LOG_AT(is_late || rdma->is_closing ? LOG_LEVEL_TRACE : LOG_LEVEL_INFO,
         "%s: queue pair %u failed: %s (vendor error %#x)", rdma->qp->device->port.name,
         rdma->qp->qp->qp_num, rdma->qp->api->wc_status_str(done->status), done->vendor_err);
  switch (done->status) {
  case IBV_WC_RETRY_EXC_ERR:
  case IBV_WC_RESP_TIMEOUT_ERR:
    return -ETIMEDOUT;
  case IBV_WC_REM_ACCESS_ERR:
  case IBV_WC_REM_INV_REQ_ERR:
  case IBV_WC_REM_OP_ERR:
    return -EREMOTEIO;
  case IBV_WC_WR_FLUSH_ERR:
    return -ECONNRESET;
  default:
    return -EIO;
  }
}

/* Bytes of the stream. */
static int stream_arrived(struct rdma_lane *rdma, const uint8_t *bytes, uint32_t length,
                          uint64_t now_ns) {
  struct frame_in *arriving = &rdma->arriving;
  if (rdma->is_closing || length == 0) {
    return 0;
  }
  if (!arriving->in_payload) {
    struct wire_header header;
    int error = length < WIRE_HEADER_BYTES ? -EPROTO : wire_header_decode(bytes, &header);
    error = error ? error : frame_in_begin(&rdma->lane, arriving, &header, now_ns);
    if (error) {
      return error;
    }
    rdma->bytes_read += header.length - wire_stream_bytes(&header);
    bytes += WIRE_HEADER_BYTES;
    length -= WIRE_HEADER_BYTES;
    if (length == 0) {
      return 0;
    }
  }
  if (!arriving->in_payload || length > arriving->payload_length - arriving->payload_got) {
    return -EPROTO;
  }
  uint8_t *to = frame_in_end(&rdma->lane, arriving);
  if (!to) {
    return -ESTALE;
  }
  bytes_copy_upwards(to, bytes, length);
  return frame_in_grow(&rdma->lane, arriving, length, now_ns);
}

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
  return stream_arrived(rdma, bytes + RDMA_PREFIX_BYTES, done->byte_len - RDMA_PREFIX_BYTES,
                        now_ns);
}

/* The peer wrote a message to its place. The immediate data stands for the frame's header. */
static int write_arrived(struct rdma_lane *rdma, const struct ibv_wc *done, uint64_t now_ns) {
  struct wire_header header;
  if (rdma->is_closing) {
    return 0;
  }
  if (rdma->arriving.in_payload) {
    return -EPROTO;
  }
  int error = wire_header_from_immediate(be32toh(done->imm_data), done->byte_len,
                                         link_live_message(rdma->lane.link), &header);
  return error ? error : frame_in_begin(&rdma->lane, &rdma->arriving, &header, now_ns);
}

static int receive_completed(struct rdma_lane *rdma, const struct ibv_wc *done, uint64_t now_ns) {
  rdma->has_heard = true;
  rdma->bytes_read += done->byte_len;
  int error = done->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? write_arrived(rdma, done, now_ns)
                                                        : send_arrived(rdma, done, now_ns);
  if (!error) {
    error = rdma_qp_post_receive(rdma->qp, (unsigned)done->wr_id);
    rdma->freed++;
  }
  return error;
}

static int completed(struct rdma_lane *rdma, const struct ibv_wc *done, size_t *got,
                     uint64_t now_ns) {
  if (done->status != IBV_WC_SUCCESS) {
    return completion_failed(rdma, done);
  }
  if ((done->wr_id & RDMA_IS_SEND) != 0) {
    rdma->done = (uint32_t)done->wr_id; /* and all before it */
    return 0;
  }
  *got += done->byte_len;
  return receive_completed(rdma, done, now_ns);
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

/* ---- librdmacm ---- */

static int watch(const struct rdma_lane *rdma, int operation, int fd, uint32_t events,
                 enum rdma_source source) {
  struct epoll_event event = { .events = events, .data.u32 = source };
  return epoll_ctl(rdma->lane.fd, operation, fd, &event) == 0 ? 0 : -errno;
}

/* While the lane is joining an event is taken by a worker, and comes once until that is done. */
static int watch_cm(const struct rdma_lane *rdma, int operation) {
  uint32_t events = (uint32_t)EPOLLIN | (rdma->is_joining ? (uint32_t)EPOLLONESHOT : 0);
  return watch(rdma, operation, rdma->qp->events->fd, events, RDMA_SOURCE_CM);
}

/* librdmacm has an event, or a worker has taken a step. */
static int go_on_joining(struct rdma_lane *rdma) {
  struct endpoint *endpoint = &rdma->qp->endpoint;
  int error = endpoint_advance(endpoint);
  bool is_busy = error == -EINPROGRESS && endpoint_fd(endpoint) != rdma->qp->events->fd;
  if (is_busy || (error && error != -EINPROGRESS)) {
    return is_busy ? 0 : error;
  }
  rdma->is_joining = error == -EINPROGRESS;
  return watch_cm(rdma, EPOLL_CTL_MOD);
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
      /* What it sent before it left is in the queue already. */
      error = drain(rdma, got, count, now_ns);
      error = error ? error : check_socket(rdma);
      break;
    case RDMA_SOURCE_CM:
    case RDMA_SOURCE_STEP:
      error = drain(rdma, got, count, now_ns); /* as above */
      if (!error && rdma->is_joining) {
        error = go_on_joining(rdma);
      } else if (!error) {
        error = rdma_qp_advance(rdma->qp); /* connected: it only ends */
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
  if (error) {
    return rdma->is_closing ? rdma_lane_give_up(rdma) : error;
  }
  return rdma_lane_continue(rdma);
}

/* ---- life ---- */

/* Its last frame must arrive before the queue pair goes: see rdma_lane_continue. */
static void rdma_close(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  rdma->is_closing = true;
  lane->can_write = lane->has_unwritten = false;
  if (rdma_lane_continue(rdma) != 0) {
    rdma_lane_give_up(rdma);
  }
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
                                .bytes_read = rdma->bytes_read,
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
  rdma_read,      rdma_has_news, rdma_lane_write,    lane_never_moves, rdma_lane_resume, rdma_close,
  rdma_is_closed, rdma_stats,    lane_is_unmeasured, rdma_answered,    rdma_fini,
};

static int watch_all(const struct rdma_lane *rdma) {
  const int descriptors[] = {
    [RDMA_SOURCE_QUEUE] = rdma->qp->channel->fd,
    [RDMA_SOURCE_SOCKET] = rdma->socket,
    [RDMA_SOURCE_EVENTS] = rdma->qp->device->events->async_fd,
    [RDMA_SOURCE_LOST] = rdma->qp->device->lost_fd,
    [RDMA_SOURCE_STEP] = rdma->qp->over_fd,
  };
  int error = 0;
  for (unsigned i = 0; i < sizeof descriptors / sizeof *descriptors && !error; i++) {
    error = watch(rdma, EPOLL_CTL_ADD, descriptors[i], EPOLLIN, (enum rdma_source)i);
  }
  return error ? error : watch_cm(rdma, EPOLL_CTL_ADD);
}

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
  rdma->is_joining = !rdma->qp->is_connected;
  int error = watch_all(rdma);
  if (!error && is_dialler) {
    error = rdma_lane_send_credit(rdma);
  }
  if (error) {
    descriptor_close(set);
    free(rdma);
    return error;
  }
  rdma_lane_update(rdma);
  *lane = &rdma->lane;
  return 0;
}
