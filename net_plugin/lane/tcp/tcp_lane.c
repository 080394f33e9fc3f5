/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_lane.h. In clear, writing: header and payload in one sendmsg; what the kernel does not
 * take stays as the lane's unwritten rest. Small frames are gathered, and go out together when the
 * owner has no more of them. Reading: a payload goes straight to where the link wants it, and the
 * same recvmsg fetches what follows into a small buffer, so that a bulk chunk costs one copy and a
 * small message one system call, or two where a thread polls for it.
 *
 * Encrypted, a frame is cut into records: a small one is one record, of a large one the header is a
 * record and each TCP_SEAL_TEXT_BYTES of the payload. The reader does not rely on that: the texts
 * of the records, put together, are the stream of frames that a plain lane sends. */
#include "net_plugin/lane/tcp/tcp_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/lane/tcp/tcp_seal.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"

/* What both kinds begin with. */
struct tcp_flow {
  struct lane lane;
  bool is_closing, is_closed;
  struct frame_in arriving;
  uint64_t bytes_written, bytes_read;
};

static void flow_close(struct lane *lane) {
  ((struct tcp_flow *)lane)->is_closing = true;
  lane->can_write = false;
  lane->has_unwritten = false;
  shutdown(lane->fd, SHUT_WR);
}

static bool flow_is_closed(const struct lane *lane) {
  return ((const struct tcp_flow *)lane)->is_closed;
}

static void flow_stats(const struct lane *lane, struct lane_stats *stats) {
  const struct tcp_flow *flow = (const struct tcp_flow *)lane;
  tcp_stats_read(lane->fd, stats);
  stats->bytes_written = flow->bytes_written;
  stats->bytes_read = flow->bytes_read;
}

static uint64_t flow_answered_ns(const struct lane *lane, uint64_t now_ns) {
  return tcp_stats_answered_ns(lane->fd, now_ns);
}

/* ---- in clear ---- */

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

/* ---- in clear: writing ---- */

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

/* ---- in clear: reading ---- */

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

static int tcp_fini(struct lane *lane) {
  free(tcp_lane(lane)->gathered);
  descriptor_close(lane->fd);
  free(lane);
  return 0;
}

/* ---- encrypted ---- */

struct tcp_sealed {
  struct tcp_flow flow;
  struct tcp_seal out, in;

  struct link_frame frame; /* being written */
  size_t sealed;           /* of its header and payload */
  size_t out_start, out_end;

  size_t in_end;
  uint8_t out_buffer[TCP_SEALED_BUFFER_BYTES], in_buffer[TCP_SEALED_BUFFER_BYTES];
};

static struct tcp_sealed *tcp_sealed(struct lane *lane) {
  return (struct tcp_sealed *)lane;
}

/* ---- encrypted: writing ---- */

static int seal_more(struct tcp_sealed *tcp) {
  const struct link_frame *frame = &tcp->frame;
  size_t total = WIRE_HEADER_BYTES + frame->length;
  while (tcp->sealed < total && tcp->out_end + TCP_SEAL_RECORD_BYTES <= TCP_SEALED_BUFFER_BYTES) {
    uint8_t *record = tcp->out_buffer + tcp->out_end;
    const uint8_t *text = record + TCP_SEAL_LENGTH_BYTES;
    size_t bytes = total - tcp->sealed;
    if (tcp->sealed == 0) {
      bytes = frame->length <= TCP_SMALL_BYTES ? total : WIRE_HEADER_BYTES;
      memcpy(record + TCP_SEAL_LENGTH_BYTES, frame->header, WIRE_HEADER_BYTES);
      if (bytes > WIRE_HEADER_BYTES) {
        memcpy(record + TCP_SEAL_LENGTH_BYTES + WIRE_HEADER_BYTES, frame->payload, frame->length);
      }
    } else {
      text = (const uint8_t *)frame->payload + (tcp->sealed - WIRE_HEADER_BYTES);
      bytes = bytes < TCP_SEAL_TEXT_BYTES ? bytes : TCP_SEAL_TEXT_BYTES;
    }
    size_t closed = tcp_seal_close(&tcp->out, text, bytes, record);
    if (closed == 0) {
      return -EIO;
    }
    tcp->out_end += closed;
    tcp->sealed += bytes;
  }
  return 0;
}

