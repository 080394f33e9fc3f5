/* SPDX-License-Identifier: Apache-2.0 */
/* cell: names, and what a calibration may try: nothing that NCCL ruled out, and nothing hopeless.
 */
#include "tuner_plugin/decide/limits.h"
#include "tuner_plugin/decide/costs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/offer.h"
#include "tests/lib/unit.h"

/* "ring.ll: tree.simple ring.ll": NCCL's own choice, and all that is open. */
static const char *open_text(struct decide_costs costs, uint64_t bytes) {
  static char text[1024];
  char name[CELL_TEXT_MAX];
  unsigned usual = 0;
  uint32_t open = costs_open(bytes, costs, &usual);
  snprintf(text, sizeof text, "%s:", open ? cell_format(cell_of_costs(usual, 0), name) : "none");
  for (unsigned place = 0; place < COSTS_CELLS; place++) {
    if (open >> place & 1) {
      strcat(text, " ");
      strcat(text, cell_format(cell_of_costs(place, 0), name));
    }
  }
  return text;
}

UNIT_TEST(never_what_nccl_ruled_out) {
  unsigned usual;
  struct offer offer = offer_of(-1.0f, 10.0f, 9.0f, NAN);
  struct decide_costs costs = offer_costs(&offer);
  assert_string_equal(open_text(costs, 8), "ring.ll: tree.simple ring.ll");
  costs.algos = 6; /* 2.22: no PAT */
  assert_string_equal(open_text(costs, 8), "ring.ll: tree.simple ring.ll");
  offer = offer_of(-1.0f, INFINITY, -1.0f, NAN);
  assert_string_equal(open_text(offer_costs(&offer), 8), "none:");
  costs.us = NULL;
  assert_int_equal(costs_open(8, costs, &usual), 0);
}

UNIT_TEST(only_offered_cells_whatever_the_table) {
  srand(5);
  for (int round = 0; round < 2000; round++) {
    struct offer offer;
    struct decide_costs costs = offer_costs(&offer);
    unsigned usual = 0;
    for (unsigned place = 0; place < COSTS_CELLS; place++) {
      costs.us[place] = rand() % 3 ? -1.0f : (float)(rand() % 1000) * (rand() % 2 ? 1.0f : 1024.0f);
    }
    struct offer before = offer;
    uint32_t open = costs_open(8, costs, &usual);
    assert_memory_equal(&offer, &before, sizeof offer);
    assert_true(open == 0 || (open >> usual & 1));
    for (unsigned place = 0; place < COSTS_CELLS; place++) {
      float cost = costs.us[place], cheapest = costs.us[usual];
      assert_true(!(open >> place & 1) ||
                  (cost >= cheapest && cost <= CALIBRATE_COST_FACTOR * cheapest));
    }
  }
}

UNIT_TEST(hopeless_cells_are_left_out) {
  struct offer offer = offer_of(10.0f, 30.0f, 45.0f, 11.0f);
  struct decide_costs costs = offer_costs(&offer);
  assert_string_equal(open_text(costs, 1 << 20),
                      "tree.ll: tree.ll tree.simple ring.simple"); /* 45 is over 4 x 10 */
  offer.us[PROFILE_RING][PROFILE_LL] = 35;
  assert_string_equal(open_text(costs, 1 << 20),
                      "tree.ll: tree.ll tree.simple ring.ll ring.simple");
  assert_string_equal(open_text(costs, 2 << 20), /* LL, unless NCCL itself chose it */
                      "tree.ll: tree.ll tree.simple ring.simple");
}

UNIT_TEST(cells_have_names) {
  static const char *const names[] = { "tree.ll128@3", "ring.simple", "collnetchain.simple" };
  static const char *const bad[] = { "",
                                     "ring",
                                     "ring.simple@0",
                                     "ring.simple@65",
                                     "ring.simple@",
                                     "ring.simple@1@2",
                                     "ring.ll:8",
                                     "best.ll",
                                     ".ll",
                                     "ring.ll ",
                                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.ll" };
  struct profile_cell cell;
  char text[CELL_TEXT_MAX];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_int_equal(cell_parse(names[i], &cell), 0);
    assert_string_equal(cell_format(cell, text), names[i]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(cell_parse(bad[i], &cell), -EINVAL);
  }
}
