/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the table without a branch per cell: costs change from call to call, and a mispredicted
 * branch takes longer than all the rest. */
#include "tuner_plugin/decide/costs.h"

#include <string.h>

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
