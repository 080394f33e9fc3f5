/* SPDX-License-Identifier: Apache-2.0 */
/* link_receive: the receiver's side of a link: chunks in, windows out.
 *
 * The receiver grants receives: a granted message has a user buffer. The sender may send
 * eager_slots eager messages without a grant; the receiver keeps a bounce buffer for each. Eager
 * messages have at most eager_bytes, and could not be placed by an RDMA lane. Nothing else is sent
 * without a grant, so no lane is blocked by a message that has no destination.
 *
 * A message that an RDMA lane could place waits for its grant: a REQUEST costs one round trip, and
 * only until the receiver grants by itself, but a stream through a device's slots blocks the sender
 * for longer.
 *
 * A WINDOW frame costs a system call on both sides, which for small messages is most of their cost.
 * So WINDOW frames are delayed and coalesced. One is sent at once when
 *  - a message has landed that its sender did not copy: its user waits for the acknowledgement;
 *  - the sender asked for credit (REQUEST), and there is some;
 *  - half of the credit for bulk traffic is used: messages that were not copied, or that a device
 *    could have placed had the sender known the remote buffer;
 *  - small messages have used half of the eager slots;
 *  - many bytes are not acknowledged, or eager frames: see the CREDIT_ values of limits.h;
 *  - CREDIT_OPENING_NS after a receive of a large message was granted while no other one waited: at
 *    the beginning of a collective. So the sender need not ask, which costs a round trip, on which
 *    both frames wait behind data in the NICs' queues.
 *
 * Otherwise it is sent with the next one, at the latest after CREDIT_DELAY_NS, or on an RDMA lane
 * CREDIT_RDMA_DELAY_NS: a WINDOW costs as much there as a message, and nobody waits for the
 * acknowledgement of a copy. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link_state.h"

/* ---- credit ---- */

/* Receives may have been granted. */
static void receive_granted(struct link *link) {
  struct credit_given *given = &link->given;
  uint64_t landed = link->incoming.completed;
  uint64_t unadvertised = link->incoming.granted - given->advertised;
  if (unadvertised == 0) {
    return;
  }
  if (given->advertised < given->wanted) {
    given->is_due = true;
  } else if (given->is_bulk) {
    /* advertised - landed is what the sender can still use; eager messages may land beyond it. */
    uint64_t left = given->advertised > landed ? given->advertised - landed : 0;
    given->is_due |= left <= unadvertised;
  } else {
    given->is_due |= 2 * unadvertised >= link->config.eager_slots;
  }
}

void receive_request_arrived(struct link *link, uint64_t message) {
  struct credit_given *given = &link->given;
  given->wanted = message >= given->wanted ? message + 1 : given->wanted;
  given->is_due |= given->advertised < given->wanted && link->incoming.granted > given->advertised;
}

void receive_time_passed(struct link *link, uint64_t now_ns) {
  struct credit_given *given = &link->given;
  if (now_ns >= given->deadline_ns) {
    given->is_due = true; /* until some lane can write it; there is nothing more to wait for */
    given->deadline_ns = LINK_NO_DEADLINE;
  }
  if (now_ns >= given->opening_ns) {
    given->is_due |= link->incoming.granted > given->advertised;
    given->opening_ns = LINK_NO_DEADLINE;
  }
}

