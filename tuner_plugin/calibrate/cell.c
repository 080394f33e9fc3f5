/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. */
#include "tuner_plugin/calibrate/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/quantity.h"

int cell_parse(const char *text, struct cell *cell) {
  char algorithm[24], protocol[16];
  int end = 0;
  int64_t channels = 0;
  if (sscanf(text, "%23[a-z].%15[a-z0-9]%n", algorithm, protocol, &end) != 2) {
    return -EINVAL;
  }
  int a = quantity_find_word(PROFILE_ALGORITHM_WORDS, algorithm);
  int p = quantity_find_word(PROFILE_PROTOCOL_WORDS, protocol);
  bool is_bounded = text[end] == '@';
  if (a < 0 || p < 0 || (text[end] && !is_bounded) ||
      (is_bounded && (quantity_parse_int(text + end + 1, &channels) < 0 || channels < 1 ||
                      channels > PROFILE_CHANNELS_MAX))) {
    return -EINVAL;
  }
  *cell = (struct cell){ (enum profile_algorithm)a, (enum profile_protocol)p, (uint32_t)channels };
  return 0;
}

const char *cell_format(struct cell cell, char text[CELL_TEXT_MAX]) {
  int length = snprintf(text, CELL_TEXT_MAX, "%s.%s", profile_algorithm_name(cell.algorithm),
                        profile_protocol_name(cell.protocol));
  if (cell.channels > 0) {
    snprintf(text + length, CELL_TEXT_MAX - (size_t)length, "@%" PRIu32, cell.channels);
  }
  return text;
}

uint32_t cell_open(uint64_t bytes, struct decide_costs costs, unsigned *usual) {
  struct costs_choice choice;
  uint32_t open = 0;
  if (!costs_choose(costs, &choice) || choice.cell == COSTS_UNKNOWN_CELL) {
    return 0;
  }
  for (unsigned place = 0; place < COSTS_CELLS; place++) {
    struct cell cell = cell_of_costs(place, 0);
    double cost = (double)costs_at(costs, cell.algorithm, cell.protocol);
    bool is_hopeless = (cell.protocol == PROFILE_LL && bytes > CALIBRATE_LL_BYTES) ||
                       cost > (double)choice.us * CALIBRATE_COST_FACTOR;
    if (cost >= 0 && (place == choice.cell || !is_hopeless)) {
      open |= UINT32_C(1) << place;
    }
  }
  *usual = choice.cell;
  return open;
}
