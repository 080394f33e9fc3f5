/* SPDX-License-Identifier: Apache-2.0 */
/* lane: what all kinds of lanes have in common: the frame that is arriving. */
#include "net_plugin/lane/lane.h"

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
  uint32_t length = wire_stream_bytes(header);
  *frame = (struct frame_in){
    .in_payload = true,
    .is_coded = header->coded > 0,
    .payload_length = length,
  };
  return length ? 0 : frame_in_finish(lane, frame, now_ns);
}

int frame_in_grow(struct lane *lane, struct frame_in *frame, size_t bytes, uint64_t now_ns) {
  frame->payload_got += (uint32_t)bytes;
  link_bytes_arrived(lane->link, lane->index, now_ns);
  return frame->payload_got == frame->payload_length ? frame_in_finish(lane, frame, now_ns) : 0;
}
