/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that keep a profile from making a job fail, hang or far slower. */
#include "tuner_plugin/decide/guard.h"

#include <stddef.h>
#include <string.h>

/* NCCL multiplies the cost of rings that would lose fp8 precision by 1024, so that only a call with
 * nothing else gets one (NVIDIA/nccl v2.30.7-1 src/enqueue.cc:2015-2021). Tuners do not get the
 * datatype, but a factor this large between two cells reveals that case. Real costs of two usable
 * cells never differ that much, so the same rule also rejects cells that NCCL considers absurd. */
#define GUARD_COST_RATIO 256.0

static float cost_at(struct decide_costs costs, unsigned algo, unsigned proto) {
  return costs.us[(size_t)algo * (size_t)costs.protos + proto];
}

/* decide_cell of a place in the table; NCCL has had three protocols in all releases. */
static unsigned cell_at(struct decide_costs costs, unsigned place) {
  if (costs.protos == PROFILE_PROTOCOL_COUNT) {
    return decide_cell(0, 0) + place;
  }
  return decide_cell(place / (unsigned)costs.protos, place % (unsigned)costs.protos);
}

/* A number that orders cells as NCCL's search does: by cost, then by index; cells that it skips
 * come last. Floats from 0 on compare like their bits, which avoids a branch per cell: costs change
 * from call to call, and a mispredicted branch takes longer than all the rest. */
static uint64_t order_of(float cost, unsigned place) {
  uint32_t bits;
  memcpy(&bits, &cost, sizeof bits);
  bits = bits == UINT32_C(0x80000000) ? 0 : bits; /* -0.0 */
  return (uint64_t)bits << 32 | place;
}

/* FLT_MAX and what is beyond it: infinity, NaN, and, with their sign, all negative numbers. */
#define ORDER_NONE ((uint64_t)UINT32_C(0x7f7fffff) << 32)

/* NCCL's own choice: the first of the cheapest cells that are not negative
 * (src/enqueue.cc:2028-2046; NaN fails both comparisons, and so does infinity). Returns false if
 * there is none. */
static bool find_default(struct decide_costs costs, unsigned *place) {
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
  *place = (unsigned)even;
  return even < ORDER_NONE;
}

static enum guard_verdict guard_check(struct decide_costs costs, unsigned algo, unsigned proto,
                                      unsigned over) {
  if (!costs.us || costs.algos <= 0 || costs.protos <= 0 || algo >= (unsigned)costs.algos ||
      proto >= (unsigned)costs.protos) {
    return GUARD_REFUSED; /* 2.22 has 6 algorithms, without PAT */
  }
  /* A negative cell is one that this communicator, the hardware or the user's NCCL_ALGO and
   * NCCL_PROTO rule out. NCCL does not check again after the tuner: enabling one hangs or corrupts
   * data. */
  float wanted = cost_at(costs, algo, proto);
  if (!(wanted >= 0)) {
    return GUARD_REFUSED;
  }
  unsigned place;
  if (!find_default(costs, &place)) {
    return GUARD_REFUSED;
  }
  if (over != DECIDE_ANY_CELL && over != cell_at(costs, place)) {
    return GUARD_REFUSED;
  }
  if (place == algo * (unsigned)costs.protos + proto) {
    return GUARD_IS_DEFAULT;
  }
  double limit = GUARD_COST_RATIO * (double)costs.us[place];
  return (double)wanted < limit ? GUARD_OVERRIDE : GUARD_REFUSED;
}

enum guard_verdict guard_check_cell(struct decide_costs costs, unsigned algo, unsigned proto) {
  return guard_check(costs, algo, proto, DECIDE_ANY_CELL);
}

enum guard_verdict guard_check_choice(struct decide_costs costs,
                                      const struct decide_choice *choice) {
  return guard_check(costs, choice->algo, choice->proto, choice->over);
}

bool guard_is_worth(uint64_t default_ns, uint64_t choice_ns, uint32_t noise_permille) {
  uint64_t needed = 2 * (uint64_t)noise_permille;
  if (needed < GUARD_GAIN_PERMILLE) {
    needed = GUARD_GAIN_PERMILLE;
  }
  /* 128 bits: times come from files. */
  unsigned __int128 with_gain = (unsigned __int128)choice_ns * (1000 + needed);
  return with_gain <= (unsigned __int128)default_ns * 1000;
}

bool guard_allows_blind(int coll, unsigned algo, unsigned proto) {
  /* LL128 corrupts data where the path from GPU to NIC does not keep 128-byte stores whole, and
   * only NCCL knows that path. Tree exists for AllReduce alone. */
  if (proto == PROFILE_LL128) {
    return false;
  }
  return algo == PROFILE_RING || (algo == PROFILE_TREE && coll == PROFILE_ALLREDUCE);
}

int guard_bound_channels(unsigned algo, unsigned wanted, int given) {
  /* The CollNet path takes the number as it is, even if the communicator has fewer channels
   * (src/enqueue.cc:625); the others clamp it. */
  if (algo == PROFILE_COLLNET_DIRECT || algo == PROFILE_COLLNET_CHAIN) {
    return 0;
  }
  if (given > 0 && (unsigned)given < wanted) {
    return 0;
  }
  return (int)wanted;
}
