/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant against scalar code: each type and operation, at all lengths and alignments; f32 to
 * 16 bits and back, rounding at every edge, counters, the owner's step. */
#include "net_plugin/reduce/reduce.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "common/random.h"
#include "tests/lib/guarded.h"
#include "tests/lib/reduce_reference.h"
#include "tests/lib/unit.h"

/* A block of the widest variant is 256 elements of 8 bits. */
enum { MOST_SOURCES = 40, MOST = 1100, SPACE = (MOST + 8) * 8 };

static struct guarded memory[MOST_SOURCES + 1]; /* sources, and the destination */

/* Those that this processor can run. */
#define FOR_EACH_VARIANT(variant)                                                                  \
  for (const struct reduce_variant *variant = next_variant(NULL); variant;                         \
       variant = next_variant(variant))

static const struct reduce_variant *next_variant(const struct reduce_variant *before) {
  const struct reduce_variant *next = NULL;
  size_t i = before ? (size_t)(before - reduce_variant(0)) + 1 : 0;
  while ((next = reduce_variant(i)) && !next->is_usable()) {
    i++;
  }
  return next;
}

static int map_memory(void **state) {
  for (unsigned k = 0; k <= MOST_SOURCES; k++) {
    memory[k] = guarded_make(SPACE);
  }
  return 0;
}

static int unmap_memory(void **state) {
  for (unsigned k = 0; k <= MOST_SOURCES; k++) {
    guarded_free(&memory[k]);
  }
  return 0;
}

/* Zeros, denormals, the largest, infinities, NaNs of both kinds: as f32 or f64, and the same for
 * small formats by their upper bits. */
static const uint32_t specials[] = {
  0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
  0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff8fffff, 0x3f800000, 0xbf800000,
};

