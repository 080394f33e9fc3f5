/* SPDX-License-Identifier: Apache-2.0 */
/* hex: what is written is read, and nothing else. */
#include "common/hex.h"

#include "tests/lib/unit.h"

UNIT_TEST(bytes_come_back) {
  const uint8_t bytes[] = { 0x00, 0x7f, 0xff, 0xa5 };
  uint8_t read[sizeof bytes];
  char text[2 * sizeof bytes + 1];
  hex_write(bytes, sizeof bytes, text);
  assert_string_equal(text, "007fffa5");
  assert_true(hex_read(text, read, sizeof read));
  assert_memory_equal(read, bytes, sizeof bytes);
  assert_true(hex_read("007FFFa5", read, sizeof read));
  assert_memory_equal(read, bytes, sizeof bytes);
}

UNIT_TEST(other_texts_are_refused) {
  static const char *const texts[] = { "",           "007fffa",  "007fffa50",
                                       "007fffa500", "007fff 5", "0x7fffa5",
                                       "007fffg5",   " 07fffa5", "00:7f:ff:a5" };
  uint8_t read[4];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_false(hex_read(texts[i], read, sizeof read));
  }
}

UNIT_MAIN(NULL, NULL)
