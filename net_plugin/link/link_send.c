/* SPDX-License-Identifier: Apache-2.0 */
/* link_send: the sender's messages, from their post to the acknowledgement: windows and fences in.
 * Their chunks go out in link_step.c. */
#include <assert.h>
#include <errno.h>

#include "net_plugin/link/link_state.h"

/* As many lanes are open as the policy wants. What it does not want is closed when nothing is in
 * flight there. */
static void send_want_lanes(struct link *link, uint64_t now_ns) {
  uint64_t spare = failover_want(&link->failover, policy_lanes_wanted(link->policy, now_ns));
  uint64_t busy = link->writing | link->ping | link->pong | lane_bit(link->heard);
  for (spare &= ~busy; spare != 0; spare &= spare - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(spare);
    if (journal_count(&link->lanes[lane].journal) == 0) {
      failover_leave(&link->failover, lane);
      link_lane_dropped(link, lane);
    }
  }
}

int link_send_posted(struct link *link, const void *data, size_t bytes, const void *memory,
                     uint64_t now_ns) {
  assert(link->config.role == LINK_SENDER && !link->is_detached);
  if (link->status != 0) {
    return link->status;
  }
  if (bytes > WIRE_MAX_MESSAGE_BYTES) {
    return -EMSGSIZE;
  }
  if (link->is_peer_closed) {
    link_fail(link, -ECONNRESET);
    return link->status;
  }
  bool is_first = link->outgoing.retired == link->outgoing.posted;
  now_ns = link_clock(link, now_ns);
  /* The poster of a copied message does not wait for the acknowledgement, which can come along with
   * later ones. A larger message that a NIC may read where it is, and that has credit, is better
   * off without. */
  bool may_be_read = link->known_remote_buffers && bytes > LINK_COPY_BYTES &&
                     link->outgoing.posted < link->taken.granted && link->message_ns < LINK_FAR_NS;
  int result = outgoing_post(&link->outgoing, data, bytes, !may_be_read);
  if (result != 0) {
    return result;
  }
  if (is_first) {
    liveness_waits(&link->liveness, now_ns);
  }
  struct outgoing *message = &link->outgoing.slots[(link->outgoing.posted - 1) % LINK_WINDOW];
  message->posted_ns = now_ns;
  message->memory = message->is_copied ? NULL : memory;
  message->ll = ll_detect(message->data, bytes);
  policy_posted(link->policy, bytes);
  send_want_lanes(link, now_ns);
  return 0;
}

/* Everything that the user left behind is delivered. */
static void send_may_end(struct link *link) {
  if (link->is_detached && link->outgoing.retired == link->outgoing.posted) {
    link->failover.may_dial = false;
    if (link->farewell == FAREWELL_NONE && !link->is_peer_closed) {
      link->farewell = FAREWELL_DUE;
    }
  }
}

/* Messages may have been retired: the youngest took from its post until arrived_ns. */
static void send_note_retired(struct link *link, uint64_t retired_before, uint64_t arrived_ns) {
  const struct outgoing_ring *ring = &link->outgoing;
  if (ring->retired > retired_before) {
    uint64_t posted_ns = ring->slots[(ring->retired - 1) % LINK_WINDOW].posted_ns;
    uint64_t took_ns = arrived_ns > posted_ns ? arrived_ns - posted_ns : 0;
    link->message_ns = (link->message_ns * 3 + took_ns) / 4;
    send_may_end(link);
  }
}

void send_apply_ack(struct link *link, unsigned lane, uint64_t count, uint64_t arrived_ns) {
  struct link_lane *acked = &link->lanes[lane];
  struct journal *journal = &acked->journal;
  uint64_t written = journal->sent - ((link->writing_data & lane_bit(lane)) != 0 ? 1 : 0);
  uint64_t end = count < written ? count : written;
  if (end <= journal->acked) {
    return;
  }
  uint64_t bytes = 0, retired = link->outgoing.retired;
  while (journal->acked < end) {
    struct chunk chunk = journal_take_oldest(journal);
    bytes += chunk.length;
    if (link->repeats.count == 0 || repeat_acked(link, lane, journal->acked - 1, arrived_ns)) {
      outgoing_acked(&link->outgoing, chunk);
    }
  }
  send_note_retired(link, retired, arrived_ns);
  acked->counts.bytes_acked += bytes;
  link->acked_ns = arrived_ns;
  link->stuck_ns = link->last_try_ns = 0;
  link->full &= ~lane_bit(lane);
  /* The load of an epoch that is over was forgotten when it ended. */
  bool is_current = acked->sent_epoch == link->lanes[lane].epoch;
  if (is_current && (link->failover.up & lane_bit(lane)) != 0) {
    bool is_alone = (link->failover.up & (link->failover.up - 1)) == 0;
    bool has_paused = liveness_has_paused(&link->liveness, lane, is_alone);
    policy_acked(link->policy, lane, bytes, has_paused, arrived_ns);
    liveness_moved(&link->liveness, lane, arrived_ns);
    link_moves(link, lane);
    failover_proved(&link->failover, lane);
  } else if (journal_count(journal) == 0) {
    failover_settle(&link->failover, lane);
  }
}

void send_chunk_done(struct link *link, struct chunk chunk, uint64_t now_ns) {
  uint64_t retired = link->outgoing.retired;
  outgoing_acked(&link->outgoing, chunk);
  send_note_retired(link, retired, now_ns);
}

/* A WINDOW that was overtaken by a later one still has remote buffers that are worth knowing.
 * Counted down, as the last of a hostile one may have the largest number there is. */
