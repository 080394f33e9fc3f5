/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the profile's row for a call and, if the guard agrees, writes its choice. */
#include "tuner_plugin/decide/decide.h"

#include <stddef.h>

#include "common/nccl_chunk.h"
#include "tuner_plugin/decide/guard.h"

const struct decide_row *decide_find_row(const struct decide_table *table, int coll,
                                         uint64_t bytes) {
  if (coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT ||
      table->first[coll] == table->first[coll + 1]) {
    return NULL;
  }
  const uint32_t *bucket = size_index_find(&table->indexes[coll], bytes);
  const struct decide_row *row = &table->rows[table->first[coll]] + bucket[0];
  /* No branch hangs on a comparison: one that is guessed wrong takes longer than all the rest. */
  for (uint32_t left = bucket[1] - bucket[0] + 1; left > 1;) {
    uint32_t half = left / 2;
    row = row[half].bytes_lo <= bytes ? row + half : row;
    left -= half;
  }
  return bytes >= row->bytes_lo && bytes < row->bytes_hi ? row : NULL;
}

static void write_channels(const struct decide_row *row, int *channels) {
  int bounded = guard_bound_channels(row->algo, row->channels, *channels);
  if (bounded > 0) {
    *channels = bounded;
  }
}

bool decide_by_costs(const struct decide_table *table, int coll, uint64_t bytes,
                     struct decide_costs costs, int *channels) {
  const struct decide_row *row = decide_find_row(table, coll, bytes);
  if (!row) {
    return false;
  }
  enum guard_verdict verdict = guard_check_row(costs, row);
  if (verdict == GUARD_REFUSED) {
    return false;
  }
  if (verdict == GUARD_OVERRIDE) {
    /* Cheaper than all others: the guard lets none pass when the default costs nothing. */
    costs.us[(size_t)row->algo * (size_t)costs.protos + row->proto] = 0.0f;
  }
  write_channels(row, channels);
  return true;
}

bool decide_by_number(const struct decide_table *table, int coll, uint64_t bytes, int *algo,
                      int *proto, int *channels) {
  const struct decide_row *row = decide_find_row(table, coll, bytes);
  if (!row || !guard_allows_blind(coll, row->algo, row->proto)) {
    return false;
  }
  *algo = row->algo;
  *proto = row->proto;
  write_channels(row, channels);
  return true;
}

uint32_t decide_chunk(const struct decide_table *table, int coll, uint64_t bytes, int algo,
                      int proto, int channels) {
  if (coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT || channels != 1) {
    return 0;
  }
  for (uint64_t left = table->chunk_channels[coll]; left; left &= left - 1) {
    uint64_t count = (uint64_t)__builtin_ctzll(left) + 1;
    if (bytes > UINT64_MAX / count) {
      break;
    }
    const struct decide_row *row = decide_find_row(table, coll, bytes * count);
    if (row && row->chunk > 0 && row->channels == count && row->algo == algo &&
        row->proto == proto) {
      return nccl_chunk_round(row->chunk, (enum profile_protocol)row->proto);
    }
  }
  return 0;
}
