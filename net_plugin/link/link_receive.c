/* SPDX-License-Identifier: Apache-2.0 */
/* link_receive: the receiver's side of a link: chunks in, windows and fences out. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link_state.h"

int link_receive_posted(struct link *link, void *data, size_t bytes,
                        const struct wire_remote_buffer *remote_buffer, uint64_t now_ns) {
  assert(link->config.role == LINK_RECEIVER && !link->is_detached);
  if (link->status != 0) {
    return link->status;
  }
  struct incoming_ring *ring = &link->incoming;
  now_ns = link_clock(link, now_ns);
  int result = incoming_post(ring, data, bytes);
  if (result == -EMSGSIZE) {
    link_fail(link, result);
  }
  if (result != 0) {
    return result;
  }
  uint64_t slot = (ring->posted - 1) % LINK_WINDOW;
  ring->slots[slot].posted_ns = now_ns;
  if (link->remote_buffers != NULL) {
    link->remote_buffers[slot] =
        remote_buffer != NULL ? *remote_buffer : (struct wire_remote_buffer){ 0 };
  }
  if (ring->completed + 1 == ring->posted) {
    liveness_waits(&link->liveness, now_ns);
  }
  if (link->is_peer_closed && ring->completed < ring->posted) {
    link_fail(link, -ECONNRESET); /* all that could arrive has arrived */
    return link->status;
  }
  if (ring->completed + 1 == ring->posted && bytes > link->config.eager_bytes) {
    credit_opening(&link->given, now_ns);
  }
  credit_granted(&link->given, ring->granted, ring->completed);
  return 0;
}

/* Only who was given a remote buffer can have written, and only through a lane that can. */
static bool may_be_placed(const struct link *link, unsigned lane) {
  return link_lane_places(link, lane) &&
         (link->is_detached || link->lanes[lane].header.message < link->incoming.granted);
}

int receive_data_begins(struct link *link, unsigned lane) {
  struct link_lane *receiving = &link->lanes[lane];
  bool is_placed = (receiving->header.flags & WIRE_IS_PLACED) != 0;
  bool is_coded = receiving->header.coded > 0;
  bool may_be_coded = link->config.policy.compress != POLICY_COMPRESS_OFF &&
                      (link->rdma & lane_bit(lane)) == 0 &&
                      receiving->header.length <= link->config.policy.chunk_bytes;
  if ((is_placed && !may_be_placed(link, lane)) || (is_coded && !may_be_coded)) {
    return -EPROTO;
  }
  if (link->is_detached) {
    receiving->arrival = ARRIVAL_NOWHERE;
    receiving->buffer = link->nowhere;
    return 0;
  }
  if (is_coded && coding_take_memory(link, lane, receiving->header.coded) == NULL) {
    return -ENOMEM;
  }
  bool is_bounced = false;
  int result = repeat_in_begins(link, lane, &receiving->buffer, &is_bounced);
  if (result != 0 || receiving->arrival == ARRIVAL_AGAIN) {
    return result;
  }
  receiving->arrival = is_bounced ? ARRIVAL_BOUNCED : ARRIVAL_USER;
  if (is_placed) {
    receiving->arrival = ARRIVAL_PLACED;
    receiving->destination = receiving->buffer;
  } else if (!is_bounced && (receiving->header.flags & WIRE_IS_LL) != 0) {
    receiving->arrival = ARRIVAL_STAGED;
    receiving->destination = receiving->buffer;
    receiving->buffer = receiving->staging;
  } else if (is_coded) {
    receiving->destination = receiving->buffer;
    receiving->buffer = receiving->coding;
  }
  return 0;
}

int receive_data_ends(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  if (receiving->arrival == ARRIVAL_NOWHERE) {
    return 0; /* not counted, so that the peer cannot take it for delivered */
  }
  if (receiving->arrival == ARRIVAL_AGAIN) {
    repeat_in_ends(link, lane, now_ns);
    return 0;
  }
  bool is_bounced = receiving->arrival == ARRIVAL_BOUNCED;
  const uint8_t *bytes =
      receiving->arrival == ARRIVAL_PLACED ? receiving->destination : receiving->buffer;
  uint32_t length = header->coded > 0 ? header->coded : header->length;
  if ((header->flags & WIRE_HAS_CRC) != 0 && hash_crc32c(0, bytes, length) != header->payload_crc) {
    return -EBADMSG;
  }
  int result = header->coded > 0 ? coding_ends(link, receiving) : 0;
  if (result != 0) {
    return result;
  }
  if (receiving->arrival == ARRIVAL_STAGED) {
    bytes_copy_upwards(receiving->destination, receiving->buffer, header->length);
  }
  result = incoming_end(&link->incoming, header, is_bounced);
  if (result != 0) {
    return result;
  }
  repeat_in_landed(link, lane);
  receiving->received++;
  receiving->arrived_ns = now_ns;
  receiving->counts.bytes_received += header->length;
  link->unacked |= lane_bit(lane);
  const struct incoming_ring *ring = &link->incoming;
  bool is_rdma = (link->rdma & lane_bit(lane)) != 0;
  uint64_t delay_ns = is_rdma ? CREDIT_RDMA_DELAY_NS : CREDIT_DELAY_NS;
  bool wants_ack = (header->flags & WIRE_WANTS_ACK) != 0;
  bool has_landed = incoming_has_landed(ring, header->message);
  if (has_landed && header->total > 0) {
    bool could_be_placed = link_lane_places(link, lane) && header->total > LINK_PLACE_BYTES;
    link->given.is_bulk = wants_ack || could_be_placed;
  }
  credit_frame_arrived(&link->given, header->length, receiving->received - receiving->acknowledged,
                       wants_ack, has_landed, now_ns + delay_ns);
  if (is_bounced) { /* a receive that was posted meanwhile can be granted now */
    credit_granted(&link->given, ring->granted, ring->completed);
  }
  return 0;
}

