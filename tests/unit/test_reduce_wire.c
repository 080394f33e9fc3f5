/* SPDX-License-Identifier: Apache-2.0 */
/* f32 to 16 bits and back: every code, rounding at every edge, counters, the owner's step. */
#include "net_plugin/reduce/reduce.h"

#include <string.h>

#include "common/random.h"
#include "tests/lib/guarded.h"
#include "tests/lib/reduce_reference.h"
#include "tests/lib/unit.h"

enum { CODES = 65536 };

/* Calls test(variant, wire) for all that this processor can run. */
static void with_each(void (*test)(const struct reduce_variant *, enum reduce_wire)) {
  for (size_t i = 0; reduce_variant(i); i++) {
    for (enum reduce_wire wire = 0; wire < REDUCE_WIRES; wire++) {
      if (reduce_variant(i)->is_usable()) {
        test(reduce_variant(i), wire);
      }
    }
  }
}

static bool is_nan(enum reduce_wire wire, uint32_t code) {
  return (code & 0x7fff) > (wire == REDUCE_WIRE_FLOAT16 ? 0x7c00 : 0x7f80);
}

/* Widening is exact, so it can be undone; a NaN stays one. */
static void codes_go_and_come(const struct reduce_variant *variant, enum reduce_wire wire) {
  static uint16_t codes[CODES], back[CODES];
  static uint32_t wide[CODES];
  struct reduce_counters counters = { 0 };
  for (uint32_t code = 0; code < CODES; code++) {
    codes[code] = (uint16_t)code;
  }
  reduce_widen(variant, wide, codes, CODES, wire);
  reduce_narrow(variant, back, wide, CODES, wire, &counters);
  for (uint32_t code = 0; code < CODES; code++) {
    assert_int_equal(wide[code], reference_widen(reference_wire_type(wire), code));
    assert_int_equal(back[code], is_nan(wire, code) ? 0x7fff : code);
  }
  /* What is denormal there and not zero, of both signs. */
  unsigned denormal = 2 * ((wire == REDUCE_WIRE_FLOAT16 ? 1u << 10 : 1u << 7) - 1);
  assert_int_equal(counters.elements, CODES);
  assert_int_equal(counters.overflows, 0);
  assert_int_equal(counters.underflows, denormal);
}

UNIT_TEST(every_code) {
  with_each(codes_go_and_come);
}

/* Every upper half of an f32, with lower halves around every tie that there can be. */
static void halves_round(const struct reduce_variant *variant, enum reduce_wire wire) {
  static const uint16_t lower[] = {
    0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff,
    0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xe000, 0xf000, 0xffff
  };
  enum reduce_type type = reference_wire_type(wire);
  static uint32_t values[CODES];
  static uint16_t results[CODES];
  struct reduce_counters counters = { 0 }, expected = { 0 }; /* of all calls */
  for (size_t l = 0; l < sizeof lower / sizeof *lower; l++) {
    for (uint32_t upper = 0; upper < CODES; upper++) {
      values[upper] = upper << 16 | lower[l];
    }
    reduce_narrow(variant, results, values, CODES, wire, &counters);
    for (uint32_t i = 0; i < CODES; i++) {
      uint32_t code = reference_round(type, values[i]);
      if (results[i] != code) {
        fail_msg("%s %s: %#x becomes %#x, not %#x", variant->name, reference_type_names[type],
                 values[i], results[i], code);
      }
      reference_count(&expected, type, values[i], code);
    }
    assert_memory_equal(&counters, &expected, sizeof counters);
  }
}

UNIT_TEST(every_edge) {
  with_each(halves_round);
}

/* ---- the owner's step ---- */

enum { MOST_HOSTS = 9, MOST = 700 };
static struct guarded memory[MOST_HOSTS + 2]; /* parts, wire, f32 */

static int map_memory(void **state) {
  for (int k = 0; k < MOST_HOSTS + 2; k++) {
    memory[k] = guarded_make((MOST + 64) * sizeof(float));
  }
  return 0;
}