int link_receive_posted(struct link *link, void *data, size_t bytes,
                        const struct wire_remote_buffer *remote_buffer, uint64_t now_ns) {
  assert(link->config.role == LINK_RECEIVER && !link->is_detached);
  if (link->status != 0) {
    return link->status;
  }
  struct incoming_ring *ring = &link->incoming;
  now_ns = link_clock(link, now_ns);
  int result = incoming_post(ring, data, bytes, now_ns);
  if (result == -EMSGSIZE) {
    link_fail(link, result);
  }
  if (result != 0) {
    return result;
  }
  if (link->remote_buffers != NULL) {
    link->remote_buffers[(ring->posted - 1) % LINK_WINDOW] =
        remote_buffer != NULL ? *remote_buffer : (struct wire_remote_buffer){ 0 };
  }
  if (ring->completed + 1 == ring->posted) {
    link->liveness.waiting_ns = now_ns;
  }
  if (link->is_peer_closed && ring->completed < ring->posted) {
    link_fail(link, -ECONNRESET); /* all that could arrive has arrived */
    return link->status;
  }
  if (ring->completed + 1 == ring->posted && bytes > link->config.eager_bytes) {
    link->given.opening_ns = now_ns + CREDIT_OPENING_NS;
  }
  receive_granted(link);
  return 0;
}

/* Only who was given a remote buffer can have written, and only through a lane that can. */
static bool may_be_placed(const struct link *link, unsigned lane) {
  return link_lane_places(link, lane) &&
         (link->is_detached || link->lanes[lane].header.message < link->incoming.granted);
}

/* ---- which chunks have landed ---- */

static bool landed_has(const struct link_landed *landed, uint64_t number) {
  uint64_t at = number % LINK_FLIGHT;
  return number < landed->first || (landed->bits[at / 64] >> at % 64 & 1) != 0;
}

static void landed_add(struct link_landed *landed, uint64_t number) {
  landed->bits[number % LINK_FLIGHT / 64] |= 1ull << number % 64;
  landed->end = number >= landed->end ? number + 1 : landed->end;
  while (landed->first < landed->end && landed_has(landed, landed->first)) {
    landed->bits[landed->first % LINK_FLIGHT / 64] &= ~(1ull << landed->first % 64);
    landed->first++;
  }
}

/* Those behind the first one that has not. */
static void landed_tell(const struct link_landed *landed, struct wire_landed *told) {
  unsigned shift = landed->first % 64;
  told->words = (unsigned)((landed->end - landed->first + 63) / 64);
  for (unsigned i = 0; i < told->words; i++) {
    unsigned at = (unsigned)(landed->first % LINK_FLIGHT / 64) + i;
    uint64_t low = landed->bits[at % (LINK_FLIGHT / 64)] >> shift;
    uint64_t high = landed->bits[(at + 1) % (LINK_FLIGHT / 64)];
    told->bits[i] = low | (shift > 0 ? high << (64 - shift) : 0);
  }
}

/* ---- chunks in ---- */

/* It has landed: what comes is the same bytes once more. */
static void receive_again(struct link *link, unsigned lane) {
  link->lanes[lane].arrival = ARRIVAL_AGAIN;
  link->lanes[lane].buffer = link->nowhere;
  link->arriving &= ~lane_bit(lane);
}

/* A copy of the lane's chunk arrives on another lane, too. The same bytes to the same place do no
 * harm; but with checksums one that is damaged must not overwrite what a good one has brought. */
static bool receive_has_rival(const struct link *link, unsigned lane) {
  const struct wire_header *header = &link->lanes[lane].header;
  bool may_spoil = (header->flags & (WIRE_HAS_CRC | WIRE_IS_PLACED)) == WIRE_HAS_CRC;
  for (uint64_t lanes = may_spoil ? link->arriving : 0; lanes != 0; lanes &= lanes - 1) {
    if (link->lanes[__builtin_ctzll(lanes)].header.number == header->number) {
      return true;
    }
  }
  return false;
}

/* Memory of the lane's for the payload, which goes to its place when it is complete; NULL: it goes
 * there at once. 0, or -ENOMEM. */
static int receive_stage(struct link *link, unsigned lane, uint8_t **staging) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  bool is_bounced = link->incoming.slots[incoming_slot(header->message)].is_bounced;
  *staging = NULL;
  if (!is_bounced && (header->flags & WIRE_IS_LL) != 0) {
    *staging = receiving->staging;
  } else if (header->coded > 0 || receive_has_rival(link, lane)) {
    *staging = coding_take_memory(link, lane, wire_stream_bytes(header));
    return *staging != NULL ? 0 : -ENOMEM;
  }
  return 0;
}

