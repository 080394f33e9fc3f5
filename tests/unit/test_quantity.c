/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations and words: good ones, bad ones, and the ends of their ranges. */
#include "common/quantity.h"

#include <errno.h>

#include "tests/lib/unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

UNIT_TEST(good_ones_are_read) {
  static const struct {
    enum quantity_type type;
    const char *text;
    int64_t value;
  } cases[] = {
    { QUANTITY_INT, "0", 0 },
    { QUANTITY_INT, "-1", -1 },
    { QUANTITY_INT, "+7", 7 },
    { QUANTITY_INT, "9223372036854775807", INT64_MAX },
    { QUANTITY_INT, "-9223372036854775807", -INT64_MAX },
    { QUANTITY_SIZE, "0", 0 },
    { QUANTITY_SIZE, "8", 8 },
    { QUANTITY_SIZE, "8B", 8 },
    { QUANTITY_SIZE, "64K", 65536 },
    { QUANTITY_SIZE, "64k", 65536 },
    { QUANTITY_SIZE, "64kb", 65536 },
    { QUANTITY_SIZE, "64KiB", 65536 },
    { QUANTITY_SIZE, "1m", 1 << 20 },
    { QUANTITY_SIZE, "2G", INT64_C(1) << 31 },
    { QUANTITY_SIZE, "1T", INT64_C(1) << 40 },
    { QUANTITY_DURATION, "0", 0 },
    { QUANTITY_DURATION, "10", INT64_C(10000000000) },
    { QUANTITY_DURATION, "10s", INT64_C(10000000000) },
    { QUANTITY_DURATION, "250ms", 250000000 },
    { QUANTITY_DURATION, "20us", 20000 },
    { QUANTITY_DURATION, "7ns", 7 },
    { QUANTITY_DURATION, "5m", INT64_C(300000000000) },
    { QUANTITY_DURATION, "1h", INT64_C(3600000000000) },
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    int64_t value = 42;
    assert_int_equal(quantity_parse(cases[i].type, NULL, cases[i].text, &value), 0);
    assert_true(value == cases[i].value);
  }
}

/* Each is refused, and what was there before stays. */
static void assert_refused(enum quantity_type type, int error, const char *const *texts) {
  for (; *texts; texts++) {
    int64_t value = 42;
    assert_int_equal(quantity_parse(type, NULL, *texts, &value), error);
    assert_true(value == 42);
  }
}
#define REFUSED(type, error, ...)                                                                  \
  assert_refused(type, error, (const char *const[]){ __VA_ARGS__, NULL })

UNIT_TEST(others_are_refused) {
  REFUSED(QUANTITY_INT, -ERANGE, "9223372036854775808", "99999999999999999999999");
  REFUSED(QUANTITY_INT, -EINVAL, "", "-", "--1", " 1", "1 ", "1.5", "0x10", "ten");
  REFUSED(QUANTITY_SIZE, -ERANGE, "18446744073709551616", "16777216T");
  REFUSED(QUANTITY_SIZE, -EINVAL, "", "K", "-1", "64iB", "64KK", "64 K", "1.5M", "64P");
  REFUSED(QUANTITY_DURATION, -ERANGE, "99999999999h");
  REFUSED(QUANTITY_DURATION, -EINVAL, "", "s", "10 s", "10S", "10sec", "-1s", "1.5s");
  REFUSED(QUANTITY_BOOL, -EINVAL, "", "2", "y", "enable", "1 ", "0|1");
}

UNIT_TEST(switches) {
  static const char *const words[2][6] = { { "0", "no", "off", "false", "NO", "oFF" },
                                           { "1", "yes", "on", "true", "TRUE", "On" } };
  for (int64_t wanted = 0; wanted < 2; wanted++) {
    for (size_t i = 0; i < COUNT_OF(words[0]); i++) {
      int64_t value = -1;
      assert_int_equal(quantity_parse(QUANTITY_BOOL, NULL, words[wanted][i], &value), 0);
      assert_int_equal(value, wanted);
      assert_int_equal(quantity_parse(QUANTITY_ENUM, "auto|off|on", words[wanted][i], &value), 0);
      assert_int_equal(value, 1 + wanted);
    }
  }
}

UNIT_TEST(words) {
  assert_int_equal(quantity_find_word("auto|inline|thread", "auto"), 0);
  assert_int_equal(quantity_find_word("auto|inline|thread", "THREAD"), 2);
  assert_int_equal(quantity_find_word("auto|inline|thread", "thr"), -EINVAL);
  assert_int_equal(quantity_find_word("auto|inline|thread", "threads"), -EINVAL);
  assert_int_equal(quantity_find_word("auto|inline|thread", ""), -EINVAL);
  assert_int_equal(quantity_find_word("auto|inline|thread", "auto|inline"), -EINVAL);
  char text[QUANTITY_TEXT_MAX];
  assert_string_equal(quantity_format(QUANTITY_ENUM, "auto|inline|thread", 1, text), "inline");
  assert_string_equal(quantity_format(QUANTITY_ENUM, "auto|inline|thread", 2, text), "thread");
}

UNIT_TEST(formatted_quantities_are_exact) {
  static const uint64_t values[] = { 0,     1,        1023,       1024,
                                     1025,  3 << 20,  UINT64_MAX, UINT64_C(1) << 63,
                                     60000, 90000000, 3600,       UINT64_C(7200000000000) };
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    char text[QUANTITY_TEXT_MAX];
    uint64_t back;
    assert_int_equal(quantity_parse_size(quantity_format_size(values[i], text), &back), 0);
    assert_true(back == values[i]);
    int64_t ns, value = (int64_t)(values[i] >> 1);
    assert_int_equal(quantity_parse(QUANTITY_DURATION, NULL,
                                    quantity_format(QUANTITY_DURATION, NULL, value, text), &ns),
                     0);
    assert_true(ns == value);
  }
  char text[QUANTITY_TEXT_MAX];
  assert_string_equal(quantity_format_size(65536, text), "64K");
  assert_string_equal(quantity_format_size(0, text), "0");
  assert_string_equal(quantity_format(QUANTITY_DURATION, NULL, INT64_C(90000000000), text), "90s");
  assert_string_equal(quantity_format(QUANTITY_DURATION, NULL, 0, text), "0s");
}
