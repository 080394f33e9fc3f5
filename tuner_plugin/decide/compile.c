/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the rows of one shape out of a profile, ascending, as decide_find searches them. */
#include "tuner_plugin/decide/compile.h"

#include <stdbool.h>

#include "tuner_plugin/decide/guard.h"

/* Destination of the rows; without memory they are only counted. */
struct sink {
  struct decide_row *rows;
  uint32_t count;
};

static bool is_shape_covered(size_t ranks, size_t nodes) {
  return nodes > 1 && nodes <= UINT32_MAX && ranks % nodes == 0 && ranks / nodes >= 1 &&
         ranks / nodes <= UINT32_MAX;
}

static void add_row(struct sink *sink, const struct profile_row *row) {
  if (sink->rows) {
    unsigned over = costs_cell(row->over_algorithm, row->over_protocol);
    sink->rows[sink->count] = (struct decide_row){
      .bytes_lo = row->bytes_lo,
      .bytes_hi = row->bytes_hi,
      .choice = {
        .algo = (uint8_t)row->algorithm,
        .proto = (uint8_t)row->protocol,
        .channels = (uint8_t)row->channels,
        .over = (uint8_t)(row->is_measured ? over : DECIDE_ANY_CELL),
      },
    };
  }
  sink->count++;
}

static void add_collective(struct sink *sink, const struct profile *profile,
                           enum profile_collective collective, uint32_t nodes, uint32_t ppn) {
  const struct profile_table *table = profile_find_table(profile, collective, nodes, ppn);
  for (size_t i = 0; table && i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    if (!row->is_measured || guard_is_worth(row->default_ns, row->choice_ns, row->noise_permille)) {
      add_row(sink, row);
    }
  }
}

static void add_all(struct sink *sink, const struct profile *profile, size_t ranks, size_t nodes,
                    struct decide_table *table) {
  bool is_covered = is_shape_covered(ranks, nodes);
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    table->first[coll] = sink->count;
    if (is_covered) {
      add_collective(sink, profile, (enum profile_collective)coll, (uint32_t)nodes,
                     (uint32_t)(ranks / nodes));
    }
  }
  table->first[PROFILE_COLLECTIVE_COUNT] = sink->count;
}

size_t compile_bytes(const struct profile *profile, size_t ranks, size_t nodes) {
  struct sink sink = { 0 };
  struct decide_table table;
  add_all(&sink, profile, ranks, nodes, &table);
  return sink.count * sizeof(struct decide_row);
}

void compile_table(const struct profile *profile, size_t ranks, size_t nodes, void *memory,
                   struct decide_table *table) {
  struct sink sink = { .rows = memory };
  table->rows = memory;
  add_all(&sink, profile, ranks, nodes, table);
}
