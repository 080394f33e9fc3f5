/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: names and rows. Their text, files and identity are profile_json.c's. */
#include "common/profile.h"

#include <stdlib.h>

/* ---- names ---- */

static const char *const collective_names[] = {
  "broadcast", "reduce", "allgather", "reducescatter", "allreduce",
};
static const char *const algorithm_names[] = {
  "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat",
};
static const char *const protocol_names[] = { "ll", "ll128", "simple" };

const char *profile_collective_name(enum profile_collective collective) {
  return collective < PROFILE_COLLECTIVE_COUNT ? collective_names[collective] : "?";
}

const char *profile_algorithm_name(enum profile_algorithm algorithm) {
  return algorithm < PROFILE_ALGORITHM_COUNT ? algorithm_names[algorithm] : "?";
}

const char *profile_protocol_name(enum profile_protocol protocol) {
  return protocol < PROFILE_PROTOCOL_COUNT ? protocol_names[protocol] : "?";
}

void profile_free(struct profile *profile) {
  for (size_t i = 0; i < profile->table_count; i++) {
    free(profile->tables[i].rows);
  }
  free(profile->tables);
  *profile = (struct profile){ 0 };
}

const struct profile_table *profile_find_table(const struct profile *profile,
                                               enum profile_collective collective, uint32_t nodes,
                                               uint32_t ppn) {
  for (size_t i = 0; i < profile->table_count; i++) {
    const struct profile_table *table = &profile->tables[i];
    if (table->collective == collective && table->nodes == nodes && table->ppn == ppn) {
      return table;
    }
  }
  return NULL;
}

const struct profile_row *profile_find_row(const struct profile_table *table, uint64_t bytes) {
  if (!table || table->row_count == 0) {
    return NULL;
  }
  /* To the last row that begins at or before the size; no branch depends on a comparison, as a
   * mispredicted one takes longer than all the rest. */
  const struct profile_row *row = table->rows;
  for (size_t left = table->row_count; left > 1;) {
    size_t half = left / 2;
    row = row[half].bytes_lo <= bytes ? row + half : row;
    left -= half;
  }
  return bytes >= row->bytes_lo && bytes < row->bytes_hi ? row : NULL;
}
