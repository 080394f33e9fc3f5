/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that keep a profile from making a job wrong, hang or far slower. */
#include "tuner_plugin/decide/guard.h"

#include <float.h>
#include <stddef.h>

/* NCCL multiplies the cost of rings that would lose fp8 precision by 1024, so that only a call with
 * nothing else gets one (NVIDIA/nccl v2.30.7-1 src/enqueue.cc:2015-2021). The datatype is not told
 * to tuners; a factor this large between two cells is how it shows. Honest costs of two usable
 * cells never lie that far apart either, so the same rule refuses what NCCL holds to be absurd. */
#define GUARD_COST_RATIO 256.0

static float cost_at(struct decide_costs costs, unsigned algo, unsigned proto) {
  return costs.us[(size_t)algo * (size_t)costs.protos + proto];
}

/* NCCL's own choice: the first of the cheapest cells that are not negative
 * (src/enqueue.cc:2028-2046; NaN fails both comparisons, and so does infinity). Returns false if
 * there is none. */
static bool find_default(struct decide_costs costs, unsigned *algo, unsigned *proto) {
  bool is_found = false;
  float cheapest = FLT_MAX;
  for (unsigned a = 0; a < (unsigned)costs.algos; a++) {
    for (unsigned p = 0; p < (unsigned)costs.protos; p++) {
      float cost = cost_at(costs, a, p);
      if (cost >= 0 && cost < cheapest) {
        is_found = true;
        cheapest = cost;
        *algo = a;
        *proto = p;
      }
    }
  }
  return is_found;
}

static enum guard_verdict check(struct decide_costs costs, unsigned algo, unsigned proto,
                                unsigned over) {
  if (!costs.us || costs.algos <= 0 || costs.protos <= 0 || algo >= (unsigned)costs.algos ||
      proto >= (unsigned)costs.protos) {
    return GUARD_REFUSED; /* 2.22 has 6 algorithms, without PAT */
  }
  /* A negative cell is one that this communicator, the hardware or the user's NCCL_ALGO and
   * NCCL_PROTO rule out. NCCL does not look again after the tuner: reviving one hangs or corrupts.
   */
  float wanted = cost_at(costs, algo, proto);
  if (!(wanted >= 0)) {
    return GUARD_REFUSED;
  }
  unsigned default_algo, default_proto;
  if (!find_default(costs, &default_algo, &default_proto)) {
    return GUARD_REFUSED;
  }
  if (over != DECIDE_ANY_CELL && over != decide_cell(default_algo, default_proto)) {
    return GUARD_REFUSED;
  }
  if (default_algo == algo && default_proto == proto) {
    return GUARD_IS_DEFAULT;
  }
  double limit = GUARD_COST_RATIO * (double)cost_at(costs, default_algo, default_proto);
  return (double)wanted < limit ? GUARD_OVERRIDE : GUARD_REFUSED;
}

enum guard_verdict guard_check_cell(struct decide_costs costs, unsigned algo, unsigned proto) {
  return check(costs, algo, proto, DECIDE_ANY_CELL);
}

enum guard_verdict guard_check_row(struct decide_costs costs, const struct decide_row *row) {
  return check(costs, row->algo, row->proto, row->over);
}

/* Thousandths; a smaller gain is not worth a choice that may turn out wrong. */
enum { GUARD_GAIN_PERMILLE = 30 };

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