static int unmap_memory(void **state) {
  for (int k = 0; k < MOST_HOSTS + 2; k++) {
    guarded_free(&memory[k]);
  }
  return 0;
}

/* Any bits, and numbers whose sums round. */
static uint32_t random_f32(uint64_t *random) {
  uint64_t bits = random_next(random);
  float value = (float)(int32_t)bits * 0x1p-31f;
  uint32_t code;
  memcpy(&code, &value, sizeof code);
  return bits >> 61 == 0 ? (uint32_t)bits : code;
}

/* Each part ends where its memory ends, less `skew` bytes. */
static void fill_parts(const void *srcs[], unsigned n, unsigned own, size_t count,
                       enum reduce_wire wire, size_t skew, uint64_t *random) {
  for (unsigned k = 0; k < n; k++) {
    size_t bytes = k == own ? 4 : 2;
    unsigned char *part = guarded_end(&memory[k], 0) - count * bytes - (skew ? (skew + k) % 16 : 0);
    for (size_t i = 0; i < count; i++) {
      uint32_t bits = random_f32(random);
      reference_put(part, i, bytes,
                    k == own ? bits : reference_round(reference_wire_type(wire), bits));
    }
    srcs[k] = part;
  }
}

/* One element, by scalar code: the rounded sum. */
static uint32_t sum_of_parts(const void *const srcs[], unsigned n, unsigned own, size_t i,
                             enum reduce_wire wire, struct reduce_counters *counters) {
  enum reduce_type type = reference_wire_type(wire);
  volatile float sum = 0;
  for (unsigned k = 0; k < n; k++) {
    float part = (float)reference_number(srcs[k], i, k == own ? REDUCE_FLOAT32 : type);
    sum = k == 0 ? part : sum + part;
  }
  float result = sum;
  uint32_t bits;
  memcpy(&bits, &result, sizeof bits);
  uint32_t code = reference_round(type, bits);
  reference_count(counters, type, bits, code);
  return code;
}

static void check_sum(const struct reduce_variant *variant, enum reduce_wire wire,
                      const void *const srcs[], unsigned n, unsigned own, size_t count) {
  unsigned char *out = guarded_end(&memory[MOST_HOSTS], 0) - count * 2;
  unsigned char *dst = guarded_end(&memory[MOST_HOSTS + 1], 0) - count * 4;
  struct reduce_counters counters = { 0 }, expected = { 0 };
  memset(memory[MOST_HOSTS].begin, 0xa5, (size_t)(out - memory[MOST_HOSTS].begin));
  memset(memory[MOST_HOSTS + 1].begin, 0xa5, (size_t)(dst - memory[MOST_HOSTS + 1].begin));
  reduce_from_wire(variant, out, dst, srcs, n, own, count, wire, &counters);
  for (size_t i = 0; i < count; i++) {
    uint32_t code = sum_of_parts(srcs, n, own, i, wire, &expected);
    assert_int_equal(reference_get(out, i, 2), code);
    assert_int_equal(reference_get(dst, i, 4), reference_widen(reference_wire_type(wire), code));
  }
  assert_memory_equal(&counters, &expected, sizeof counters);
  for (size_t before = 1; before <= 64; before++) {
    assert_int_equal(out[-before], 0xa5);
    assert_int_equal(dst[-before], 0xa5);
  }
}

static void sums_of_all_shapes(const struct reduce_variant *variant, enum reduce_wire wire) {
  static const size_t lengths[] = { 0, 1, 3, 4, 5, 8, 15, 16, 17, 31, 63, 64, 65, 127, 255, MOST };
  uint64_t random = wire;
  const void *srcs[MOST_HOSTS];
  for (unsigned n = 1; n <= MOST_HOSTS; n++) {
    for (unsigned own = 0; own < n; own++) {
      for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        fill_parts(srcs, n, own, lengths[l], wire, l % 4, &random);
        check_sum(variant, wire, srcs, n, own, lengths[l]);
      }
    }
  }
}