int receive_data_begins(struct link *link, unsigned lane) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  bool is_placed = (header->flags & WIRE_IS_PLACED) != 0;
  bool is_coded = header->coded > 0;
  bool may_be_coded = link->config.policy.compress != POLICY_COMPRESS_OFF &&
                      (link->rdma & lane_bit(lane)) == 0 &&
                      header->length <= link->config.policy.chunk_bytes;
  if ((is_placed && !may_be_placed(link, lane)) || (is_coded && !may_be_coded)) {
    return -EPROTO;
  }
  if (link->is_detached) {
    receiving->arrival = ARRIVAL_NOWHERE;
    receiving->buffer = link->nowhere;
    return 0;
  }
  if (header->number >= link->landed.first + LINK_FLIGHT) {
    return -EPROTO;
  }
  if (landed_has(&link->landed, header->number)) {
    receive_again(link, lane);
    return 0;
  }
  uint8_t *staging;
  int result = incoming_begin(&link->incoming, header, &receiving->destination);
  result = result == 0 ? receive_stage(link, lane, &staging) : result;
  if (result != 0) {
    return result;
  }
  receiving->arrival = is_placed         ? ARRIVAL_PLACED
                       : staging != NULL ? ARRIVAL_STAGED
                                         : ARRIVAL_DIRECT;
  receiving->buffer = staging != NULL ? staging : receiving->destination;
  link->arriving |= lane_bit(lane);
  return 0;
}

/* The chunk of the lane goes to its place, if it is not there. 0, or -EBADMSG. */
static int receive_payload_ends(struct link *link, const struct link_lane *receiving) {
  const struct wire_header *header = &receiving->header;
  uint32_t length = header->coded > 0 ? header->coded : header->length;
  if ((header->flags & WIRE_HAS_CRC) != 0 &&
      hash_crc32c(0, receiving->buffer, length) != header->payload_crc) {
    return -EBADMSG;
  }
  if (header->coded > 0) {
    return coding_ends(link, receiving);
  }
  if (receiving->arrival == ARRIVAL_STAGED) {
    bytes_copy_upwards(receiving->destination, receiving->buffer, header->length);
  }
  return 0;
}

/* The chunk of the lane has landed, and perhaps all of its message. What arrives of these on other
 * lanes must not be written any more. */
static void receive_landed(struct link *link, unsigned lane, bool has_landed) {
  const struct wire_header *header = &link->lanes[lane].header;
  link->arriving &= ~lane_bit(lane);
  landed_add(&link->landed, header->number);
  for (uint64_t lanes = link->arriving; lanes != 0; lanes &= lanes - 1) {
    unsigned other = (unsigned)__builtin_ctzll(lanes);
    const struct wire_header *arriving = &link->lanes[other].header;
    if (arriving->number == header->number ||
        (has_landed && arriving->message == header->message)) {
      receive_again(link, other);
    }
  }
}

/* A chunk is complete on the lane: it is acknowledged, at the latest in a while. wants_ack: the
 * sender's user waits. has_landed: it was the last one of its message. */
static void receive_acknowledge(struct link *link, unsigned lane, uint32_t bytes, bool wants_ack,
                                bool has_landed, uint64_t now_ns) {
  struct credit_given *given = &link->given;
  bool is_rdma = (link->rdma & lane_bit(lane)) != 0;
  uint64_t latest_ns = now_ns + (is_rdma ? CREDIT_RDMA_DELAY_NS : CREDIT_DELAY_NS);
  link->lanes[lane].arrived_ns = now_ns;
  link->unacked |= lane_bit(lane);
  given->frames++;
  given->bytes += bytes;
  if ((has_landed && wants_ack) || (!wants_ack && given->frames >= CREDIT_FRAMES) ||
      given->bytes >= CREDIT_BYTES) {
    given->is_due = true;
  } else if (!given->is_due && latest_ns < given->deadline_ns) {
    given->deadline_ns = latest_ns;
  }
}

