/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles from any text. A refused one says where and why; an accepted one, written out, is read
 * as the same, and the tuner's tables that are made of it choose nothing that NCCL ruled out. */
#include "common/machine.h"
#include "common/profile.h"
#include "common/profile_match.h"
#include "tests/fuzz/fuzz.h"
#include "tuner_plugin/decide/decide.h"

enum { CELLS = PROFILE_ALGORITHM_COUNT * PROFILE_PROTOCOL_COUNT };

static char *print(const struct profile *profile, size_t *bytes) {
  char *text;
  FILE *to = open_memstream(&text, bytes);
  FUZZ_CHECK(to != NULL);
  FUZZ_CHECK(profile_write(profile, to) == 0);
  fclose(to);
  return text;
}

static void check_round_trip(const struct profile *profile) {
  struct profile again;
  static struct profile_error error;
  size_t bytes, bytes_again;
  char *text = print(profile, &bytes);
  FUZZ_CHECK(profile_parse(text, bytes, &again, &error) == 0);
  char *text_again = print(&again, &bytes_again);
  FUZZ_CHECK(bytes == bytes_again && memcmp(text, text_again, bytes) == 0);
  FUZZ_CHECK(profile_hash(profile) == profile_hash(&again));
  FUZZ_CHECK(profile_decision_hash(profile) == profile_decision_hash(&again));
  profile_free(&again);
  free(text_again);
  free(text);
}

/* NCCL's costs vary with what is asked for: some cells are ruled out. */
static void fill_costs(float costs[CELLS], uint64_t bytes) {
  for (unsigned i = 0; i < CELLS; i++) {
    bool is_out = (bytes >> i % 7) % 3 == 0;
    costs[i] = is_out ? -1.0f : (float)((i * 37 + bytes) % 101) + 1;
  }
}

static const struct profile_row *find_one_by_one(const struct profile_table *table,
                                                 uint64_t bytes) {
  for (size_t i = 0; table && i < table->row_count; i++) {
    if (bytes >= table->rows[i].bytes_lo && bytes < table->rows[i].bytes_hi) {
      return &table->rows[i];
    }
  }
  return NULL;
}

static void check_choice(const struct decide_tables *tables, int collective, uint64_t bytes) {
  float before[CELLS], after[CELLS];
  int channels = (int)(bytes % 40), algo = 5, proto = 2, given = channels;
  fill_costs(before, bytes);
  memcpy(after, before, sizeof after);
  struct decide_costs costs = { after, PROFILE_ALGORITHM_COUNT, PROFILE_PROTOCOL_COUNT };
  bool is_known = collective >= 0 && collective < PROFILE_COLLECTIVE_COUNT;
  FUZZ_CHECK(decide_find(tables, collective, bytes) ==
             find_one_by_one(is_known ? tables->of[collective] : NULL, bytes));
  bool has_chosen = decide_by_costs(tables, collective, bytes, costs, &channels);
  for (unsigned i = 0; i < CELLS; i++) {
    FUZZ_CHECK(before[i] >= 0 || after[i] < 0);
    FUZZ_CHECK(has_chosen || after[i] == before[i]);
  }
  FUZZ_CHECK(has_chosen || channels == given);
  FUZZ_CHECK(channels >= 0 && channels <= PROFILE_CHANNELS_MAX);
  if (!decide_by_number(tables, collective, bytes, &algo, &proto, &channels)) {
    FUZZ_CHECK(algo == 5 && proto == 2);
  } else {
    FUZZ_CHECK(algo >= 0 && algo < PROFILE_ALGORITHM_COUNT);
    FUZZ_CHECK(proto >= 0 && proto < PROFILE_PROTOCOL_COUNT);
  }
}

static void check_choices(const struct profile *profile, size_t ranks, size_t nodes) {
  struct decide_tables tables = decide_tables_of(profile, ranks, nodes);
  for (int collective = -1; collective <= PROFILE_COLLECTIVE_COUNT; collective++) {
    check_choice(&tables, collective, 0);
    check_choice(&tables, collective, UINT64_MAX);
    bool is_known = collective >= 0 && collective < PROFILE_COLLECTIVE_COUNT;
    const struct profile_table *table = is_known ? tables.of[collective] : NULL;
    for (size_t i = 0; table && i < table->row_count && i < 16; i++) {
      check_choice(&tables, collective, table->rows[i].bytes_lo - 1);
      check_choice(&tables, collective, table->rows[i].bytes_lo);
      check_choice(&tables, collective, table->rows[i].bytes_hi);
    }
  }
}

static const struct machine machine = {
  .cloud = "aws",
  .instance_type = "p4d.24xlarge",
  .devices = { .gpus = 8, .gpu = "10de:20b0", .nics = 2 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct profile profile;
  static struct profile_error error;
  char *text = calloc(1, size + !size);
  FUZZ_CHECK(text != NULL);
  if (size > 0) {
    memcpy(text, data, size);
  }
  error = (struct profile_error){ 0 };
  if (profile_parse(text, size, &profile, &error) != 0) {
    FUZZ_CHECK(error.text[0] != '\0');
    FUZZ_CHECK(profile.tables == NULL && profile.table_count == 0);
    free(text);
    return 0;
  }
  free(text); /* nothing of the profile may point there */
  check_round_trip(&profile);
  FUZZ_CHECK(profile_match_score(&profile.fit, &machine) >= -1);
  profile_match_is_nccl_in_range(&profile.meta, 22907);
  guard_drop_rows(&profile);
  for (size_t i = 0; i < profile.table_count && i < 4; i++) {
    const struct profile_table *table = &profile.tables[i];
    FUZZ_CHECK(profile_find_table(&profile, table->collective, table->nodes, table->ppn) == table);
    check_choices(&profile, (size_t)table->nodes * table->ppn, table->nodes);
  }
  check_choices(&profile, 32, 4);
  profile_free(&profile);
  return 0;
}
