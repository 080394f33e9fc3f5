/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_lane.h. A frame is cut into records: a small one is one record, of a large one the
 * header is a record and each TCP_SEAL_TEXT_BYTES of the payload. The reader does not rely on that:
 * the texts of the records, put together, are the stream of frames that a plain lane sends. */
#include "net_plugin/lane/tcp/tcp_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/lane/tcp/tcp_seal.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"

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

/* ---- writing ---- */

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

/* ---- reading ---- */

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

/* ---- life ---- */

static int sealed_fini(struct lane *lane) {
  struct tcp_sealed *tcp = tcp_sealed(lane);
  descriptor_close(lane->fd);
  tcp_seal_end(&tcp->out);
  tcp_seal_end(&tcp->in);
  free(tcp);
  return 0;
}

static const struct lane_ops tcp_sealed_ops = {
  sealed_read,       lane_may_have_news,   sealed_write,       sealed_move,
  sealed_resume,     tcp_flow_close,       tcp_flow_is_closed, tcp_flow_stats,
  tcp_stats_measure, tcp_flow_answered_ns, sealed_fini,
};

struct lane *tcp_sealed_lane_open(struct link *link, unsigned index, uint32_t epoch, int fd,
                                  const struct lane_crypto *crypto) {
  struct tcp_sealed *tcp = calloc(1, sizeof *tcp);
  if (!tcp) {
    return NULL;
  }
  if (!tcp_seal_start(&tcp->out, TCP_SEAL_CLOSES, crypto->cipher, crypto->send) ||
      !tcp_seal_start(&tcp->in, TCP_SEAL_OPENS, crypto->cipher, crypto->receive)) {
    tcp_seal_end(&tcp->out); /* nothing, if it has not started */
    free(tcp);
    return NULL;
  }
  tcp->flow.lane = (struct lane){ .ops = &tcp_sealed_ops,
                                  .link = link,
                                  .index = index,
                                  .epoch = epoch,
                                  .fd = fd,
                                  .can_write = true };
  return &tcp->flow.lane;
}
