/* SPDX-License-Identifier: Apache-2.0 */
/* offer: NCCL's cost table of one call, in which the cells of two algorithms are offered.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_OFFER_H
#define TESTS_LIB_OFFER_H

#include "tuner_plugin/decide/costs.h"

struct offer {
  float us[PROFILE_ALGORITHM_COUNT][PROFILE_PROTOCOL_COUNT];
};

/* Negative: ruled out, as all other cells are. */
static inline struct offer offer_of(float tree_ll, float tree_simple, float ring_ll,
                                    float ring_simple) {
  struct offer offer;
  for (unsigned cell = 0; cell < COSTS_CELLS; cell++) {
    offer.us[cell / PROFILE_PROTOCOL_COUNT][cell % PROFILE_PROTOCOL_COUNT] = -1.0f;
  }
  offer.us[PROFILE_TREE][PROFILE_LL] = tree_ll;
  offer.us[PROFILE_TREE][PROFILE_SIMPLE] = tree_simple;
  offer.us[PROFILE_RING][PROFILE_LL] = ring_ll;
  offer.us[PROFILE_RING][PROFILE_SIMPLE] = ring_simple;
  return offer;
}

/* As a tuner gets it. */
static inline struct decide_costs offer_costs(struct offer *offer) {
  return (struct decide_costs){ &offer->us[0][0], PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
}

#endif
