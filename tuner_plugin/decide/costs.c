/* SPDX-License-Identifier: Apache-2.0 */
/* See costs.h. */
#include "tuner_plugin/decide/costs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"
#include "tuner_plugin/decide/limits.h"

/* ---- the text of a cell ---- */

int cell_parse(const char *text, struct profile_cell *cell) {
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
  *cell = (struct profile_cell){ (enum profile_algorithm)a, (enum profile_protocol)p,
                                 (uint32_t)channels };
  return 0;
}

const char *cell_format(struct profile_cell cell, char text[CELL_TEXT_MAX]) {
  int length = snprintf(text, CELL_TEXT_MAX, "%s.%s", profile_algorithm_name(cell.algorithm),
                        profile_protocol_name(cell.protocol));
  if (cell.channels > 0) {
    snprintf(text + length, CELL_TEXT_MAX - (size_t)length, "@%" PRIu32, cell.channels);
  }
  return text;
}

/* ---- the search: without a branch per cell, as costs change from call to call, and a mispredicted
 * branch takes longer than all the rest ---- */

/* FLT_MAX and what is beyond it: infinity, NaN, and, with their sign, all negative numbers. */
#define ORDER_NONE ((uint64_t)UINT32_C(0x7f7fffff) << 32)

/* A number that orders cells as NCCL's search does: by cost, then by index; cells that it skips
 * come last. Floats from 0 on compare like their bits. */
static uint64_t order_of(float cost, unsigned place) {
  uint32_t bits;
  memcpy(&bits, &cost, sizeof bits);
  bits = bits == UINT32_C(0x80000000) ? 0 : bits; /* -0.0 */
  return (uint64_t)bits << 32 | place;
}

static unsigned cell_of(struct decide_costs costs, unsigned place) {
  if (costs.protos == PROFILE_PROTOCOL_COUNT) {
    return place < COSTS_CELLS ? place : COSTS_UNKNOWN_CELL;
  }
  unsigned algorithm = place / (unsigned)costs.protos, protocol = place % (unsigned)costs.protos;
  return algorithm < PROFILE_ALGORITHM_COUNT && protocol < PROFILE_PROTOCOL_COUNT
             ? costs_cell(algorithm, protocol)
             : COSTS_UNKNOWN_CELL;
}

/* As NVIDIA/nccl v2.30.7-1 src/enqueue.cc:2028-2046; NaN fails both comparisons there, and so does
 * infinity. */
bool costs_choose(struct decide_costs costs, struct costs_choice *choice) {
  if (!costs.us || costs.algos <= 0 || costs.protos <= 0) {
    return false;
  }
  unsigned count = (unsigned)costs.algos * (unsigned)costs.protos;
  uint64_t even = ORDER_NONE,
           odd = ORDER_NONE; /* two chains, as each comparison depends on the one before */
  unsigned i = 0;
  for (; i + 1 < count; i += 2) {
    uint64_t first = order_of(costs.us[i], i), second = order_of(costs.us[i + 1], i + 1);
    even = first < even ? first : even;
    odd = second < odd ? second : odd;
  }
  if (i < count) {
    uint64_t last = order_of(costs.us[i], i);
    even = last < even ? last : even;
  }
  even = odd < even ? odd : even;
  if (even >= ORDER_NONE) {
    return false;
  }
  *choice = (struct costs_choice){ cell_of(costs, (unsigned)even), costs.us[(unsigned)even] };
  return true;
}

uint32_t costs_open(uint64_t bytes, struct decide_costs costs, unsigned *usual) {
  struct costs_choice choice;
  uint32_t open = 0;
  if (!costs_choose(costs, &choice) || choice.cell == COSTS_UNKNOWN_CELL) {
    return 0;
  }
  for (unsigned place = 0; place < COSTS_CELLS; place++) {
    struct profile_cell cell = cell_of_costs(place, 0);
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
