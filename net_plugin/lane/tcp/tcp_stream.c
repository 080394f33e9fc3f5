/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_stream.h. */
#include "net_plugin/lane/tcp/tcp_stream.h"

#include <errno.h>
#include <sys/socket.h>

static int finish(struct lane *lane, struct tcp_arriving *arriving, uint64_t now_ns) {
  arriving->in_payload = false;
  return link_frame_completed(lane->link, lane->index, now_ns);
}

int tcp_frame_begin(struct lane *lane, struct tcp_arriving *arriving,
                    const uint8_t bytes[WIRE_HEADER_BYTES], uint64_t now_ns) {
  struct wire_header header;
  int error = wire_header_decode(bytes, &header);
  return error ? error : tcp_frame_begin_decoded(lane, arriving, &header, now_ns);
}

int tcp_frame_begin_decoded(struct lane *lane, struct tcp_arriving *arriving,
                            const struct wire_header *header, uint64_t now_ns) {
  int error = link_frame_received(lane->link, lane->index, header, now_ns);
  if (error) {
    return error;
  }
  uint32_t length = wire_stream_bytes(header);
  *arriving = (struct tcp_arriving){ .in_payload = true, .payload_length = length };
  return length ? 0 : finish(lane, arriving, now_ns);
}

int tcp_frame_grow(struct lane *lane, struct tcp_arriving *arriving, size_t bytes,
                   uint64_t now_ns) {
  arriving->payload_got += (uint32_t)bytes;
  link_bytes_arrived(lane->link, lane->index, now_ns);
  return arriving->payload_got == arriving->payload_length ? finish(lane, arriving, now_ns) : 0;
}

uint8_t *tcp_frame_end(struct lane *lane, const struct tcp_arriving *arriving) {
  uint8_t *payload = link_receive_buffer(lane->link, lane->index);
  return payload ? payload + arriving->payload_got : NULL;
}

bool tcp_stream_drop(int fd, void *buffer, size_t bytes) {
  for (size_t dropped = 0; dropped < TCP_READ_BUDGET_BYTES;) {
    ssize_t n = recv(fd, buffer, bytes, MSG_DONTWAIT);
    if (n <= 0) {
      return n == 0 || (errno != EAGAIN && errno != EINTR);
    }
    dropped += (size_t)n;
  }
  return false;
}
