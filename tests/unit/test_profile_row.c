/* SPDX-License-Identifier: Apache-2.0 */
/* profile_row: rows with what was measured are read and written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "tests/lib/unit.h"

#define HEAD "schema = 1\n[meta]\nid = a\n"
#define TABLE HEAD "[table allreduce nodes=2 ppn=8]\n"

static void parse(const char *text, struct profile *profile) {
  struct profile_error error;
  if (profile_parse(text, strlen(text), profile, &error) != 0) {
    fail_msg("%d:%d: %s", error.line, error.column, error.text);
  }
}

UNIT_TEST(measured_rows_are_read) {
  struct profile profile;
  parse(TABLE "64K 1M ring simple 8 over=Tree/Simple default_us=812.45 choice_us=700 "
              "noise_pct=2.1\n1M 2M ring ll 0\n",
        &profile);
  const struct profile_row *row = &profile.tables[0].rows[0];
  assert_true(row->is_measured);
  assert_int_equal(row->over_algorithm, PROFILE_TREE);
  assert_int_equal(row->over_protocol, PROFILE_SIMPLE);
  assert_int_equal(row->default_ns, 812450);
  assert_int_equal(row->choice_ns, 700000);
  assert_int_equal(row->noise_permille, 21);
  assert_false(profile.tables[0].rows[1].is_measured);
  profile_free(&profile);
}

static char *write_text(const struct profile *profile) {
  char *text = NULL;
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  assert_int_equal(profile_write(profile, to), 0);
  fclose(to);
  return text;
}

UNIT_TEST(what_is_written_reads_the_same) {
  struct profile profile, again;
  parse(TABLE "64K 1M ring simple 8 over=tree/simple default_us=812.45 choice_us=700 "
              "noise_pct=2.1\n1M max tree ll 0 over=ring/ll default_us=9.001 choice_us=8.5\n",
        &profile);
  char *text = write_text(&profile);
  parse(text, &again);
  char *text_again = write_text(&again);
  assert_string_equal(text, text_again);
  assert_non_null(strstr(text, "over=tree/simple default_us=812.45 choice_us=700 noise_pct=2.1\n"));
  assert_true(again.tables[0].rows[1].is_measured);
  assert_int_equal(again.tables[0].rows[1].default_ns, 9001);
  free(text);
  free(text_again);
  profile_free(&profile);
  profile_free(&again);
}

/* Ranks with other figures may choose otherwise. */
UNIT_TEST(figures_are_part_of_the_decision) {
  static const char *const texts[] = {
    TABLE "0 1K ring ll 2 over=tree/ll default_us=2 choice_us=1\n",
    TABLE "0 1K ring ll 2 over=tree/ll default_us=2.001 choice_us=1\n",
    TABLE "0 1K ring ll 2 over=tree/ll default_us=2 choice_us=1 noise_pct=0.1\n",
    TABLE "0 1K ring ll 2 over=ring/ll default_us=2 choice_us=1\n",
  };
  enum { COUNT = sizeof texts / sizeof texts[0] };
  uint64_t hashes[COUNT];
  for (int i = 0; i < COUNT; i++) {
    struct profile profile;
    parse(texts[i], &profile);
    hashes[i] = profile_decision_hash(&profile);
    profile_free(&profile);
    for (int j = 0; j < i; j++) {
      assert_true(hashes[i] != hashes[j]);
    }
  }
}

UNIT_MAIN(NULL, NULL)