static int sealed_resume(struct lane *lane) {
  struct tcp_sealed *tcp = tcp_sealed(lane);
  size_t total = WIRE_HEADER_BYTES + tcp->frame.length;
  if (!lane->has_unwritten) {
    return 0;
  }
  lane->can_write = false;
  while (tcp->out_start < tcp->out_end || tcp->sealed < total) {
    if (tcp->out_start == tcp->out_end) {
      tcp->out_start = tcp->out_end = 0;
      int error = seal_more(tcp);
      if (error) {
        return error;
      }
    }
    ssize_t n = send(lane->fd, tcp->out_buffer + tcp->out_start, tcp->out_end - tcp->out_start,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    tcp->out_start += (size_t)n;
    tcp->flow.bytes_written += (uint64_t)n;
  }
  tcp->out_start = tcp->out_end = 0;
  lane->has_unwritten = false;
  lane->can_write = true;
  return 0;
}

static int sealed_write(struct lane *lane, const struct link_frame *frame) {
  struct tcp_sealed *tcp = tcp_sealed(lane);
  tcp->frame = *frame;
  tcp->sealed = 0;
  lane->has_unwritten = true;
  return sealed_resume(lane);
}

static void sealed_move(struct lane *lane, const void *payload) {
  tcp_sealed(lane)->frame.payload = payload;
}

/* ---- encrypted: reading ---- */

/* Opens the whole records in the buffer and keeps the rest. */
static int open_records(struct tcp_sealed *tcp, uint64_t now_ns) {
  size_t start = 0;
  while (tcp->in_end - start >= TCP_SEAL_LENGTH_BYTES) {
    uint8_t *record = tcp->in_buffer + start;
    size_t bytes = tcp_seal_record_bytes(record);
    if (bytes == 0) {
      return -EBADMSG;
    }
    if (tcp->in_end - start < bytes) {
      break;
    }
    int error = tcp_seal_open(&tcp->in, record, bytes);
    error =
        error ? error
              : frame_in_take(&tcp->flow.lane, &tcp->flow.arriving, record + TCP_SEAL_LENGTH_BYTES,
                              bytes - TCP_SEAL_OVERHEAD_BYTES, now_ns);
    if (error) {
      return error;
    }
    start += bytes;
  }
  tcp->in_end -= start;
  memmove(tcp->in_buffer, tcp->in_buffer + start, tcp->in_end);
  return 0;
}

static int sealed_read(struct lane *lane, uint64_t now_ns, size_t *got) {
  struct tcp_sealed *tcp = tcp_sealed(lane);
  *got = 0;
  if (tcp->flow.is_closing) {
    tcp->flow.is_closed |=
        tcp_socket_drain(lane->fd, tcp->in_buffer, TCP_SEALED_BUFFER_BYTES, LANE_READ_BYTES);
    return 0;
  }
  while (*got < LANE_READ_BYTES) {
    size_t wanted = TCP_SEALED_BUFFER_BYTES - tcp->in_end;
    ssize_t n = recv(lane->fd, tcp->in_buffer + tcp->in_end, wanted, MSG_DONTWAIT);
    if (n == 0) {
      return -EPIPE;
    }
    if (n < 0) {
      return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    *got += (size_t)n;
    tcp->flow.bytes_read += (uint64_t)n;
    tcp->in_end += (size_t)n;
    int error = open_records(tcp, now_ns);
    if (error || (size_t)n < wanted) {
      return error;
    }
  }
  return 0;
}

static int sealed_fini(struct lane *lane) {
  struct tcp_sealed *tcp = tcp_sealed(lane);
  descriptor_close(lane->fd);
  tcp_seal_end(&tcp->out);
  tcp_seal_end(&tcp->in);
  free(tcp);
  return 0;
}

/* ---- either ---- */

static const struct lane_ops tcp_ops = {
  tcp_read,       lane_may_have_news, tcp_write,         tcp_move,         tcp_resume, flow_close,
  flow_is_closed, flow_stats,         tcp_stats_measure, flow_answered_ns, tcp_fini,
};

static const struct lane_ops sealed_ops = {
  sealed_read,       lane_may_have_news, sealed_write,   sealed_move,
  sealed_resume,     flow_close,         flow_is_closed, flow_stats,
  tcp_stats_measure, flow_answered_ns,   sealed_fini,
};

static bool start_seals(struct tcp_sealed *tcp, const struct lane_crypto *crypto) {
  bool is_started = tcp_seal_start(&tcp->out, TCP_SEAL_CLOSES, crypto->cipher, crypto->send) &&
                    tcp_seal_start(&tcp->in, TCP_SEAL_OPENS, crypto->cipher, crypto->receive);
  if (!is_started) {
    tcp_seal_end(&tcp->out); /* nothing, if it has not started */
  }
  return is_started;
}

struct lane *tcp_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                           const struct lane_crypto *crypto) {
  struct tcp_flow *flow = calloc(1, crypto ? sizeof(struct tcp_sealed) : sizeof(struct tcp_lane));
  if (!flow || (crypto && !start_seals(tcp_sealed(&flow->lane), crypto))) {
    free(flow);
    return NULL;
  }
  flow->lane = (struct lane){ .ops = crypto ? &sealed_ops : &tcp_ops,
                              .link = link,
                              .index = index,
                              .epoch = epoch,
                              .fd = fd,
                              .can_write = true };
  return &flow->lane;
}
