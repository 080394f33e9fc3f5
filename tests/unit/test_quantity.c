/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations and words: good ones, bad ones, and the ends of their ranges. */
#include "common/quantity.h"

#include <errno.h>

#include "tests/lib/unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

UNIT_TEST(integers) {
  static const struct {
    const char *text;
    int result;
    int64_t value;
  } cases[] = {
    { "0", 0, 0 },
    { "-1", 0, -1 },
    { "+7", 0, 7 },
    { "9223372036854775807", 0, INT64_MAX },
    { "-9223372036854775807", 0, -INT64_MAX },
    { "9223372036854775808", -ERANGE, 0 },
    { "99999999999999999999999", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "-", -EINVAL, 0 },
    { "--1", -EINVAL, 0 },
    { " 1", -EINVAL, 0 },
    { "1 ", -EINVAL, 0 },
    { "1.5", -EINVAL, 0 },
    { "0x10", -EINVAL, 0 },
    { "ten", -EINVAL, 0 },
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    int64_t value = 42;
    assert_int_equal(quantity_parse_int(cases[i].text, &value), cases[i].result);
    assert_true(value == (cases[i].result == 0 ? cases[i].value : 42));
  }
}

UNIT_TEST(sizes) {
  static const struct {
    const char *text;
    int result;
    uint64_t bytes;
  } cases[] = {
    { "0", 0, 0 },
    { "8", 0, 8 },
    { "8B", 0, 8 },
    { "64K", 0, 65536 },
    { "64k", 0, 65536 },
    { "64KB", 0, 65536 },
    { "64KiB", 0, 65536 },
    { "1m", 0, 1 << 20 },
    { "2G", 0, UINT64_C(1) << 31 },
    { "1T", 0, UINT64_C(1) << 40 },
    { "18446744073709551615", 0, UINT64_MAX },
    { "18446744073709551616", -ERANGE, 0 },
    { "16777216T", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "K", -EINVAL, 0 },
    { "-1", -EINVAL, 0 },
    { "64iB", -EINVAL, 0 },
    { "64KK", -EINVAL, 0 },
    { "64 K", -EINVAL, 0 },
    { "1.5M", -EINVAL, 0 },
    { "64P", -EINVAL, 0 },
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    uint64_t bytes = 42;
    assert_int_equal(quantity_parse_size(cases[i].text, &bytes), cases[i].result);
    assert_true(bytes == (cases[i].result == 0 ? cases[i].bytes : 42));
  }
}

UNIT_TEST(durations) {
  static const struct {
    const char *text;
    int result;
    int64_t ns;
  } cases[] = {
    { "10", 0, INT64_C(10000000000) },
    { "10s", 0, INT64_C(10000000000) },
    { "250ms", 0, 250000000 },
    { "20us", 0, 20000 },
    { "7ns", 0, 7 },
    { "5m", 0, INT64_C(300000000000) },
    { "1h", 0, INT64_C(3600000000000) },
    { "0", 0, 0 },
    { "99999999999h", -ERANGE, 0 },
    { "", -EINVAL, 0 },
    { "s", -EINVAL, 0 },
    { "10 s", -EINVAL, 0 },
    { "10S", -EINVAL, 0 },
    { "10sec", -EINVAL, 0 },
    { "-1s", -EINVAL, 0 },
    { "1.5s", -EINVAL, 0 },
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    int64_t ns = 42;
    assert_int_equal(quantity_parse(QUANTITY_DURATION, NULL, cases[i].text, &ns), cases[i].result);
    assert_true(ns == (cases[i].result == 0 ? cases[i].ns : 42));
  }
}

UNIT_TEST(booleans) {
  static const char *const yes[] = { "1", "yes", "on", "true", "TRUE", "On" };
  static const char *const no[] = { "0", "no", "off", "false", "NO" };
  static const char *const bad[] = { "", "2", "y", "enable", "1 ", "0|1" };
  int64_t value;
  for (size_t i = 0; i < COUNT_OF(yes); i++) {
    value = -1;
    assert_int_equal(quantity_parse(QUANTITY_BOOL, NULL, yes[i], &value), 0);
    assert_int_equal(value, 1);
  }
  for (size_t i = 0; i < COUNT_OF(no); i++) {
    value = -1;
    assert_int_equal(quantity_parse(QUANTITY_BOOL, NULL, no[i], &value), 0);
    assert_int_equal(value, 0);
  }
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_int_equal(quantity_parse(QUANTITY_BOOL, NULL, bad[i], &value), -EINVAL);
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
