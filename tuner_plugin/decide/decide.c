/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the profile's row for a call and, if the guard agrees, writes its choice. */
#include "tuner_plugin/decide/decide.h"

#include <stddef.h>

#include "tuner_plugin/decide/guard.h"

const struct decide_row *decide_find(const struct decide_table *table, int coll, uint64_t bytes) {
  if (coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT ||
      table->first[coll] == table->first[coll + 1]) {
    return NULL;
  }
  /* To the last row that begins at or before the size; no branch depends on a comparison, as a
   * mispredicted one takes longer than all the rest. */
  const struct decide_row *row = &table->rows[table->first[coll]];
  for (uint32_t left = table->first[coll + 1] - table->first[coll]; left > 1;) {
    uint32_t half = left / 2;
    row = row[half].bytes_lo <= bytes ? row + half : row;
    left -= half;
  }
  return bytes >= row->bytes_lo && bytes < row->bytes_hi ? row : NULL;
}

static const struct decide_choice *find_choice(const struct decide_table *table, int coll,
                                               uint64_t bytes) {
  const struct decide_row *row = decide_find(table, coll, bytes);
  return row ? &row->choice : NULL;
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

bool decide_by_costs(const struct decide_table *table, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels) {
  const struct decide_choice *choice = find_choice(table, coll, bytes);
  return choice && decide_put(choice, costs, channels);
}

bool decide_by_number(const struct decide_table *table, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels) {
  const struct decide_choice *choice = find_choice(table, coll, bytes);
  if (!choice || !guard_allows_blind(coll, choice->algo, choice->proto)) {
    return false;
  }
  *algo = choice->algo;
  *proto = choice->proto;
  write_channels(choice, channels);
  return true;
}
