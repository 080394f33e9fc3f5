/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_lane.h. Writing: header and payload in one sendmsg; what the kernel does not take stays
 * as the lane's unwritten rest. Small frames are gathered, and go out together when the owner has
 * no more of them. Reading: a payload goes straight to where the link wants it, and
 * the same recvmsg fetches what follows into a small buffer, so that a bulk chunk costs one copy
 * and a small message one system call, or two where a thread polls for it. All progress of the
 * parser is in the struct: bytes may arrive in any portions. */
#include "net_plugin/lane/tcp/tcp_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"

struct tcp_lane {
  struct tcp_flow flow;

  uint8_t *gathered;                   /* TCP_GATHER_BYTES; NULL: there was no small frame yet */
  size_t gathered_start, gathered_end; /* of small frames, not written yet */
  bool has_frame;                      /* behind these: */
  struct link_frame frame;             /* being written */
  size_t written;                      /* of its header and payload */

  size_t peeked;  /* bytes that were taken, but are still to be read */
  bool was_empty; /* the last read found nothing */
  bool is_bulk;   /* the last frame that was written is large */
  uint8_t buffer[TCP_READ_BUFFER_BYTES];
};

static struct tcp_lane *tcp_lane(struct lane *lane) {
  return (struct tcp_lane *)lane;
}

/* ---- writing ---- */

