/* SPDX-License-Identifier: Apache-2.0 */
/* name_distance: edits between names, and between a word and the likest part of a name. */
#include "common/name_distance.h"

#include <string.h>

#include "tests/lib/unit.h"

static int between(const char *name, const char *other) {
  return name_distance(name, strlen(name), other, false);
}

static int within(const char *name, const char *word) {
  return name_distance(name, strlen(name), word, true);
}

UNIT_TEST(edits_are_counted) {
  assert_int_equal(between("FLOWS", "FLOWS"), 0);
  assert_int_equal(between("FLOW", "FLOWS"), 1);
  assert_int_equal(between("FLOWZ", "FLOWS"), 1);
  assert_int_equal(between("FOLWS", "FLOWS"), 1);
  assert_int_equal(between("flows", "FLOWS"), 5);
  assert_int_equal(between("", "FLOWS"), 5);
  assert_int_equal(between("FLOWS", ""), 5);
  assert_int_equal(name_distance("FLOWS=8", 5, "FLOWS", false), 0);
}

UNIT_TEST(the_likest_part_counts) {
  assert_int_equal(within("ENABLE_ENCRYPTION", "ENCRYPT"), 0);
  assert_int_equal(within("enable_encryption", "ENCRYPT"), 0);
  assert_int_equal(within("CRYPTO", "ENCRYPT"), 2);
  assert_int_equal(within("ENCRPYTION", "ENCRYPT"), 1);
  assert_int_equal(within("X", "ENCRYPT"), 7);
  assert_int_equal(within("", "ENCRYPT"), 7);
  assert_int_equal(within("ENCRYPT", ""), 0);
}

/* What lies behind the limit is not looked at, on either side. */
UNIT_TEST(long_names_are_cut) {
  char name[4096];
  memset(name, 'X', sizeof name);
  name[sizeof name - 1] = '\0';
  assert_int_equal(between(name, "FLOWS"), NAME_DISTANCE_MAX);
  assert_int_equal(between("FLOWS", name), NAME_DISTANCE_MAX);
  memcpy(name + NAME_DISTANCE_MAX, "ENCRYPT", 7);
  assert_int_equal(within(name, "ENCRYPT"), 7);
  memcpy(name + NAME_DISTANCE_MAX - 7, "ENCRYPT", 7);
  assert_int_equal(within(name, "ENCRYPT"), 0);
}

UNIT_MAIN(NULL, NULL)