int receive_data_ends(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_header *header = &receiving->header;
  struct incoming_ring *ring = &link->incoming;
  if (receiving->arrival == ARRIVAL_NOWHERE) {
    return 0; /* not counted, so that the peer cannot take it for delivered */
  }
  if (receiving->arrival == ARRIVAL_AGAIN) { /* the sender may not know, and wait */
    link->counts.duplicates++;
    receive_acknowledge(link, lane, 0, true, true, now_ns);
    return 0;
  }
  int result = receive_payload_ends(link, receiving);
  const struct incoming *message = &ring->slots[incoming_slot(header->message)];
  bool was_bounced = message->is_bounced;
  result = result == 0 ? incoming_end(ring, header) : result;
  if (result != 0) {
    return result;
  }
  bool has_landed = message->is_landed;
  link->moved_ns = now_ns;
  receive_landed(link, lane, has_landed);
  receiving->counts.bytes_received += header->length;
  bool wants_ack = (header->flags & WIRE_WANTS_ACK) != 0;
  if (has_landed && header->total > 0) {
    bool could_be_placed = link_lane_places(link, lane) && header->total > LINK_PLACE_BYTES;
    link->given.is_bulk = wants_ack || could_be_placed;
  }
  receive_acknowledge(link, lane, header->length, wants_ack, has_landed, now_ns);
  if (was_bounced) { /* a receive that was posted meanwhile can be granted now */
    receive_granted(link);
  }
  return 0;
}

/* ---- lanes ---- */

void receive_lane_up(struct link *link, unsigned lane) {
  struct link_lane *risen = &link->lanes[lane];
  risen->arrived_ns = 0;
  risen->staging = link->staging + lane * WIRE_MAX_LL_BYTES;
  receive_tell_again(link);
}

void receive_bye_arrived(struct link *link) {
  link->is_peer_closed = true;
  if (!link->is_detached && link->incoming.completed < link->incoming.posted) {
    link_fail(link, -ECONNRESET);
  }
}

/* ---- windows ---- */

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
  uint8_t *payload = link->lanes[lane].control;
  struct wire_landed told;
  told.lanes = link->unacked;
  for (uint64_t lanes = link->unacked; lanes != 0; lanes &= lanes - 1) {
    unsigned acked = (unsigned)__builtin_ctzll(lanes);
    told.held_us[acked] = (now_ns - link->lanes[acked].arrived_ns) / 1000;
  }
  link->unacked = 0;
  landed_tell(&link->landed, &told);
  uint32_t length = wire_landed_encode(&told, payload);
  *header = (struct wire_header){
    .type = WIRE_WINDOW,
    .flags = WIRE_HAS_CRC, /* a wrong number would lose data, whatever the DATA frames have */
    .number = link->landed.first,
    .message = link->incoming.granted,
    .offset = incoming_landed(&link->incoming),
    .total = receive_fill_remote_buffers(link, payload + length),
  };
  header->length = length + (uint32_t)link_remote_buffers_bytes(link, header);
  header->payload_crc = hash_crc32c(0, payload, header->length);
  link->given.advertised = link->incoming.granted;
  link->given.frames = 0;
  link->given.bytes = 0;
  link->given.is_due = false;
  link->given.deadline_ns = LINK_NO_DEADLINE;
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
    lanes_fence(link, lane, link->lanes[lane].epoch, now_ns);
  }
}

void receive_detach(struct link *link, uint64_t now_ns) {
  receive_stop_writers(link, now_ns);
  receive_drop_arrivals(link);
  link->unacked = 0;
  link->given.is_due = false;
  link->given.deadline_ns = link->given.opening_ns = LINK_NO_DEADLINE;
  link->farewell = link->is_peer_closed ? FAREWELL_NONE : FAREWELL_DUE;
}
