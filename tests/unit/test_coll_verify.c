/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark sends and expects: conversions against known values and against the compiler's
 * own types, reductions against a computation in the type itself in several orders, and the
 * comparison against results that are slightly wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/coll/operation.h"
#include "tests/coll/pattern.h"

/* ---- conversions ---- */

UNIT_TEST(test_known_codes) {
  static const struct {
    enum element_type type;
    double value;
    uint64_t code;
  } known[] = {
    { ELEMENT_HALF, 1, 0x3c00 },      { ELEMENT_HALF, -2, 0xc000 },
    { ELEMENT_HALF, 65504, 0x7bff },  { ELEMENT_HALF, 0, 0 },
    { ELEMENT_BFLOAT16, 1, 0x3f80 },  { ELEMENT_BFLOAT16, -256, 0xc380 },
    { ELEMENT_FLOAT, 1, 0x3f800000 }, { ELEMENT_DOUBLE, -2, UINT64_C(0xc000000000000000) },
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    assert_int_equal(element_encode(known[i].type, known[i].value), known[i].code);
    assert_true(element_decode(known[i].type, known[i].code) == known[i].value);
  }
}

UNIT_TEST(test_half_as_the_compiler) {
#if defined __clang__ && __clang_major__ < 15
  print_message("no _Float16 in this clang: 15 has it\n");
  skip();
#else
  for (unsigned code = 0x400; code < 0x7c00; code++) {
    uint16_t bits = (uint16_t)code;
    _Float16 half;
    memcpy(&half, &bits, sizeof half);
    assert_true(element_decode(ELEMENT_HALF, code) == (double)half);
    assert_int_equal(element_encode(ELEMENT_HALF, (double)half), code);
  }
#endif
}

/* ---- reductions ---- */

/* To the type's precision, ties to even; whatever is added up here is normal. */
static uint64_t encode_rounded(enum element_type type, double value) {
  int exponent;
  frexp(value, &exponent);
  int shift = (int)element_infos[type].mantissa_bits + 1 - exponent;
  return element_encode(type, ldexp(nearbyint(ldexp(value, shift)), -shift));
}

static uint64_t add_codes(enum element_type type, uint64_t a, uint64_t b) {
  if (element_infos[type].is_float)
    return encode_rounded(type, element_decode(type, a) + element_decode(type, b));
  return a + b;
}

static uint64_t multiply_codes(enum element_type type, uint64_t a, uint64_t b) {
  if (element_infos[type].is_float)
    return encode_rounded(type, element_decode(type, a) * element_decode(type, b));
  return a * b;
}

static int64_t as_signed(enum element_type type, uint64_t code) {
  unsigned shift = 64 - 8 * element_infos[type].size_bytes;
  return (int64_t)(code << shift) >> shift;
}

static bool is_less(enum element_type type, uint64_t a, uint64_t b) {
  if (element_infos[type].is_float)
    return element_decode(type, a) < element_decode(type, b);
  return element_infos[type].is_signed ? as_signed(type, a) < as_signed(type, b) : a < b;
}

/* Reduces what the ranks send with arithmetic that rounds after every step, from rank `first` on.
 */
static uint64_t reduce(const struct pattern *p, uint64_t place, int first) {
  unsigned bits = 8 * element_infos[p->type].size_bytes;
  uint64_t mask = UINT64_MAX >> (64 - bits), result = 0;
  for (int i = 0; i < p->ranks; i++) {
    int rank = (first + i) % p->ranks;
    uint64_t sent = pattern_sent(p, rank, place);
    if (p->redop == PATTERN_AVG && element_infos[p->type].is_float)
      sent = multiply_codes(p->type, sent, element_encode(p->type, 1.0 / p->ranks));
    if (i == 0)
      result = sent;
    else if (p->redop == PATTERN_PROD)
      result = multiply_codes(p->type, result, sent);
    else if (p->redop == PATTERN_MAX)
      result = is_less(p->type, result, sent) ? sent : result;
    else if (p->redop == PATTERN_MIN)
      result = is_less(p->type, sent, result) ? sent : result;
    else
      result = add_codes(p->type, result, sent);
    result &= mask;
  }
  if (p->redop == PATTERN_AVG && !element_infos[p->type].is_float)
    result /= (uint64_t)p->ranks;
  return result;
}