/* What is left, in one system call. */
static ssize_t send_rest(struct tcp_lane *tcp) {
  struct link_frame *frame = &tcp->frame;
  struct iovec parts[3];
  struct msghdr message = { .msg_iov = parts };
  size_t gathered = tcp->gathered_end - tcp->gathered_start;
  if (gathered && !tcp->has_frame) {
    return send(tcp->flow.lane.fd, tcp->gathered + tcp->gathered_start, gathered,
                MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (gathered) {
    parts[message.msg_iovlen++] = (struct iovec){ tcp->gathered + tcp->gathered_start, gathered };
  }
  if (tcp->written < WIRE_HEADER_BYTES) {
    parts[message.msg_iovlen].iov_base = frame->header + tcp->written;
    parts[message.msg_iovlen++].iov_len = WIRE_HEADER_BYTES - tcp->written;
  }
  size_t sent = tcp->written > WIRE_HEADER_BYTES ? tcp->written - WIRE_HEADER_BYTES : 0;
  if (frame->length > sent) {
    parts[message.msg_iovlen].iov_base = (char *)(uintptr_t)frame->payload + sent;
    parts[message.msg_iovlen++].iov_len = frame->length - sent;
  }
  return sendmsg(tcp->flow.lane.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int tcp_resume(struct lane *lane) {
  struct tcp_lane *tcp = tcp_lane(lane);
  if (!lane->has_unwritten) {
    return 0;
  }
  ssize_t n = send_rest(tcp);
  if (n < 0 && errno != EAGAIN && errno != EINTR) {
    return -errno;
  }
  if (n > 0) {
    size_t bytes = (size_t)n, gathered = tcp->gathered_end - tcp->gathered_start;
    size_t of_gathered = bytes < gathered ? bytes : gathered;
    tcp->flow.bytes_written += bytes;
    tcp->gathered_start += of_gathered;
    if (tcp->gathered_start == tcp->gathered_end) {
      tcp->gathered_start = tcp->gathered_end = 0;
    }
    tcp->written += bytes - of_gathered;
    if (tcp->has_frame && tcp->written == WIRE_HEADER_BYTES + tcp->frame.length) {
      tcp->has_frame = false;
    }
  }
  lane->has_unwritten = tcp->has_frame || tcp->gathered_end > 0;
  lane->can_write = !lane->has_unwritten;
  lane->is_moving = n > 0 && lane->has_unwritten;
  return 0;
}

static int tcp_write(struct lane *lane, const struct link_frame *frame) {
  struct tcp_lane *tcp = tcp_lane(lane);
  /* Nothing follows from its being written but that its payload is needed no more: so not the last
   * word of a link. */
  size_t most = lane->has_followers ? TCP_FOLLOWED_BYTES : TCP_SMALL_BYTES;
  bool may_gather = frame->length > 0 && frame->length <= most &&
                    tcp->gathered_end + WIRE_HEADER_BYTES + frame->length <= TCP_GATHER_BYTES;
  if (may_gather && !tcp->gathered) {
    tcp->gathered = malloc(TCP_GATHER_BYTES);
  }
  if (may_gather && tcp->gathered) {
    uint8_t *to = tcp->gathered + tcp->gathered_end;
    memcpy(to, frame->header, WIRE_HEADER_BYTES);
    memcpy(to + WIRE_HEADER_BYTES, frame->payload, frame->length);
    tcp->gathered_end += WIRE_HEADER_BYTES + frame->length;
    lane->has_unwritten = true;
    return 0;
  }
  tcp->frame = *frame;
  tcp->is_bulk = frame->length > TCP_LARGE_BYTES;
  tcp->written = 0;
  tcp->has_frame = lane->has_unwritten = true;
  return tcp_resume(lane);
}

static void tcp_move(struct lane *lane, const void *payload) {
  tcp_lane(lane)->frame.payload = payload;
}

/* ---- reading ---- */

/* One recvmsg: the rest of the payload, then what follows into the buffer. Behind a large payload
 * that is the next header only: the payload behind it belongs where that header directs it, and
 * bytes that go through the buffer are copied twice. */
static ssize_t receive_some(struct tcp_lane *tcp, size_t *wanted) {
  struct iovec parts[2];
  struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
  const struct frame_in *arriving = &tcp->flow.arriving;
  *wanted = arriving->payload_length >= TCP_LARGE_BYTES ? WIRE_HEADER_BYTES - arriving->header_got
                                                        : TCP_READ_BUFFER_BYTES;
  if (!arriving->in_payload) {
    return recv(tcp->flow.lane.fd, tcp->buffer, *wanted, MSG_DONTWAIT);
  }
  parts[0].iov_base = frame_in_end(&tcp->flow.lane, arriving);
  parts[0].iov_len = arriving->payload_length - arriving->payload_got;
  parts[1].iov_base = tcp->buffer;
  parts[1].iov_len = *wanted;
  *wanted += parts[0].iov_len;
  if (!parts[0].iov_base) {
    errno = ESTALE;
    return -1;
  }
  return recvmsg(tcp->flow.lane.fd, &message, MSG_DONTWAIT);
}

/* So many have arrived, beyond a payload in the buffer. */
static int accept_bytes(struct tcp_lane *tcp, size_t n, uint64_t now_ns) {
  struct frame_in *arriving = &tcp->flow.arriving;
  int error = 0;
  tcp->flow.bytes_read += n;
  if (arriving->in_payload) {
    size_t wanted = arriving->payload_length - arriving->payload_got;
    size_t taken = n < wanted ? n : wanted;
    n -= taken;
    error = frame_in_grow(&tcp->flow.lane, arriving, taken, now_ns);
  }
  return error ? error : frame_in_take(&tcp->flow.lane, arriving, tcp->buffer, n, now_ns);
}

static int read_error(ssize_t n) {
  return n == 0 ? -EPIPE : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int tcp_read(struct lane *lane, uint64_t now_ns, size_t *got) {
  struct tcp_lane *tcp = tcp_lane(lane);
  *got = 0;
  if (tcp->flow.is_closing) {
    tcp->flow.is_closed |=
        tcp_socket_drain(lane->fd, tcp->buffer, TCP_READ_BUFFER_BYTES, LANE_READ_BYTES);
    return 0;
  }
  while (tcp->peeked > 0) { /* MSG_TRUNC: TCP does not copy them again */
    uint8_t known[TCP_PEEK_BYTES];
    ssize_t n = recv(lane->fd, known, tcp->peeked, MSG_DONTWAIT | MSG_TRUNC);
    if (n <= 0) {
      return n == 0 ? -EPIPE : -errno;
    }
    tcp->peeked -= (size_t)n;
  }
  /* The kernel acknowledges a small message when it is read, which takes it 2 us and more, and a
   * thread that waits for the message would wait for that as well. So the message is peeked, and
   * read the next time. Larger messages, those that no thread polls for, and what answers a large
   * frame, are read at once. */
  if (lane->is_polled && !tcp->is_bulk && tcp->was_empty && !tcp->flow.arriving.in_payload &&
      tcp->flow.arriving.header_got == 0) {
    ssize_t n = recv(lane->fd, tcp->buffer, TCP_PEEK_BYTES, MSG_DONTWAIT | MSG_PEEK);
    if (n <= 0) {
      return read_error(n);
    }
    tcp->was_empty = false;
    if (n < TCP_PEEK_BYTES) {
      tcp->peeked = *got = (size_t)n;
      return accept_bytes(tcp, (size_t)n, now_ns);
    }
  }
  while (*got < LANE_READ_BYTES) {
    size_t wanted;
    ssize_t n = receive_some(tcp, &wanted);
    tcp->was_empty = n < 0 && *got == 0;
    if (n <= 0) {
      return read_error(n);
    }
    *got += (size_t)n;
    int error = accept_bytes(tcp, (size_t)n, now_ns);
    if (error) {
      return error;
    }
    if ((size_t)n < wanted) {
      return 0; /* drained: the next bytes bring an event of their own */
    }
  }
  return 0;
}

/* ---- life ---- */

void tcp_flow_close(struct lane *lane) {
  ((struct tcp_flow *)lane)->is_closing = true;
  lane->can_write = false;
  lane->has_unwritten = false;
  shutdown(lane->fd, SHUT_WR);
}

bool tcp_flow_is_closed(const struct lane *lane) {
  return ((const struct tcp_flow *)lane)->is_closed;
}

void tcp_flow_stats(const struct lane *lane, struct lane_stats *stats) {
  const struct tcp_flow *flow = (const struct tcp_flow *)lane;
  tcp_stats_read(lane->fd, stats);
  stats->bytes_written = flow->bytes_written;
  stats->bytes_read = flow->bytes_read;
}

uint64_t tcp_flow_answered_ns(const struct lane *lane, uint64_t now_ns) {
  return tcp_stats_answered_ns(lane->fd, now_ns);
}

static int tcp_fini(struct lane *lane) {
  free(tcp_lane(lane)->gathered);
  descriptor_close(lane->fd);
  free(lane);
  return 0;
}

static const struct lane_ops tcp_ops = {
  tcp_read,          lane_may_have_news,   tcp_write,          tcp_move,
  tcp_resume,        tcp_flow_close,       tcp_flow_is_closed, tcp_flow_stats,
  tcp_stats_measure, tcp_flow_answered_ns, tcp_fini,
};

struct lane *tcp_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd) {
  struct tcp_lane *tcp = calloc(1, sizeof *tcp);
  if (!tcp) {
    return NULL;
  }
  tcp->flow.lane = (struct lane){
    .ops = &tcp_ops, .link = link, .index = index, .epoch = epoch, .fd = fd, .can_write = true
  };
  return &tcp->flow.lane;
}
