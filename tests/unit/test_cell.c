/* SPDX-License-Identifier: Apache-2.0 */
/* cell: names, and what a calibration may try: nothing that NCCL ruled out, and nothing hopeless.
 */
#include "tuner_plugin/decide/limits.h"
#include "tuner_plugin/decide/costs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

enum { ALGOS = 7, PROTOS = 3 };

struct table {
  float us[ALGOS][PROTOS];
};

static struct table offer(float tree_ll, float tree_simple, float ring_ll, float ring_simple) {
  struct table table;
  for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
    table.us[cell / PROTOS][cell % PROTOS] = -1.0f;
  }
  table.us[PROFILE_TREE][PROFILE_LL] = tree_ll;
  table.us[PROFILE_TREE][PROFILE_SIMPLE] = tree_simple;
  table.us[PROFILE_RING][PROFILE_LL] = ring_ll;
  table.us[PROFILE_RING][PROFILE_SIMPLE] = ring_simple;
  return table;
}

/* "ring.ll: tree.simple ring.ll": NCCL's own choice, and all that is open. */
static const char *open_text(struct table *table, int algos, uint64_t bytes) {
  static char text[1024];
  char name[CELL_TEXT_MAX];
  unsigned usual = 0;
  uint32_t open =
      costs_open(bytes, (struct decide_costs){ &table->us[0][0], algos, PROTOS }, &usual);
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
  struct table table = offer(-1.0f, 10.0f, 9.0f, NAN);
  assert_string_equal(open_text(&table, ALGOS, 8), "ring.ll: tree.simple ring.ll");
  assert_string_equal(open_text(&table, 6, 8), "ring.ll: tree.simple ring.ll"); /* 2.22: no PAT */
  table = offer(-1.0f, INFINITY, -1.0f, NAN);
  assert_string_equal(open_text(&table, ALGOS, 8), "none:");
  assert_int_equal(costs_open(8, (struct decide_costs){ NULL, ALGOS, PROTOS }, &usual), 0);
}

UNIT_TEST(only_offered_cells_whatever_the_table) {
  srand(5);
  for (int round = 0; round < 2000; round++) {
    struct table table;
    unsigned usual = 0;
    for (int cell = 0; cell < ALGOS * PROTOS; cell++) {
      table.us[cell / PROTOS][cell % PROTOS] =
          rand() % 3 ? -1.0f : (float)(rand() % 1000) * (rand() % 2 ? 1.0f : 1024.0f);
    }
    struct table before = table;
    uint32_t open = costs_open(8, (struct decide_costs){ &table.us[0][0], ALGOS, PROTOS }, &usual);
    assert_memory_equal(&table, &before, sizeof table);
    assert_true(open == 0 || (open >> usual & 1));
    for (unsigned place = 0; place < COSTS_CELLS; place++) {
      float cost = table.us[place / PROTOS][place % PROTOS];
      float cheapest = table.us[usual / PROTOS][usual % PROTOS];
      assert_true(!(open >> place & 1) ||
                  (cost >= cheapest && cost <= CALIBRATE_COST_FACTOR * cheapest));
    }
  }
}

UNIT_TEST(hopeless_cells_are_left_out) {
  struct table table = offer(10.0f, 30.0f, 45.0f, 11.0f);
  assert_string_equal(open_text(&table, ALGOS, 1 << 20),
                      "tree.ll: tree.ll tree.simple ring.simple"); /* 45 is over 4 x 10 */
  table.us[PROFILE_RING][PROFILE_LL] = 35;
  assert_string_equal(open_text(&table, ALGOS, 1 << 20),
                      "tree.ll: tree.ll tree.simple ring.ll ring.simple");
  assert_string_equal(open_text(&table, ALGOS, 2 << 20), /* LL, unless NCCL itself chose it */
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
