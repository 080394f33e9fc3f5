/* SPDX-License-Identifier: Apache-2.0 */
/* link_repeat_in: the receiver sees chunks that come twice, and lets each land once.
 *
 * A repeat names its origin: lane, epoch, number of the frame. As a lane's frames are counted in
 * order, that is all there is to know: the origin has been counted, is arriving, comes later or
 * never will. Of each lane the receiver keeps one bit for each frame that a repeat has brought
 * already (`elsewhere`): at most LINK_JOURNAL are on the way.
 *
 *   the other copy    this one
 *   has landed        is read and forgotten (ARRIVAL_AGAIN), and counted for its lane
 *   is arriving, too  goes to the same place: the bytes are the same. Both count once among those
 *                     that arrive (`shares`). Whichever is complete first has landed; from then on
 *                     the other is ARRIVAL_AGAIN. Neither is lost with the other's lane.
 *   comes later       lands; the bit is set
 *   never comes       lands: the origin's lane was lost before it
 *
 * A frame is counted, and so acknowledged, only when its chunk has landed, by whichever copy. */
#include <errno.h>

#include "net_plugin/link/link_state.h"

enum origin { ORIGIN_LANDED, ORIGIN_ARRIVING, ORIGIN_AHEAD, ORIGIN_OVER, ORIGIN_UNKNOWN };

/* The difference of epochs that are known modulo WIRE_ORIGIN_EPOCHS. */
static int epochs_ahead(uint32_t epoch, uint32_t than) {
  int ahead = (int)((epoch - than) % WIRE_ORIGIN_EPOCHS);
  return ahead < (int)WIRE_ORIGIN_EPOCHS / 2 ? ahead : ahead - (int)WIRE_ORIGIN_EPOCHS;
}

static bool is_arriving(const struct link_lane *lane) {
  return lane->arrival != ARRIVAL_NONE && lane->header.type == WIRE_DATA;
}

/* What has become of the frame that a repeat stands for. */
static enum origin origin_of(const struct link *link, const struct wire_origin *origin) {
  const struct link_lane *first = &link->lanes[origin->lane];
  int epochs = epochs_ahead(origin->epoch, first->epoch);
  if (epochs < 0) { /* the lane has come up again */
    if (epochs_ahead(origin->epoch, first->epoch_before) != 0) {
      return ORIGIN_UNKNOWN;
    }
    return (int32_t)(origin->count - (uint32_t)first->base) < 0 ? ORIGIN_LANDED : ORIGIN_OVER;
  }
  int32_t ahead = (int32_t)(origin->count - (uint32_t)first->received);
  if (epochs == 0 && ahead < 0) {
    return ORIGIN_LANDED;
  }
  if (epochs == 0 && !link_is_lane_up(link, origin->lane)) {
    return ORIGIN_OVER;
  }
  if (ahead < 0 || ahead >= LINK_JOURNAL) {
    return ORIGIN_UNKNOWN;
  }
  return epochs == 0 && ahead == 0 && is_arriving(first) ? ORIGIN_ARRIVING : ORIGIN_AHEAD;
}

/* The lane on which a repeat of the frame arrives that begins on `lane`; -1: none does. */
static int repeat_arriving(const struct link *link, unsigned lane) {
  uint32_t count = (uint32_t)link->lanes[lane].received;
  uint32_t epoch = link->lanes[lane].epoch;
  for (uint64_t lanes = link->repeats_arriving; lanes != 0; lanes &= lanes - 1) {
    int other = __builtin_ctzll(lanes);
    const struct wire_origin *origin = &link->lanes[other].header.origin;
    if (origin->lane == lane && origin->count == count && epochs_ahead(origin->epoch, epoch) == 0) {
      return other;
    }
  }
  return -1;
}

static void arrives_again(struct link *link, unsigned lane) {
  link->lanes[lane].arrival = ARRIVAL_AGAIN;
  link->lanes[lane].buffer = link->nowhere;
  link->repeats_arriving &= ~lane_bit(lane);
}