static void check_reductions(const struct contents *contents) {
  static const int sizes[] = { 1, 2, 3, 4, 5, 8, 17, PATTERN_RANKS_MAX };
  static struct pattern pattern;
  for (int type = 0; type < ELEMENT_TYPES; type++) {
    for (int redop = 0; redop < PATTERN_NONE; redop++) {
      for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        bool is_rounded = redop == PATTERN_AVG && sizes[s] & (sizes[s] - 1);
        if (is_rounded && element_infos[type].is_float)
          continue;
        pattern_init(&pattern, (enum element_type)type, (enum pattern_redop)redop, sizes[s], 7,
                     contents);
        for (uint64_t place = 0; place < 64; place++) {
          unsigned char result[8];
          size_t first_wrong;
          element_store(result, element_infos[type].size_bytes, 0,
                        reduce(&pattern, place, (int)place % sizes[s]));
          if (pattern_compare(&pattern, PATTERN_REDUCED, place, result, 1, &first_wrong))
            fail_msg("%s %s of %d ranks at %d: %llx, not %llx", element_infos[type].name,
                     operation_redop_names[redop], sizes[s], (int)place,
                     (unsigned long long)reduce(&pattern, place, (int)place % sizes[s]),
                     (unsigned long long)pattern_expected(&pattern, place));
        }
      }
    }
  }
}

UNIT_TEST(test_reductions_are_exact_in_any_order) {
  check_reductions(NULL);
}

/* Whatever the file holds: numbers like gradients, and any bits at all. */
UNIT_TEST(test_reductions_of_contents_are_exact) {
  static const char *const words[] = { "bf16", "f32", "random" };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    char text[CONTENTS_ERROR_MAX];
    struct contents contents;
    assert_int_equal(contents_load(&contents, words[i], text), 0);
    check_reductions(&contents);
    contents_free(&contents);
  }
}

UNIT_TEST(test_contents_are_sent) {
  static const float numbers[] = { 1.5f, NAN, 0x1p-126f, -3.0f, INFINITY, 0x1.8p127f, 1.0f };
  struct contents contents = { (uint8_t *)(uintptr_t)numbers, sizeof numbers };
  static struct pattern pattern;
  pattern_init(&pattern, ELEMENT_FLOAT, PATTERN_SUM, 4, 0, &contents);
  pattern.seed = 0;
  static const float sent[] = { 1.5f, 0, 0, -3.0f, 0, 0, 1.0f, 1.5f };
  for (uint64_t place = 0; place < 8; place++) {
    assert_true(element_decode(ELEMENT_FLOAT, pattern_sent(&pattern, 0, place)) == sent[place]);
    assert_int_equal(pattern_sent(&pattern, 0, place), pattern_sent(&pattern, 3, place));
    double sum = element_decode(ELEMENT_FLOAT, pattern_expected(&pattern, place));
    assert_true(sum == 4 * (double)sent[place]);
  }
  pattern_init(&pattern, ELEMENT_FLOAT, PATTERN_NONE, 4, 0, &contents); /* any bits are moved */
  pattern.seed = 0;
  assert_true(isnan(element_decode(ELEMENT_FLOAT, pattern_sent(&pattern, 0, 1))));
  assert_true(pattern_sent(&pattern, 0, 0) != pattern_sent(&pattern, 1, 0));
  pattern_init(&pattern, ELEMENT_FLOAT, PATTERN_PROD, 4, 0, &contents);
  assert_null(pattern.contents);
}

/* ---- comparison ---- */

enum { COUNT = 1000 };

/* Data of another place, rank or run differs nearly everywhere. */
UNIT_TEST(test_other_data_is_seen) {
  static struct pattern pattern;
  static uint64_t data[COUNT + 1];
  size_t first = 0;
  for (int type = 0; type < ELEMENT_TYPES; type++) {
    pattern_init(&pattern, (enum element_type)type, PATTERN_NONE, 4, 1, NULL);
    pattern_fill(&pattern, 2, 5, data, COUNT);
    assert_int_equal(pattern_compare(&pattern, 2, 5, data, COUNT, &first), 0);
    assert_true(pattern_compare(&pattern, 1, 5, data, COUNT, &first) > COUNT * 9 / 10);
    assert_true(pattern_compare(&pattern, 2, 6, data, COUNT, &first) > COUNT * 9 / 10);
    pattern_set_seed(&pattern, 2);
    assert_true(pattern_compare(&pattern, 2, 5, data, COUNT, &first) > COUNT * 9 / 10);
  }
}

