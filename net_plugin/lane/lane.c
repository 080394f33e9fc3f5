/* SPDX-License-Identifier: Apache-2.0 */
/* lane: what all kinds of lanes have in common: how one is made, and the frame that is arriving. */
#include "net_plugin/lane/lane.h"

#include <errno.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/lane/rdma/rdma_lane.h"
#include "net_plugin/lane/tcp/tcp_lane.h"

int lane_open(const struct lane_path *path, struct link *link, unsigned index, uint32_t epoch,
              bool is_dialler, struct lane **lane) {
  if (path->endpoint) {
    return rdma_lane_open(link, index, epoch, path->fd, path->endpoint, is_dialler, lane);
  }
  *lane = path->crypto ? tcp_sealed_lane_open(link, index, epoch, path->fd, path->crypto)
                       : tcp_lane_open(link, index, epoch, path->fd);
  return *lane ? 0 : -ENOMEM;
}

void lane_path_drop(const struct lane_path *path) {
  endpoint_free(path->endpoint);
  if (path->fd >= 0) {
    descriptor_close(path->fd);
  }
}

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