/* One in eight is special; of the others half are near 1, so that sums round in many ways. */
static uint64_t random_element(uint64_t *random, enum reduce_type type) {
  uint64_t bits = random_next(random);
  size_t bytes = reduce_element_bytes(type);
  if (type <= REDUCE_UINT64 || bits >> 62 == 0) {
    return bits;
  }
  uint64_t special = specials[bits % 16];
  if (bits >> 61 == 2) {
    return type == REDUCE_FLOAT64 ? (special & 0x80000000) << 32 | (special & 0x7fffffff) << 29
           : bytes == 4           ? special
                                  : special >> (32 - 8 * bytes);
  }
  double value = ((double)(bits & 0xffffffff) / 0x1p31 - 1) * ldexp(1, (int)(bits >> 32 & 7) - 4);
  if (type == REDUCE_FLOAT64) {
    memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  float narrow = (float)value;
  uint32_t code;
  memcpy(&code, &narrow, sizeof code);
  return type == REDUCE_FLOAT32 ? code : reference_round(type, code);
}

/* Sources that begin `skew` bytes behind the start of their memory, or end as far before its end.
 */
static void place_sources(const void *srcs[], unsigned n, size_t bytes, size_t skew, bool at_end) {
  for (unsigned k = 0; k < n; k++) {
    size_t own_skew = (skew * (k + 1)) % 64;
    srcs[k] = at_end ? guarded_end(&memory[k], 0) - bytes - own_skew : memory[k].begin + own_skew;
  }
}

static void fill_sources(const void *srcs[], unsigned n, size_t count, enum reduce_type type,
                         uint64_t seed) {
  uint64_t random = seed;
  for (unsigned k = 0; k < n; k++) {
    for (size_t i = 0; i < count; i++) {
      reference_put((void *)(uintptr_t)srcs[k], i, reduce_element_bytes(type),
                    random_element(&random, type));
    }
  }
}

static void expect_result(const void *srcs[], unsigned n, size_t count, enum reduce_type type,
                          enum reduce_op op, void *expected) {
  for (size_t i = 0; i < count; i++) {
    reference_put(expected, i, reduce_element_bytes(type), reference_element(srcs, n, i, type, op));
  }
}

/* The destination, and the bytes before and behind it. */
static void check_result(const unsigned char *dst, const void *expected, size_t count,
                         enum reduce_type type, enum reduce_op op, const char *variant) {
  size_t bytes = reduce_element_bytes(type);
  for (size_t i = 0; i < count && memcmp(dst, expected, count * bytes); i++) {
    if (reference_get(dst, i, bytes) != reference_get(expected, i, bytes)) {
      fail_msg("%s %s %s: element %zu of %zu is %#llx, not %#llx", variant,
               reference_type_names[type], reference_op_names[op], i, count,
               (unsigned long long)reference_get(dst, i, bytes),
               (unsigned long long)reference_get(expected, i, bytes));
    }
  }
  const struct guarded *to = &memory[MOST_SOURCES];
  for (const unsigned char *at = to->begin; at < guarded_end(to, 0); at++) {
    if ((at < dst || at >= dst + count * bytes) && *at != 0xa5) {
      fail_msg("%s %s %s of %zu elements: wrote %td bytes beyond its end", variant,
               reference_type_names[type], reference_op_names[op], count,
               at - (dst + count * bytes));
    }
  }
}

static void run_variants(const void *srcs[], unsigned n, size_t count, enum reduce_type type,
                         enum reduce_op op, size_t skew, bool at_end) {
  static unsigned char expected[SPACE];
  size_t bytes = count * reduce_element_bytes(type);
  const struct guarded *to = &memory[MOST_SOURCES];
  unsigned char *dst = at_end ? guarded_end(to, 0) - bytes - skew : to->begin + skew;
  expect_result(srcs, n, count, type, op, expected);
  FOR_EACH_VARIANT(variant) {
    memset(to->begin, 0xa5, to->room);
    reduce_n(variant, dst, srcs, n, count, type, op);
    check_result(dst, expected, count, type, op, variant->name);
  }
}

static void try_lengths(enum reduce_type type, enum reduce_op op) {
  static const size_t lengths[] = { 0,   1,   2,   3,   4,   5,   7,   8,   9,   15,
                                    16,  17,  31,  32,  33,  63,  64,  65,  127, 128,
                                    129, 191, 255, 256, 257, 300, 383, 511, 513, 1027 };
  static const unsigned numbers[] = { 1, 2, 3, 4, 8, 16, 17, MOST_SOURCES };
  const void *srcs[MOST_SOURCES];
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    unsigned n = numbers[l % 8];
    size_t count = lengths[l], bytes = count * reduce_element_bytes(type);
    for (size_t skew = 0; skew < 8; skew += skew ? 6 : 1) {
      bool at_end = skew != 1;
      place_sources(srcs, n, bytes, skew, at_end);
      fill_sources(srcs, n, count, type, l * 8 + skew);
      run_variants(srcs, n, count, type, op, skew, at_end);
    }
  }
}

UNIT_TEST(every_type_op_and_variant) {
  for (enum reduce_type type = 0; type < REDUCE_TYPES; type++) {
    for (enum reduce_op op = 0; op < REDUCE_OPS; op++) {
      try_lengths(type, op);
    }
  }
  for (size_t v = 0; reduce_variant(v); v++) {
    print_message("# %s%s\n", reduce_variant(v)->name,
                  reduce_variant(v)->is_usable() ? "" : ": not on this processor");
  }
}

/* All n from 1 to 40, and every alignment of each source. */
UNIT_TEST(every_number_of_sources) {
  const void *srcs[MOST_SOURCES];
  static const enum reduce_type types[] = { REDUCE_FLOAT32, REDUCE_BFLOAT16, REDUCE_INT8 };
  for (size_t t = 0; t < 3; t++) {
    for (unsigned n = 1; n <= MOST_SOURCES; n++) {
      for (size_t skew = n % 2; skew < 64; skew += 5) {
        place_sources(srcs, n, 300 * 4, skew, true);
        fill_sources(srcs, n, 300, types[t], n);
        run_variants(srcs, n, 300, types[t], REDUCE_SUM, skew, false);
      }
    }
  }
}

/* All codes of the formats of 8 and 16 bits go in and come out: one source, whose NaNs become one
 * and whose infinities become the largest number where NCCL saturates. */
