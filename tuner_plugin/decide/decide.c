/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the profile's row for a call and, if the guard agrees, writes its choice. */
#include "tuner_plugin/decide/decide.h"

#include <float.h>
#include <stddef.h>

#include "tuner_plugin/decide/limits.h"

/* ---- guard: the rules that keep a profile from making a job fail, hang or far slower ---- */

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

/* The same without costs: only cells that every multi-node communicator of NCCL 2.21 has. */
static bool guard_allows_blind(int coll, unsigned algo, unsigned proto) {
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

/* ---- rows ---- */

struct decide_tables decide_tables_of(const struct profile *profile, size_t ranks, size_t nodes) {
  struct decide_tables tables = { .row_count = 0 };
  if (nodes < 2 || nodes > UINT32_MAX || ranks % nodes != 0 || ranks / nodes > UINT32_MAX) {
    return tables;
  }
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    const struct profile_table *table = profile_find_table(
        profile, (enum profile_collective)coll, (uint32_t)nodes, (uint32_t)(ranks / nodes));
    tables.of[coll] = table;
    tables.row_count += table ? table->row_count : 0;
  }
  return tables;
}

const struct profile_row *decide_find(const struct decide_tables *tables, int coll,
                                      uint64_t bytes) {
  return coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT ? NULL
                                                      : profile_find_row(tables->of[coll], bytes);
}

static void write_channels(const struct profile_cell *cell, int *channels) {
  int bounded = guard_bound_channels(cell->algorithm, cell->channels, *channels);
  if (bounded > 0) {
    *channels = bounded;
  }
}

bool decide_put(const struct profile_cell *cell, unsigned over, struct decide_costs costs,
                int *channels) {
  struct costs_choice usual;
  float wanted = costs_at(costs, cell->algorithm, cell->protocol);
  /* A negative cell is one that this communicator, the hardware or the user's NCCL_ALGO and
   * NCCL_PROTO rule out. NCCL does not check again after the tuner: enabling one hangs or corrupts
   * data. */
  if (!costs_choose(costs, &usual) || !(wanted >= 0) ||
      (over != DECIDE_ANY_CELL && over != usual.cell)) {
    return false;
  }
  if (usual.cell != costs_cell(cell->algorithm, cell->protocol)) {
    if (!((double)wanted < GUARD_COST_RATIO * (double)usual.us)) {
      return false;
    }
    /* Cheaper than all others, of which none costs nothing then. */
    costs.us[(size_t)cell->algorithm * (size_t)costs.protos + cell->protocol] = 0.0f;
  }
  write_channels(cell, channels);
  return true;
}

bool decide_by_costs(const struct decide_tables *tables, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels) {
  const struct profile_row *row = decide_find(tables, coll, bytes);
  if (!row) {
    return false;
  }
  unsigned over = costs_cell(row->over.algorithm, row->over.protocol);
  return decide_put(&row->cell, row->is_measured ? over : DECIDE_ANY_CELL, costs, channels);
}

bool decide_by_number(const struct decide_tables *tables, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels) {
  const struct profile_row *row = decide_find(tables, coll, bytes);
  if (!row || !guard_allows_blind(coll, row->cell.algorithm, row->cell.protocol)) {
    return false;
  }
  *algo = row->cell.algorithm;
  *proto = row->cell.protocol;
  write_channels(&row->cell, channels);
  return true;
}

/* ---- CollNet ---- */

/* What NCCL writes into cells that are not available (NCCL_ALGO_PROTO_IGNORE, nccl_tuner.h). */
#define IGNORED (-1.0f)

struct collnet_range collnet_range_of(size_t ranks, size_t nodes, bool is_halved) {
  struct collnet_range range = { COLLNET_RANGE_LEAST_BYTES, UINT64_MAX };
  if (!is_halved && ranks == nodes) {
    range.most = COLLNET_RANGE_MOST_ONE_GPU_BYTES;
  } else if (!is_halved && nodes == 2) {
    range.most = COLLNET_RANGE_MOST_TWO_HOSTS_BYTES;
  }
  return range;
}

static bool is_collnet(int algo) {
  return algo == PROFILE_COLLNET_DIRECT || algo == PROFILE_COLLNET_CHAIN;
}

void collnet_range_apply(const struct collnet_range *range, int coll, uint64_t bytes,
                         struct decide_costs costs) {
  if (coll != PROFILE_ALLREDUCE || range->most == 0 ||
      (bytes >= range->least && bytes <= range->most)) {
    return;
  }
  bool has_other = false;
  for (int i = 0; i < costs.algos * costs.protos; i++) {
    bool is_available = costs.us[i] >= 0 && costs.us[i] < FLT_MAX;
    has_other |= is_available && !is_collnet(i / costs.protos);
  }
  for (int i = 0; has_other && i < costs.algos * costs.protos; i++) {
    if (is_collnet(i / costs.protos)) {
      costs.us[i] = IGNORED;
    }
  }
}