static void send_remote_buffers_arrived(struct link *link, const struct wire_header *header,
                                        const uint8_t *bytes) {
  for (uint64_t left = header->total; left > 0; left--) {
    uint64_t end = header->message - left + 1;
    struct known_remote_buffer *told = &link->known_remote_buffers[(end - 1) % LINK_WINDOW];
    if (end > told->end) {
      told->end = end;
      wire_remote_buffer_decode(bytes, link->config.remote_keys, &told->remote_buffer);
    }
    bytes += wire_remote_buffer_bytes(link->config.remote_keys);
  }
}

int send_window_arrived(struct link *link, const struct wire_header *header, const uint8_t *payload,
                        uint64_t now_ns) {
  uint32_t acks_bytes = header->length - (uint32_t)link_remote_buffers_bytes(link, header);
  if (header->offset > link->outgoing.posted && !link->is_detached) {
    return -EPROTO;
  }
  for (uint32_t at = 0; at < acks_bytes; at += WIRE_ACK_BYTES) {
    struct wire_ack ack;
    if (wire_ack_decode(payload + at, &ack) != 0 || ack.lane >= link->config.policy.lanes) {
      return -EPROTO;
    }
    struct link_lane *acked = &link->lanes[ack.lane];
    if (ack.epoch != acked->sent_epoch) {
      continue; /* late: a fence or a handshake has settled that epoch */
    }
    if (ack.frames > acked->journal.sent) {
      return -EPROTO;
    }
    if (ack.frames > acked->claimed) {
      acked->claimed = ack.frames;
    }
    uint64_t held_ns = ack.held_us * 1000;
    send_apply_ack(link, ack.lane, ack.frames, held_ns < now_ns ? now_ns - held_ns : 0);
  }
  if (header->message > link->taken.granted) {
    link->taken.granted = header->message;
  }
  if (header->total > 0) {
    send_remote_buffers_arrived(link, header, payload + acks_bytes);
  }
  send_want_lanes(link, now_ns);
  return 0;
}

int send_settle(struct link *link, unsigned lane, uint64_t count, uint64_t now_ns) {
  struct journal *journal = &link->lanes[lane].journal;
  if (count < journal->acked || count > journal->sent) {
    return -EPROTO;
  }
  send_apply_ack(link, lane, count, now_ns);
  uint64_t retired = link->outgoing.retired;
  while (journal_count(journal) > 0) {
    struct chunk chunk = journal_take_newest(journal);
    enum repeat_return result = repeat_returned(link, lane, journal->sent);
    if (result == REPEAT_ACK) {
      outgoing_acked(&link->outgoing, chunk);
    } else if (result == REPEAT_REQUEUE && outgoing_is_live(&link->outgoing, chunk)) {
      requeue_insert(&link->requeue, chunk);
      link->lanes[lane].counts.requeued++;
    }
  }
  send_note_retired(link, retired, now_ns);
  link->lanes[lane].repeated = count;
  link->lanes[lane].claimed = count;
  link->full &= ~lane_bit(lane);
  failover_settle(&link->failover, lane);
  return 0;
}

/* The peer has closed its end of a lane: because it lost it, or because we asked. */
int send_fenced_arrived(struct link *link, const struct wire_header *header, uint64_t now_ns) {
  if (header->message >= link->config.policy.lanes) {
    return -EPROTO;
  }
  unsigned lane = (unsigned)header->message;
  uint32_t epoch = (uint32_t)header->offset;
  link_fence_lane(link, lane, epoch, now_ns);
  if ((link->failover.unsettled & lane_bit(lane)) == 0 || link->lanes[lane].sent_epoch > epoch) {
    return 0;
  }
  int result = send_settle(link, lane, header->total, now_ns);
  if (result != 0) {
    link_fail(link, result); /* what arrived there will never be known */
  }
  return result;
}

/* Nothing more can be delivered. What has landed counts as acknowledged, even if the frames that
 * acknowledge it were overtaken by the BYE. */
void send_bye_arrived(struct link *link, uint64_t landed, uint64_t now_ns) {
  link->is_peer_closed = true;
  link->failover.may_dial = false;
  if (landed < link->outgoing.posted && !link->is_detached) {
    link_fail(link, -ECONNRESET);
    return;
  }
  outgoing_retire_all(&link->outgoing);
  link->requeue.count = link->repeats.count = 0;
  for (unsigned lane = 0; lane < link->config.policy.lanes; lane++) {
    journal_clear(&link->lanes[lane].journal);
    failover_settle(&link->failover, lane);
    if ((link->writing_data & lane_bit(lane)) != 0) {
      link_fence_lane(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
  link->full = 0;
}

/* Does the lane still read a payload that is the user's? One that is being written, or, of an
 * RDMA lane, any that is not acknowledged. */
static bool send_is_reading_user(const struct link *link, unsigned lane) {
  const struct journal *journal = &link->lanes[lane].journal;
  bool is_reading = (link_reading(link) & lane_bit(lane)) != 0;
  bool is_rdma = (link->rdma & lane_bit(lane)) != 0;
  uint64_t first = is_rdma ? journal->acked : journal->sent - (is_reading ? 1 : 0);
  for (uint64_t count = first; count < journal->sent; count++) {
    if (!outgoing_is_live(&link->outgoing, journal_at(journal, count))) {
      return true;
    }
  }
  return false;
}

void send_detach(struct link *link, uint64_t now_ns) {
  outgoing_truncate(&link->outgoing);
  requeue_truncate(&link->requeue, link->outgoing.posted);
  for (uint64_t lanes = link_reading(link) | link->rdma; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    /* The frame cannot be finished, so the lane is of no use. */
    if (send_is_reading_user(link, lane)) {
      link_fence_lane(link, lane, link->lanes[lane].epoch, now_ns);
    }
  }
  send_may_end(link);
}
