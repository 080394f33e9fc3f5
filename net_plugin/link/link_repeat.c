/* SPDX-License-Identifier: Apache-2.0 */
/* link_repeat: the sender sends again on another lane what a lane holds that stands still.
 *
 * A lane stands still while TCP repairs a loss (link_tail.c says when). Its oldest chunks then go
 * out a second time, on a lane that moves, as far as the budget allows; new ones avoid it. Each
 * repeat names its origin, the lane and the number of the frame that went out first, so that the
 * receiver can drop whichever copy comes later (link_repeat_in.c).
 *
 * A chunk has at most two copies, each in the journal of its lane until it is acknowledged there or
 * its lane is lost and settled:
 *  - the first acknowledgement of either counts for the message, the second one for nothing;
 *  - it does not count before the other copy was written as a whole: the lane reads the payload. A
 *    lane that stands still may not take the rest for long: it gets the payload at another place
 *    (LINK_ORDER_MOVE);
 *  - a copy that its lane gives back is requeued only if the other one was given back before it.
 *    So a requeued chunk is on no lane, at either end. */
#include <string.h>

#include "net_plugin/link/link_state.h"

int repeat_of(const struct link_repeats *repeats, unsigned lane, uint64_t count, unsigned *side) {
  for (unsigned i = 0; i < repeats->count; i++) {
    for (*side = 0; *side < 2; ++*side) {
      const struct repeat_copy *copy = &repeats->pairs[i].copies[*side];
      if (!copy->is_gone && copy->lane == lane && copy->count == count) {
        return (int)i;
      }
    }
  }
  return -1;
}

static bool is_being_written(const struct link *link, const struct repeat_copy *copy) {
  return !copy->is_gone && (link_reading(link) & lane_bit(copy->lane)) != 0 &&
         copy->count + 1 == link->lanes[copy->lane].journal.sent;
}

/* The copy has left its journal. */
static void repeat_copy_ends(struct link_repeats *repeats, struct repeat *repeat, unsigned side) {
  repeat->copies[side].is_gone = true;
  if (repeat->copies[!side].is_gone) {
    *repeat = repeats->pairs[--repeats->count];
  }
}

bool repeat_acked(struct link *link, unsigned lane, uint64_t count, uint64_t now_ns) {
  unsigned side;
  int found = repeat_of(&link->repeats, lane, count, &side);
  if (found < 0) {
    return true;
  }
  struct repeat *repeat = &link->repeats.pairs[found];
  bool counts = !repeat->is_acked && !is_being_written(link, &repeat->copies[!side]);
  repeat->is_acked |= counts;
  if (!repeat->is_delivered) {
    repeat->is_delivered = true;
    repeat->delivered_ns = now_ns;
  } else if (side == 0) {
    link->counts.repeats_saved_ns += now_ns - repeat->delivered_ns;
  }
  repeat_copy_ends(&link->repeats, repeat, side);
  return counts;
}

/* The pair of the newest frame of the lane, if the peer has its chunk and all that the message
 * waits for is this lane; NULL: not so. */
static struct repeat *repeat_held(struct link *link, unsigned lane) {
  unsigned side;
  int found = repeat_of(&link->repeats, lane, link->lanes[lane].journal.sent - 1, &side);
  struct repeat *repeat = found >= 0 ? &link->repeats.pairs[found] : NULL;
  return repeat != NULL && repeat->is_delivered && !repeat->is_acked ? repeat : NULL;
}

bool repeat_written(struct link *link, unsigned lane) {
  struct repeat *held = repeat_held(link, lane);
  if (held != NULL) {
    held->is_acked = true;
  }
  return held != NULL;
}

bool repeat_move_payload(struct link *link, struct link_order *order, struct chunk *moved) {
  uint64_t lanes = link->repeats.count > 0 ? link->still & link_reading(link) : 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    const struct journal *journal = &link->lanes[lane].journal;
    struct chunk chunk = journal_at(journal, journal->sent - 1);
    struct repeat *held = repeat_held(link, lane);
    bool is_wanted = held != NULL && outgoing_is_live(&link->outgoing, chunk);
    uint8_t *copy = is_wanted ? coding_take_memory(link, lane, chunk.length) : NULL;
    if (copy == NULL) {
      continue;
    }
    memcpy(copy, outgoing_of(&link->outgoing, chunk)->data + chunk.offset, chunk.length);
    link->copied |= lane_bit(lane);
    *order = (struct link_order){ .kind = LINK_ORDER_MOVE, .lane = lane, .payload = copy };
    held->is_acked = true;
    *moved = chunk;
    return true;
  }
  return false;
}