void receive_lane_up(struct link *link, unsigned lane, uint32_t epoch_before) {
  struct link_lane *risen = &link->lanes[lane];
  risen->base = risen->received;
  risen->epoch_before = epoch_before;
  risen->staging = link->staging + lane * WIRE_MAX_LL_BYTES;
  receive_tell_again(link);
}

int receive_fence_arrived(struct link *link, const struct wire_header *header, uint64_t now_ns) {
  if (header->message >= link->config.policy.lanes) {
    return -EPROTO;
  }
  unsigned lane = (unsigned)header->message;
  link_fence_lane(link, lane, (uint32_t)header->offset, now_ns);
  link->failover.announce |= lane_bit(lane);
  return 0;
}

void receive_bye_arrived(struct link *link) {
  link->is_peer_closed = true;
  if (!link->is_detached && link->incoming.completed < link->incoming.posted) {
    link_fail(link, -ECONNRESET);
  }
}

/* Remote buffers of messages that were granted since the last WINDOW and have not landed; how many.
 */
static unsigned receive_fill_remote_buffers(struct link *link, uint8_t *bytes) {
  const struct incoming_ring *ring = &link->incoming;
  if (link->remote_buffers == NULL) {
    return 0;
  }
  uint64_t first =
      link->remote_buffers_sent > ring->completed ? link->remote_buffers_sent : ring->completed;
  for (uint64_t message = first; message < ring->granted; message++) {
    wire_remote_buffer_encode(&link->remote_buffers[message % LINK_WINDOW],
                              link->config.remote_keys, bytes);
    bytes += wire_remote_buffer_bytes(link->config.remote_keys);
  }
  link->remote_buffers_sent = ring->granted;
  return (unsigned)(ring->granted - first);
}

void receive_fill_window(struct link *link, unsigned lane, struct wire_header *header,
                         uint64_t now_ns) {
  uint8_t *acks = link->lanes[lane].control;
  uint32_t length = 0;
  for (uint64_t lanes = link->unacked; lanes != 0; lanes &= lanes - 1) {
    unsigned acked = (unsigned)__builtin_ctzll(lanes);
    struct wire_ack ack = {
      .lane = (uint8_t)acked,
      .held_us = (now_ns - link->lanes[acked].arrived_ns) / 1000,
      .epoch = link->lanes[acked].epoch,
      .frames = link->lanes[acked].received,
    };
    wire_ack_encode(&ack, acks + length);
    length += WIRE_ACK_BYTES;
    link->lanes[acked].acknowledged = ack.frames;
  }
  link->unacked = 0;
  *header = (struct wire_header){
    .type = WIRE_WINDOW,
    .message = link->incoming.granted,
    .offset = incoming_landed(&link->incoming),
    .total = receive_fill_remote_buffers(link, acks + length),
  };
  header->length = length + (uint32_t)link_remote_buffers_bytes(link, header);
  if (header->length > 0) {
    header->flags = WIRE_HAS_CRC; /* a wrong count would lose data, whatever the DATA frames have */
    header->payload_crc = hash_crc32c(0, acks, header->length);
  }
  credit_advertised(&link->given, link->incoming.granted);
}

/* A sender that knows remote buffers of messages that have not landed may write at any time. One
 * that has delivered everything writes no more: a chunk is sent again only when its lane is closed
 * on this side. */
static void receive_stop_writers(struct link *link, uint64_t now_ns) {
  if (link->incoming.completed == link->incoming.posted) {
    return;
  }
  for (uint64_t lanes = link->rdma; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    link_fence_lane(link, lane, link->lanes[lane].epoch, now_ns);
  }
}

void receive_detach(struct link *link, uint64_t now_ns) {
  receive_stop_writers(link, now_ns);
  receive_drop_arrivals(link);
  link->unacked = 0;
  credit_end(&link->given);
  link->farewell = link->is_peer_closed ? FAREWELL_NONE : FAREWELL_DUE;
}
