/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the tables of one shape out of a profile, in the order decide_find_row searches them. */
#include "tuner_plugin/decide/compile.h"

#include <stdbool.h>

static bool is_shape_covered(size_t ranks, size_t nodes) {
  return nodes > 1 && nodes <= UINT32_MAX && ranks % nodes == 0 && ranks / nodes >= 1 &&
         ranks / nodes <= UINT32_MAX;
}

static const struct profile_table *find_table(const struct profile *profile, int coll, size_t ranks,
                                              size_t nodes) {
  if (!is_shape_covered(ranks, nodes)) {
    return NULL;
  }
  return profile_find_table(profile, (enum profile_collective)coll, (uint32_t)nodes,
                            (uint32_t)(ranks / nodes));
}

size_t compile_count_rows(const struct profile *profile, size_t ranks, size_t nodes) {
  size_t count = 0;
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    const struct profile_table *table = find_table(profile, coll, ranks, nodes);
    count += table ? table->row_count : 0;
  }
  return count;
}

void compile_table(const struct profile *profile, size_t ranks, size_t nodes, uint64_t *starts,
                   struct decide_row *rows, struct decide_table *table) {
  uint32_t count = 0;
  table->starts = starts;
  table->rows = rows;
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    table->first[coll] = count;
    const struct profile_table *source = find_table(profile, coll, ranks, nodes);
    for (size_t i = 0; source && i < source->row_count; i++) {
      const struct profile_row *row = &source->rows[i];
      starts[count] = row->bytes_lo;
      rows[count++] = (struct decide_row){
        .bytes_hi = row->bytes_hi,
        .algo = (uint8_t)row->algorithm,
        .proto = (uint8_t)row->protocol,
        .channels = (uint16_t)row->channels,
      };
    }
  }
  table->first[PROFILE_COLLECTIVE_COUNT] = count;
}