enum repeat_return repeat_returned(struct link *link, unsigned lane, uint64_t count) {
  unsigned side;
  int found = repeat_of(&link->repeats, lane, count, &side);
  if (found < 0) {
    return REPEAT_REQUEUE;
  }
  struct repeat *repeat = &link->repeats.pairs[found];
  bool is_last = repeat->copies[!side].is_gone && !repeat->is_acked;
  enum repeat_return result = !is_last               ? REPEAT_NOTHING
                              : repeat->is_delivered ? REPEAT_ACK
                                                     : REPEAT_REQUEUE;
  repeat_copy_ends(&link->repeats, repeat, side);
  return result;
}

/* The oldest frame of the lane that may be repeated; journal.sent: none. */
static uint64_t repeat_next(const struct link *link, unsigned lane) {
  const struct link_lane *still = &link->lanes[lane];
  uint64_t acked = still->journal.acked;
  for (uint64_t count = still->repeated > acked ? still->repeated : acked;
       count < still->journal.sent; count++) {
    struct chunk chunk = journal_at(&still->journal, count);
    unsigned side;
    if (repeat_of(&link->repeats, lane, count, &side) < 0 &&
        outgoing_is_live(&link->outgoing, chunk)) {
      bool is_affordable =
          chunk.length <= link->repeats.budget || chunk.length <= REPEAT_SMALL_BYTES;
      return is_affordable ? count : still->journal.sent;
    }
  }
  return still->journal.sent;
}

/* The lane with the least to do. */
static int repeat_pick(const struct link *link, uint64_t lanes) {
  int best = -1;
  for (; lanes != 0; lanes &= lanes - 1) {
    int lane = __builtin_ctzll(lanes);
    if (best < 0 || link->lanes[lane].journal.bytes < link->lanes[best].journal.bytes) {
      best = lane;
    }
  }
  return best;
}

struct repeat_choice repeat_choose(const struct link *link, uint64_t writable) {
  struct repeat_choice none = { .to = -1 };
  uint64_t moving = writable & link->failover.up & ~link->writing & ~link->still & ~link->rdma;
  int to = repeat_pick(link, moving & ~link->full);
  if (to < 0 || link->policy == NULL || link->last_try_ns != 0 ||
      link->repeats.count == LINK_REPEATS) {
    return none;
  }
  for (uint64_t lanes = link->still; lanes != 0; lanes &= lanes - 1) {
    unsigned from = (unsigned)__builtin_ctzll(lanes);
    uint64_t count = repeat_next(link, from);
    if (count < link->lanes[from].journal.sent) {
      return (struct repeat_choice){ .to = to, .from = from, .count = count };
    }
  }
  return none;
}

struct chunk repeat_take(struct link *link, const struct repeat_choice *choice,
                         struct wire_origin *origin) {
  struct link_repeats *repeats = &link->repeats;
  struct link_lane *still = &link->lanes[choice->from];
  struct chunk chunk = journal_at(&still->journal, choice->count);
  still->repeated = choice->count + 1;
  repeats->budget -= chunk.length < repeats->budget ? chunk.length : repeats->budget;
  repeats->pairs[repeats->count++] = (struct repeat){
    .copies = { { .lane = (uint8_t)choice->from, .count = choice->count },
                { .lane = (uint8_t)choice->to, .count = link->lanes[choice->to].journal.sent } },
  };
  link->counts.repeats++;
  link->counts.repeated_bytes += chunk.length;
  *origin = (struct wire_origin){ (uint8_t)choice->from,
                                  (uint16_t)(still->sent_epoch % WIRE_ORIGIN_EPOCHS),
                                  (uint32_t)choice->count };
  return chunk;
}
