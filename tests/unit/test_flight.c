/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks by their numbers: sent, carried by two lanes, given back, acknowledged in any order. */
#include "net_plugin/link/flight.h"

#include <string.h>

#include "tests/lib/unit.h"

static struct flight_chunk ring[LINK_FLIGHT];
static struct flight flight;

static int set_up(void **state) {
  (void)state;
  memset(ring, 0, sizeof ring);
  flight = (struct flight){ .ring = ring };
  return 0;
}

static uint64_t cut(uint32_t length) {
  return flight_cut(&flight, (struct chunk){ .length = length });
}

UNIT_TEST_WITH(the_oldest_unsent_goes_first, set_up, NULL) {
  for (unsigned i = 0; i < 3; i++) {
    assert_true(cut(i) == i);
  }
  flight_send(&flight, 0, 5);
  assert_true(flight_unsent(&flight) == 1);
  flight_send(&flight, 1, 6);
  assert_true(flight_give_back(&flight, 0, 5));
  assert_true(flight_unsent(&flight) == 0 && flight.unsent == 2);
}

UNIT_TEST_WITH(two_lanes_may_carry_one, set_up, NULL) {
  cut(1);
  flight_send(&flight, 0, 5);
  flight_send(&flight, 0, 6);
  assert_true(flight_is_carried(flight_at(&flight, 0), 5));
  assert_false(flight_give_back(&flight, 0, 5)); /* the other one has it still */
  assert_false(flight_is_carried(flight_at(&flight, 0), 5));
  assert_true(flight_is_carried(flight_at(&flight, 0), 6));
  flight_send(&flight, 0, 7);
  assert_false(flight_give_back(&flight, 0, 7));
  assert_true(flight_give_back(&flight, 0, 6));
}

UNIT_TEST_WITH(the_ring_goes_on_behind_what_is_done, set_up, NULL) {
  for (unsigned round = 0; round < 3; round++) {
    while (!flight_is_full(&flight)) {
      flight_send(&flight, cut(1), 0);
    }
    uint64_t first = flight.first;
    flight_end(&flight, first + 1);
    assert_true(flight.first == first && flight_is_full(&flight));
    flight_end(&flight, first);
    assert_true(flight.first == first + 2);
    for (uint64_t number = flight.first; number < flight.next; number++) {
      flight_end(&flight, number);
    }
    assert_true(flight.first == flight.next && flight.unsent == 0);
  }
}

/* A lane that was given up had brought it all the same. */
UNIT_TEST_WITH(what_is_to_be_sent_again_may_be_acknowledged, set_up, NULL) {
  cut(1);
  flight_send(&flight, 0, 5);
  assert_true(flight_give_back(&flight, 0, 5));
  flight_end(&flight, 0);
  assert_true(flight.unsent == 0 && flight.first == 1);
}

UNIT_MAIN(NULL, NULL)
