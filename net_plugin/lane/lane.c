/* SPDX-License-Identifier: Apache-2.0 */
/* lane: what all kinds of lanes have in common: the frame that is arriving. */
#include "net_plugin/lane/lane.h"

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"

static int frame_in_finish(struct lane *lane, struct frame_in *frame, uint64_t now_ns) {
  frame->in_payload = false;
  if (!frame->is_coded) {
    return link_frame_completed(lane->link, lane->index, now_ns);
  }
  uint64_t begin_ns = clock_now_ns();
  int error = link_frame_completed(lane->link, lane->index, now_ns);
  link_decoded(lane->link, clock_now_ns() - begin_ns);
  return error;
}

int frame_in_begin(struct lane *lane, struct frame_in *frame, const struct wire_header *header,
                   uint64_t now_ns) {
  int error = link_frame_received(lane->link, lane->index, header, now_ns);
  if (error) {
    return error;
  }
  frame->in_payload = true;
  frame->is_coded = header->coded > 0;
  frame->payload_length = wire_stream_bytes(header);
  frame->payload_got = 0;
  frame->placed_bytes += (header->flags & WIRE_IS_PLACED) != 0 ? header->length : 0;
  return frame->payload_length ? 0 : frame_in_finish(lane, frame, now_ns);
}

int frame_in_grow(struct lane *lane, struct frame_in *frame, size_t bytes, uint64_t now_ns) {
  frame->payload_got += (uint32_t)bytes;
  link_bytes_arrived(lane->link, lane->index, now_ns);
  return frame->payload_got == frame->payload_length ? frame_in_finish(lane, frame, now_ns) : 0;
}

int frame_in_take(struct lane *lane, struct frame_in *frame, const uint8_t *bytes, size_t count,
                  uint64_t now_ns) {
  int error = 0;
  while (count > 0 && !error) {
    size_t wanted = frame->in_payload ? frame->payload_length - frame->payload_got
                                      : WIRE_HEADER_BYTES - frame->header_got;
    size_t taken = count < wanted ? count : wanted;
    if (frame->in_payload) {
      uint8_t *to = frame_in_end(lane, frame);
      if (!to) {
        return -ESTALE;
      }
      bytes_copy_upwards(to, bytes, taken);
      error = frame_in_grow(lane, frame, taken, now_ns);
    } else {
      memcpy(frame->header + frame->header_got, bytes, taken);
      frame->header_got += (uint32_t)taken;
      if (taken == wanted) {
        struct wire_header header;
        frame->header_got = 0;
        error = wire_header_decode(frame->header, &header);
        error = error ? error : frame_in_begin(lane, frame, &header, now_ns);
      }
    }
    bytes += taken;
    count -= taken;
  }
  lane->is_mid_frame = frame->in_payload || frame->header_got > 0;
  return error;
}
