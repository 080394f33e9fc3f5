/* SPDX-License-Identifier: Apache-2.0 */
/* flight: the chunks of a sender, by number, from when they are cut until the peer has them.
 * Owns: only its own struct; the array is the caller's.  Threads: the link's.
 * Blocks: never.  Fails: cannot; the caller asks flight_is_full.
 *
 * Chunks get their numbers in the order in which they are cut. The ring has those from `first`, the
 * oldest that is not done, to `next`:
 *
 *            flight_cut            flight_send       flight_end
 *    (next) ------------> UNSENT --------------> SENT ---------> DONE
 *                          | ^    flight_give_back |              ^
 *                          | +---------------------+              |
 *                          +--------------------------------------+
 *
 * UNSENT chunks are acknowledged, too: a lane that was given up may have brought them. */
#ifndef NET_PLUGIN_LINK_FLIGHT_H
#define NET_PLUGIN_LINK_FLIGHT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"

/* A slice of a message. */
struct chunk {
  uint64_t offset;
  uint32_t length;
  uint32_t message; /* low half of the sequence number; at most LINK_WINDOW are in flight */
};

enum flight_state { FLIGHT_DONE, FLIGHT_UNSENT, FLIGHT_SENT };

#define FLIGHT_COPIES 2
#define FLIGHT_NO_LANE UINT8_MAX

struct flight_chunk {
  struct chunk chunk;
  uint8_t state;
  uint8_t lanes[FLIGHT_COPIES]; /* that carry it: SENT; the first one first */
};

struct flight {
  struct flight_chunk *ring; /* of LINK_FLIGHT */
  uint64_t first, next;
  unsigned unsent;
};

/* One that is older than `first` is DONE. */
static inline struct flight_chunk *flight_at(const struct flight *flight, uint64_t number) {
  assert(number < flight->next && flight->next - number <= LINK_FLIGHT);
  return &flight->ring[number % LINK_FLIGHT];
}

static inline bool flight_is_full(const struct flight *flight) {
  return flight->next - flight->first == LINK_FLIGHT;
}

/* A chunk was cut; its number. */
static inline uint64_t flight_cut(struct flight *flight, struct chunk chunk) {
  assert(!flight_is_full(flight));
  flight->ring[flight->next % LINK_FLIGHT] = (struct flight_chunk){
    .chunk = chunk, .state = FLIGHT_UNSENT, .lanes = { FLIGHT_NO_LANE, FLIGHT_NO_LANE }
  };
  flight->unsent++;
  return flight->next++;
}

/* The oldest UNSENT one. There must be one. */
static inline uint64_t flight_unsent(const struct flight *flight) {
  uint64_t number = flight->first;
  while (flight_at(flight, number)->state != FLIGHT_UNSENT) {
    number++;
  }
  return number;
}

static inline bool flight_is_carried(const struct flight_chunk *chunk, unsigned lane) {
  return chunk->lanes[0] == lane || chunk->lanes[1] == lane;
}

/* The lane gets it: an UNSENT one, or a SENT one that has one copy. */
static inline void flight_send(struct flight *flight, uint64_t number, unsigned lane) {
  struct flight_chunk *chunk = flight_at(flight, number);
  bool is_first = chunk->state == FLIGHT_UNSENT;
  assert(is_first || (chunk->state == FLIGHT_SENT && chunk->lanes[1] == FLIGHT_NO_LANE));
  flight->unsent -= is_first ? 1 : 0;
  chunk->lanes[is_first ? 0 : 1] = (uint8_t)lane;
  chunk->state = FLIGHT_SENT;
}

/* The lane, which carries it, does not any more. true: no lane does, and it is UNSENT. */
static inline bool flight_give_back(struct flight *flight, uint64_t number, unsigned lane) {
  struct flight_chunk *chunk = flight_at(flight, number);
  assert(flight_is_carried(chunk, lane));
  chunk->lanes[0] = chunk->lanes[0] == lane ? chunk->lanes[1] : chunk->lanes[0];
  chunk->lanes[1] = FLIGHT_NO_LANE;
  if (chunk->lanes[0] != FLIGHT_NO_LANE) {
    return false;
  }
  chunk->state = FLIGHT_UNSENT;
  flight->unsent++;
  return true;
}

/* It is acknowledged, or of no interest any more. */
static inline void flight_end(struct flight *flight, uint64_t number) {
  struct flight_chunk *chunk = flight_at(flight, number);
  flight->unsent -= chunk->state == FLIGHT_UNSENT ? 1 : 0;
  chunk->state = FLIGHT_DONE;
  chunk->lanes[0] = chunk->lanes[1] = FLIGHT_NO_LANE;
  while (flight->first < flight->next && flight_at(flight, flight->first)->state == FLIGHT_DONE) {
    flight->first++;
  }
}

/* Nothing of it is of interest any more. */
static inline void flight_end_all(struct flight *flight) {
  flight->first = flight->next;
  flight->unsent = 0;
}

#endif
