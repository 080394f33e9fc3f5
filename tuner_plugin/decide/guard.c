/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that keep a profile from making a job fail, hang or far slower. */
#include "tuner_plugin/decide/guard.h"

#include "tuner_plugin/decide/limits.h"

enum guard_verdict guard_check(struct decide_costs costs, unsigned algo, unsigned proto,
                               unsigned over) {
  struct costs_choice usual;
  if (!costs_choose(costs, &usual)) {
    return GUARD_REFUSED;
  }
  /* A negative cell is one that this communicator, the hardware or the user's NCCL_ALGO and
   * NCCL_PROTO rule out. NCCL does not check again after the tuner: enabling one hangs or corrupts
   * data. */
  float wanted = costs_at(costs, algo, proto);
  if (!(wanted >= 0)) {
    return GUARD_REFUSED;
  }
  if (over != DECIDE_ANY_CELL && over != usual.cell) {
    return GUARD_REFUSED;
  }
  if (usual.cell == costs_cell(algo, proto)) {
    return GUARD_IS_DEFAULT;
  }
  double limit = GUARD_COST_RATIO * (double)usual.us;
  return (double)wanted < limit ? GUARD_OVERRIDE : GUARD_REFUSED;
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

void guard_drop_rows(struct profile *profile) {
  for (size_t i = 0; i < profile->table_count; i++) {
    struct profile_table *table = &profile->tables[i];
    size_t kept = 0;
    for (size_t r = 0; r < table->row_count; r++) {
      const struct profile_row *row = &table->rows[r];
      if (!row->is_measured ||
          guard_is_worth(row->default_ns, row->choice_ns, row->noise_permille)) {
        table->rows[kept++] = *row;
      }
    }
    table->row_count = kept;
  }
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