/* Both copies arrive at once. */
static int repeat_in_share(struct link *link, unsigned lane, unsigned other, uint8_t **place,
                           bool *is_bounced) {
  struct link_lane *shared = &link->lanes[other];
  const struct wire_header *header = &link->lanes[lane].header, *first = &shared->header;
  bool is_same = header->message == first->message && header->offset == first->offset &&
                 header->length == first->length && header->total == first->total;
  if (!is_same || !arrival_is_for_message(shared->arrival) || shared->arrival == ARRIVAL_PLACED ||
      shared->shares != 0) {
    return -EPROTO;
  }
  bool is_elsewhere = shared->arrival == ARRIVAL_STAGED || first->coded > 0;
  *place = is_elsewhere ? shared->destination : shared->buffer;
  *is_bounced = shared->arrival == ARRIVAL_BOUNCED;
  shared->shares = lane + 1;
  link->lanes[lane].shares = other + 1;
  return 0;
}

static bool repeat_has_brought(const struct link *link, unsigned lane) {
  const struct link_lane *receiving = &link->lanes[lane];
  return (receiving->elsewhere >> receiving->received % LINK_JOURNAL & 1) != 0 &&
         receiving->elsewhere_epoch == link->lanes[lane].epoch % WIRE_ORIGIN_EPOCHS;
}

int repeat_in_begins(struct link *link, unsigned lane, uint8_t **place, bool *is_bounced) {
  struct link_lane *receiving = &link->lanes[lane];
  const struct wire_origin *origin = &receiving->header.origin;
  bool is_repeat = (receiving->header.flags & WIRE_IS_REPEAT) != 0;
  enum origin known = ORIGIN_AHEAD;
  if (is_repeat) {
    if (origin->lane >= link->config.policy.lanes || origin->lane == lane) {
      return -EPROTO;
    }
    known = origin_of(link, origin);
  }
  if (known == ORIGIN_UNKNOWN) {
    return -ESTALE; /* it is sent again once this lane is lost, too */
  }
  if (known == ORIGIN_LANDED || repeat_has_brought(link, lane)) {
    arrives_again(link, lane);
    return 0;
  }
  int other = known == ORIGIN_ARRIVING ? origin->lane
              : is_repeat              ? -1
                                       : repeat_arriving(link, lane);
  int result = other >= 0 ? repeat_in_share(link, lane, (unsigned)other, place, is_bounced)
                          : incoming_begin(&link->incoming, &receiving->header, place, is_bounced);
  if (result == 0 && is_repeat) {
    link->repeats_arriving |= lane_bit(lane);
  }
  return result;
}

bool repeat_in_dropped(struct link *link, unsigned lane) {
  struct link_lane *dropped = &link->lanes[lane];
  bool is_shared = dropped->shares != 0;
  if (is_shared) {
    link->lanes[dropped->shares - 1].shares = 0;
    dropped->shares = 0;
  }
  link->repeats_arriving &= ~lane_bit(lane);
  return is_shared;
}

void repeat_in_landed(struct link *link, unsigned lane) {
  struct link_lane *landed = &link->lanes[lane];
  const struct wire_origin *origin = &landed->header.origin;
  if (landed->shares != 0) {
    unsigned other = landed->shares - 1;
    link->lanes[other].shares = landed->shares = 0;
    arrives_again(link, other);
  } else if ((landed->header.flags & WIRE_IS_REPEAT) != 0 &&
             origin_of(link, origin) == ORIGIN_AHEAD) {
    struct link_lane *first = &link->lanes[origin->lane];
    if (first->elsewhere_epoch != origin->epoch) {
      first->elsewhere = 0;
      first->elsewhere_epoch = origin->epoch;
    }
    first->elsewhere |= 1ull << origin->count % LINK_JOURNAL;
  }
  link->repeats_arriving &= ~lane_bit(lane);
}

void repeat_in_ends(struct link *link, unsigned lane, uint64_t now_ns) {
  struct link_lane *again = &link->lanes[lane];
  bool is_repeat = (again->header.flags & WIRE_IS_REPEAT) != 0;
  if (repeat_has_brought(link, lane)) {
    again->elsewhere &= ~(1ull << again->received % LINK_JOURNAL);
  }
  again->received++;
  again->arrived_ns = now_ns;
  link->unacked |= lane_bit(lane);
  link->counts.duplicates++;
  if (is_repeat && link_is_lane_up(link, again->header.origin.lane)) {
    link->unacked |= lane_bit(again->header.origin.lane); /* the sender waits for it */
  }
  credit_frame_arrived(&link->given, 0, again->received - again->acknowledged, is_repeat, is_repeat,
                       now_ns + CREDIT_DELAY_NS);
}