UNIT_TEST(every_code) {
  static const enum reduce_type types[] = { REDUCE_FLOAT16, REDUCE_BFLOAT16, REDUCE_FLOAT8E4M3,
                                            REDUCE_FLOAT8E5M2 };
  static uint16_t codes[65536], results[65536];
  for (size_t t = 0; t < 4; t++) {
    size_t bytes = reduce_element_bytes(types[t]), count = bytes == 1 ? 256 : 65536;
    for (size_t i = 0; i < count; i++) {
      reference_put(codes, i, bytes, i);
    }
    FOR_EACH_VARIANT(variant) {
      for (enum reduce_op op = 0; op < REDUCE_OPS; op++) {
        const void *srcs[1] = { codes };
        reduce_n(variant, results, srcs, 1, count, types[t], op);
        for (size_t i = 0; i < count; i++) {
          uint32_t expected = reference_round(types[t], reference_widen(types[t], (uint32_t)i));
          assert_int_equal(reference_get(results, i, bytes), expected);
        }
      }
    }
  }
}

/* ---- the same bits ---- */

UNIT_TEST(the_destination_may_be_a_source) {
  enum { HOSTS = 6, COUNT = 999 };
  static float expected[COUNT];
  const void *srcs[HOSTS];
  place_sources(srcs, HOSTS, sizeof expected, 4, false);
  FOR_EACH_VARIANT(variant) {
    for (int own = 0; own < HOSTS; own++) {
      fill_sources(srcs, HOSTS, COUNT, REDUCE_FLOAT32, 3);
      reduce_n(variant, expected, srcs, HOSTS, COUNT, REDUCE_FLOAT32, REDUCE_SUM);
      void *dst = (void *)(uintptr_t)srcs[own];
      reduce_n(variant, dst, srcs, HOSTS, COUNT, REDUCE_FLOAT32, REDUCE_SUM);
      assert_memory_equal(dst, expected, sizeof expected);
    }
  }
}

static void flush_denormals(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | UINT64_C(1) << 24)); /* FZ */
#endif
}

static bool are_denormals_flushed(void) {
  volatile float smallest = FLT_MIN;
  return smallest / 2 == 0;
}

/* A user's thread may round to zero and flush denormals; the next one not. */
UNIT_TEST(the_callers_floating_point_does_not_matter) {
  FOR_EACH_VARIANT(variant) {
    for (enum reduce_type type = REDUCE_FLOAT16; type < REDUCE_TYPES; type++) {
      const void *srcs[4];
      static unsigned char expected[SPACE], results[SPACE];
      place_sources(srcs, 4, 1000 * 8, 0, false);
      fill_sources(srcs, 4, 1000, type, type);
      reduce_n(variant, expected, srcs, 4, 1000, type, REDUCE_SUM);
      fesetround(FE_TOWARDZERO);
      flush_denormals();
      reduce_n(variant, results, srcs, 4, 1000, type, REDUCE_SUM);
      bool are_kept = fegetround() == FE_TOWARDZERO && are_denormals_flushed();
      fesetenv(FE_DFL_ENV);
      assert_true(are_kept);
      assert_memory_equal(results, expected, 1000 * reduce_element_bytes(type));
    }
  }
}

/* ---- f32 over wires of 16 bits ---- */

enum { CODES = 65536 };

