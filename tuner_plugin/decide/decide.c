/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the profile's row for a call and, if the guard agrees, writes its choice. */
#include "tuner_plugin/decide/decide.h"

#include <stddef.h>

#include "tuner_plugin/decide/guard.h"

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

static struct decide_choice choice_of(const struct profile_row *row) {
  unsigned over = costs_cell(row->over_algorithm, row->over_protocol);
  return (struct decide_choice){ .algo = (uint8_t)row->algorithm,
                                 .proto = (uint8_t)row->protocol,
                                 .channels = (uint8_t)row->channels,
                                 .over = (uint8_t)(row->is_measured ? over : DECIDE_ANY_CELL) };
}

static void write_channels(const struct decide_choice *choice, int *channels) {
  int bounded = guard_bound_channels(choice->algo, choice->channels, *channels);
  if (bounded > 0) {
    *channels = bounded;
  }
}

bool decide_put(const struct decide_choice *choice, struct decide_costs costs, int *channels) {
  enum guard_verdict verdict = guard_check(costs, choice->algo, choice->proto, choice->over);
  if (verdict == GUARD_REFUSED) {
    return false;
  }
  if (verdict == GUARD_OVERRIDE) {
    /* Cheaper than all others: the guard rejects every cell when the default costs nothing. */
    costs.us[(size_t)choice->algo * (size_t)costs.protos + choice->proto] = 0.0f;
  }
  write_channels(choice, channels);
  return true;
}

bool decide_by_costs(const struct decide_tables *tables, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels) {
  const struct profile_row *row = decide_find(tables, coll, bytes);
  if (!row) {
    return false;
  }
  struct decide_choice choice = choice_of(row);
  return decide_put(&choice, costs, channels);
}

bool decide_by_number(const struct decide_tables *tables, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels) {
  const struct profile_row *row = decide_find(tables, coll, bytes);
  if (!row || !guard_allows_blind(coll, row->algorithm, row->protocol)) {
    return false;
  }
  struct decide_choice choice = choice_of(row);
  *algo = choice.algo;
  *proto = choice.proto;
  write_channels(&choice, channels);
  return true;
}