UNIT_TEST_WITH(owners_sum_and_round_once, map_memory, unmap_memory) {
  with_each(sums_of_all_shapes);
}

/* dst may be the owner's part, wire another host's. */
static void owner_in_place(const struct reduce_variant *variant, enum reduce_wire wire) {
  uint64_t random = 5;
  const void *srcs[4];
  static uint16_t out[MOST];
  static uint32_t dst[MOST];
  struct reduce_counters counters = { 0 };
  fill_parts(srcs, 4, 2, MOST, wire, 3, &random);
  reduce_from_wire(variant, out, dst, srcs, 4, 2, MOST, wire, &counters);
  void *own = (void *)(uintptr_t)srcs[2], *other = (void *)(uintptr_t)srcs[1];
  reduce_from_wire(variant, other, own, srcs, 4, 2, MOST, wire, &counters);
  assert_memory_equal(other, out, sizeof out);
  assert_memory_equal(own, dst, sizeof dst);
}

/* Narrowed to where they stand, and widened from the second half of where they go. */
static void conversions_in_place(const struct reduce_variant *variant, enum reduce_wire wire) {
  uint64_t random = 6;
  static uint32_t values[MOST], place[MOST], wide[MOST];
  static uint16_t codes[MOST];
  struct reduce_counters counters = { 0 };
  for (size_t count = 0; count <= MOST; count += count < 140 ? 1 : 80) {
    for (size_t i = 0; i < count; i++) {
      values[i] = place[i] = random_f32(&random);
    }
    reduce_narrow(variant, codes, values, count, wire, &counters);
    reduce_narrow(variant, place, place, count, wire, &counters);
    assert_memory_equal(place, codes, count * 2);
    uint16_t *half = (uint16_t *)place + count;
    memmove(half, codes, count * 2);
    reduce_widen(variant, wide, codes, count, wire);
    reduce_widen(variant, place, half, count, wire);
    assert_memory_equal(place, wide, count * 4);
  }
}

UNIT_TEST_WITH(buffers_may_overlap_as_promised, map_memory, unmap_memory) {
  with_each(owner_in_place);
  with_each(conversions_in_place);
}

/* Both conversions, up to both ends of their memory. */
static void conversions_at_edges(const struct reduce_variant *variant, enum reduce_wire wire) {
  uint64_t random = 8;
  enum reduce_type type = reference_wire_type(wire);
  for (size_t count = 0; count < 150; count++) {
    size_t skew = count % 3;
    unsigned char *from = guarded_end(&memory[0], 0) - count * 4 - skew,
                  *to = guarded_end(&memory[1], 0) - count * 2 - skew;
    struct reduce_counters counters = { 0 };
    for (size_t i = 0; i < count; i++) {
      reference_put(from, i, 4, random_f32(&random));
    }
    memset(to - 64, 0xa5, 64);
    memset(memory[2].begin, 0xa5, (size_t)(guarded_end(&memory[2], 0) - memory[2].begin));
    reduce_narrow(variant, to, from, count, wire, &counters);
    reduce_widen(variant, memory[2].begin, to, count, wire);
    assert_int_equal(counters.elements, count);
    for (size_t i = 0; i < count; i++) {
      uint32_t code = reference_round(type, (uint32_t)reference_get(from, i, 4));
      assert_int_equal(reference_get(to, i, 2), code);
      assert_int_equal(reference_get(memory[2].begin, i, 4), reference_widen(type, code));
    }
    for (size_t i = 0; i < 64; i++) {
      assert_int_equal(to[i - 64], 0xa5);
      assert_int_equal(memory[2].begin[count * 4 + i], 0xa5);
    }
  }
}

UNIT_TEST_WITH(nothing_beyond_the_ends_is_touched, map_memory, unmap_memory) {
  with_each(conversions_at_edges);
}