UNIT_TEST(test_one_bit_is_seen) {
  static struct pattern pattern;
  static uint64_t data[COUNT];
  for (int type = 0; type < ELEMENT_TYPES; type++) {
    for (int redop = 0; redop < PATTERN_NONE; redop++) {
      pattern_init(&pattern, (enum element_type)type, (enum pattern_redop)redop, 2, 3, NULL);
      unsigned size = element_infos[type].size_bytes;
      for (size_t i = 0; i < COUNT; i++)
        element_store(data, size, i, pattern_expected(&pattern, i));
      size_t first = COUNT;
      assert_int_equal(pattern_compare(&pattern, PATTERN_REDUCED, 0, data, COUNT, &first), 0);
      ((unsigned char *)data)[777 * size] ^= 1;
      assert_int_equal(pattern_compare(&pattern, PATTERN_REDUCED, 0, data, COUNT, &first), 1);
      assert_int_equal(first, 777);
    }
  }
}

UNIT_TEST(test_not_a_number_is_seen) {
  static struct pattern pattern;
  float data[3];
  size_t first;
  pattern_init(&pattern, ELEMENT_FLOAT, PATTERN_AVG, 4, 1, NULL);
  for (size_t i = 0; i < 3; i++)
    data[i] = (float)element_decode(ELEMENT_FLOAT, pattern_expected(&pattern, i));
  data[1] = NAN;
  assert_int_equal(pattern_compare(&pattern, PATTERN_REDUCED, 0, data, 3, &first), 1);
  data[1] = INFINITY;
  assert_int_equal(pattern_compare(&pattern, PATTERN_REDUCED, 0, data, 3, &first), 1);
}

UNIT_TEST(test_guard) {
  unsigned char guard[PATTERN_GUARD_BYTES];
  pattern_fill_guard(guard);
  assert_int_equal(pattern_compare_guard(guard), 0);
  guard[0] ^= 1;
  guard[PATTERN_GUARD_BYTES - 1] = 0x5a;
  assert_int_equal(pattern_compare_guard(guard), 2);
}

/* ---- operations ---- */

UNIT_TEST(test_counts) {
  struct operation_counts c;
  c = operation_count(OPERATION_ALL_REDUCE, 1001, 4, 3);
  assert_int_equal(c.call, 250);
  assert_int_equal(c.bytes, 1000);
  c = operation_count(OPERATION_ALL_GATHER, 1000, 4, 3);
  assert_int_equal(c.call, 83);
  assert_int_equal(c.recv, 249);
  assert_int_equal(c.bytes, 996);
  c = operation_count(OPERATION_REDUCE_SCATTER, 1000, 4, 3);
  assert_int_equal(c.send, 249);
  assert_int_equal(c.recv, 83);
  c = operation_count(OPERATION_ALLTOALL, 7, 8, 2);
  assert_int_equal(c.bytes, 0);
}

UNIT_TEST(test_bus_factors) {
  assert_true(operation_bus_factor(OPERATION_ALL_REDUCE, 4) == 1.5);
  assert_true(operation_bus_factor(OPERATION_ALL_GATHER, 4) == 0.75);
  assert_true(operation_bus_factor(OPERATION_REDUCE_SCATTER, 4) == 0.75);
  assert_true(operation_bus_factor(OPERATION_ALLTOALL, 4) == 0.75);
  assert_true(operation_bus_factor(OPERATION_BROADCAST, 4) == 1);
  assert_true(operation_bus_factor(OPERATION_SENDRECV, 4) == 1);
  assert_true(operation_bus_factor(OPERATION_ALL_REDUCE, 1) == 0);
}

UNIT_TEST(test_parts) {
  struct operation_part parts[3];
  struct operation_counts c = operation_count(OPERATION_ALLTOALL, 120, 4, 3);
  assert_int_equal(operation_parts(OPERATION_ALLTOALL, &c, 1, 3, -1, parts), 3);
  assert_int_equal(parts[2].source, 2);
  assert_int_equal(parts[2].place, 10);
  assert_int_equal(parts[2].first, 20);
  c = operation_count(OPERATION_REDUCE, 120, 4, 3);
  assert_int_equal(operation_parts(OPERATION_REDUCE, &c, 1, 3, 0, parts), 0);
  assert_int_equal(operation_parts(OPERATION_REDUCE, &c, 0, 3, 0, parts), 1);
  assert_int_equal(parts[0].source, PATTERN_REDUCED);
  assert_int_equal(operation_parts(OPERATION_SENDRECV, &c, 0, 3, -1, parts), 1);
  assert_int_equal(parts[0].source, 2);
  c = operation_count(OPERATION_REDUCE_SCATTER, 120, 4, 3);
  operation_parts(OPERATION_REDUCE_SCATTER, &c, 2, 3, -1, parts);
  assert_int_equal(parts[0].place, 20);
  assert_int_equal(operation_in_place_offset(OPERATION_REDUCE_SCATTER, &c, 2), 20);
}

UNIT_MAIN(NULL, NULL)
