/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_n: every type, operation and variant against scalar code, at all lengths and alignments.
 */
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
  for (size_t v = 0; reduce_variant(v); v++) {
    const struct reduce_variant *variant = reduce_variant(v);
    if (variant->is_usable()) {
      memset(to->begin, 0xa5, (size_t)(guarded_end(to, 0) - to->begin));
      reduce_n(variant, dst, srcs, n, count, type, op);
      check_result(dst, expected, count, type, op, variant->name);
    }
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

UNIT_TEST_WITH(every_type_op_and_variant, map_memory, unmap_memory) {
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
UNIT_TEST_WITH(every_number_of_sources, map_memory, unmap_memory) {
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
    for (size_t v = 0; reduce_variant(v) && reduce_variant(v)->is_usable(); v++) {
      for (enum reduce_op op = 0; op < REDUCE_OPS; op++) {
        const void *srcs[1] = { codes };
        reduce_n(reduce_variant(v), results, srcs, 1, count, types[t], op);
        for (size_t i = 0; i < count; i++) {
          uint32_t expected = reference_round(types[t], reference_widen(types[t], (uint32_t)i));
          assert_int_equal(reference_get(results, i, bytes), expected);
        }
      }
    }
  }
}

/* ---- the same bits ---- */

UNIT_TEST_WITH(the_destination_may_be_a_source, map_memory, unmap_memory) {
  enum { HOSTS = 6, COUNT = 999 };
  static float expected[COUNT];
  const void *srcs[HOSTS];
  place_sources(srcs, HOSTS, sizeof expected, 4, false);
  for (size_t v = 0; reduce_variant(v) && reduce_variant(v)->is_usable(); v++) {
    for (int own = 0; own < HOSTS; own++) {
      fill_sources(srcs, HOSTS, COUNT, REDUCE_FLOAT32, 3);
      reduce_n(reduce_variant(v), expected, srcs, HOSTS, COUNT, REDUCE_FLOAT32, REDUCE_SUM);
      void *dst = (void *)(uintptr_t)srcs[own];
      reduce_n(reduce_variant(v), dst, srcs, HOSTS, COUNT, REDUCE_FLOAT32, REDUCE_SUM);
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
UNIT_TEST_WITH(the_callers_floating_point_does_not_matter, map_memory, unmap_memory) {
  for (size_t v = 0; reduce_variant(v) && reduce_variant(v)->is_usable(); v++) {
    for (enum reduce_type type = REDUCE_FLOAT16; type < REDUCE_TYPES; type++) {
      const void *srcs[4];
      static unsigned char expected[SPACE], results[SPACE];
      place_sources(srcs, 4, 1000 * 8, 0, false);
      fill_sources(srcs, 4, 1000, type, type);
      reduce_n(reduce_variant(v), expected, srcs, 4, 1000, type, REDUCE_SUM);
      fesetround(FE_TOWARDZERO);
      flush_denormals();
      reduce_n(reduce_variant(v), results, srcs, 4, 1000, type, REDUCE_SUM);
      bool are_kept = fegetround() == FE_TOWARDZERO && are_denormals_flushed();
      fesetenv(FE_DFL_ENV);
      assert_true(are_kept);
      assert_memory_equal(results, expected, 1000 * reduce_element_bytes(type));
    }
  }
}
