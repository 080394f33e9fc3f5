/* SPDX-License-Identifier: Apache-2.0 */
/* link_repeat: the sender sends again on another lane what a lane holds that stands still.
 *
 * A lane stands still while TCP repairs a loss (link_tail.c says when). Its oldest chunks then go
 * out a second time, on a lane that moves, as far as the budget allows; new ones avoid it. The
 * receiver takes whichever copy is complete first.
 *
 * A message does not complete while a lane is writing from it. One that stands still may not take
 * the rest for long: it gets the payload at another place (LINK_ORDER_MOVE). */
#include <string.h>

#include "net_plugin/link/link_state.h"

bool repeat_move_payload(struct link *link, struct link_order *order, uint64_t now_ns) {
  for (uint64_t lanes = link->still & link_reading(link); lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    struct chunk chunk = link->lanes[lane].chunk;
    bool is_wanted = link->lanes[lane].is_overtaken && outgoing_is_live(&link->outgoing, chunk);
    uint8_t *copy = is_wanted ? coding_take_memory(link, lane, chunk.length) : NULL;
    if (copy == NULL) {
      continue;
    }
    memcpy(copy, outgoing_of(&link->outgoing, chunk)->data + chunk.offset, chunk.length);
    link->copied |= lane_bit(lane);
    *order = (struct link_order){ .kind = LINK_ORDER_MOVE, .lane = lane, .payload = copy };
    carry_released(link, lane, now_ns);
    return true;
  }
  return false;
}

/* The oldest chunk that one lane carries, which stands still; flight.next: none, or too large for
 * what may be sent twice now. */
static uint64_t repeat_next(const struct link *link) {
  const struct flight *flight = &link->flight;
  for (uint64_t number = flight->first; number < flight->next; number++) {
    const struct flight_chunk *chunk = flight_at(flight, number);
    bool is_still = chunk->state == FLIGHT_SENT && chunk->lanes[1] == FLIGHT_NO_LANE &&
                    (link->still & lane_bit(chunk->lanes[0])) != 0;
    if (is_still && outgoing_is_live(&link->outgoing, chunk->chunk)) {
      uint32_t bytes = chunk->chunk.length;
      bool is_affordable = bytes <= link->repeat_budget || bytes <= REPEAT_SMALL_BYTES;
      return is_affordable ? number : flight->next;
    }
  }
  return flight->next;
}

/* The lane with the least to do. */
static int repeat_pick(const struct link *link, uint64_t lanes) {
  int best = -1;
  for (; lanes != 0; lanes &= lanes - 1) {
    int lane = __builtin_ctzll(lanes);
    if (best < 0 ||
        link->lanes[lane].policy.in_flight_bytes < link->lanes[best].policy.in_flight_bytes) {
      best = lane;
    }
  }
  return best;
}

struct repeat_choice repeat_choose(const struct link *link, uint64_t writable) {
  struct repeat_choice choice = { .to = -1 };
  uint64_t moving = writable & link->up & ~link->writing & ~link->still & ~link->rdma;
  if (moving == 0 || link->policy == NULL || link->last_try_ns != 0) {
    return choice;
  }
  choice.number = repeat_next(link);
  choice.to = choice.number < link->flight.next ? repeat_pick(link, moving) : -1;
  return choice;
}

void repeat_take(struct link *link, const struct repeat_choice *choice) {
  uint32_t bytes = flight_at(&link->flight, choice->number)->chunk.length;
  link->repeat_budget -= bytes < link->repeat_budget ? bytes : link->repeat_budget;
  link->counts.repeats++;
  link->counts.repeated_bytes += bytes;
}