/* A test of one variant and wire, which is run with each. */
#define WIRE_TEST(name)                                                                            \
  static void name##_of(const struct reduce_variant *variant, enum reduce_wire wire);              \
  UNIT_TEST(name) {                                                                                \
    FOR_EACH_VARIANT(variant) {                                                                    \
      for (enum reduce_wire wire = 0; wire < REDUCE_WIRES; wire++) {                               \
        name##_of(variant, wire);                                                                  \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void name##_of(const struct reduce_variant *variant, enum reduce_wire wire)

static bool is_nan(enum reduce_wire wire, uint32_t code) {
  return (code & 0x7fff) > (wire == REDUCE_WIRE_FLOAT16 ? 0x7c00 : 0x7f80);
}

/* Widening is exact, so it can be undone; a NaN stays one. */
WIRE_TEST(every_code_of_a_wire) {
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

/* Every upper half of an f32, with lower halves around every tie that there can be. */
WIRE_TEST(every_edge_of_a_wire) {
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

/* ---- the owner's step ---- */

/* Their parts are the first of the memory, then come the wire and f32. */
enum { MOST_HOSTS = 9, MOST_PARTS = 700 };

/* Each part ends where its memory ends, less `skew` bytes. */
static void fill_parts(const void *srcs[], unsigned n, unsigned own, size_t count,
                       enum reduce_wire wire, size_t skew, uint64_t *random) {
  for (unsigned k = 0; k < n; k++) {
    size_t bytes = k == own ? 4 : 2;
    unsigned char *part = guarded_end(&memory[k], 0) - count * bytes - (skew ? (skew + k) % 16 : 0);
    for (size_t i = 0; i < count; i++) {
      uint32_t bits = (uint32_t)random_element(random, REDUCE_FLOAT32);
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

WIRE_TEST(owners_sum_and_round_once) {
  static const size_t lengths[] = { 0,  1,  3,  4,  5,  8,   15,  16,
                                    17, 31, 63, 64, 65, 127, 255, MOST_PARTS };
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

/* dst may be the owner's part, wire another host's. */
WIRE_TEST(the_owners_buffers_may_overlap) {
  uint64_t random = 5;
  const void *srcs[4];
  static uint16_t out[MOST_PARTS];
  static uint32_t dst[MOST_PARTS];
  struct reduce_counters counters = { 0 };
  fill_parts(srcs, 4, 2, MOST_PARTS, wire, 3, &random);
  reduce_from_wire(variant, out, dst, srcs, 4, 2, MOST_PARTS, wire, &counters);
  void *own = (void *)(uintptr_t)srcs[2], *other = (void *)(uintptr_t)srcs[1];
  reduce_from_wire(variant, other, own, srcs, 4, 2, MOST_PARTS, wire, &counters);
  assert_memory_equal(other, out, sizeof out);
  assert_memory_equal(own, dst, sizeof dst);
}

/* Both conversions, up to both ends of their memory; then narrowed to where the values stand, and
 * widened from the second half of where they go. */
WIRE_TEST(conversions_stay_within_their_buffers_which_may_be_one) {
  uint64_t random = 8;
  enum reduce_type type = reference_wire_type(wire);
  for (size_t count = 0; count <= MOST_PARTS; count += count < 150 ? 1 : 80) {
    size_t skew = count % 3;
    unsigned char *from = guarded_end(&memory[0], 0) - count * 4 - skew,
                  *to = guarded_end(&memory[1], 0) - count * 2 - skew, *wide = memory[2].begin;
    struct reduce_counters counters = { 0 };
    for (size_t i = 0; i < count; i++) {
      reference_put(from, i, 4, random_element(&random, REDUCE_FLOAT32));
    }
    memset(to - 64, 0xa5, 64);
    memset(wide, 0xa5, memory[2].room);
    reduce_narrow(variant, to, from, count, wire, &counters);
    reduce_widen(variant, wide, to, count, wire);
    assert_int_equal(counters.elements, count);
    for (size_t i = 0; i < count; i++) {
      uint32_t code = reference_round(type, (uint32_t)reference_get(from, i, 4));
      assert_int_equal(reference_get(to, i, 2), code);
      assert_int_equal(reference_get(wide, i, 4), reference_widen(type, code));
    }
    for (size_t i = 0; i < 64; i++) {
      assert_int_equal(to[i - 64], 0xa5);
      assert_int_equal(wide[count * 4 + i], 0xa5);
    }
    reduce_narrow(variant, from, from, count, wire, &counters);
    assert_memory_equal(from, to, count * 2);
    memmove(from + count * 2, from, count * 2);
    reduce_widen(variant, from, from + count * 2, count, wire);
    assert_memory_equal(from, wide, count * 4);
  }
}

UNIT_MAIN(map_memory, unmap_memory)
