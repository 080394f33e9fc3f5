/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: which variant runs, and in which floating-point environment. */
#include "net_plugin/reduce/reduce.h"

#include "net_plugin/reduce/variant.h"

size_t reduce_element_bytes(enum reduce_type type) {
  static const unsigned char bytes[REDUCE_TYPES] = {
    [REDUCE_INT8] = 1,    [REDUCE_UINT8] = 1,    [REDUCE_INT32] = 4,      [REDUCE_UINT32] = 4,
    [REDUCE_INT64] = 8,   [REDUCE_UINT64] = 8,   [REDUCE_FLOAT16] = 2,    [REDUCE_FLOAT32] = 4,
    [REDUCE_FLOAT64] = 8, [REDUCE_BFLOAT16] = 2, [REDUCE_FLOAT8E4M3] = 1, [REDUCE_FLOAT8E5M2] = 1,
  };
  return bytes[type];
}

/* ---- variants ---- */

static bool always(void) {
  return true;
}

#if defined(__x86_64__)
/* Every processor with AVX2 has F16C, but a hypervisor may hide it. clang 14, which makes the fuzz
 * targets only, has no name for it. */
static bool has_avx2(void) {
#if !defined(__clang__)
  if (!__builtin_cpu_supports("f16c")) {
    return false;
  }
#endif
  return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct reduce_variant variants[] = {
#if defined(__x86_64__)
  { "avx512", has_avx512, &reduce_avx512 },
  { "avx2", has_avx2, &reduce_avx2 },
#elif defined(__aarch64__)
  { "neon", always, &reduce_neon },
#endif
  { "portable", always, &reduce_portable },
};

const struct reduce_variant *reduce_variant(size_t i) {
  return i < sizeof variants / sizeof *variants ? &variants[i] : NULL;
}

const struct reduce_variant *reduce_fastest(void) {
  const struct reduce_variant *variant = variants;
  while (!variant->is_usable()) {
    variant++;
  }
  return variant;
}

/* ---- the floating-point environment ----
 *
 * A thread inherits rounding mode and flushing of denormals from the one that made it, so it may be
 * the user's that has changed them (torch.set_flush_denormal). Sums must not depend on it. */

#if defined(__x86_64__)
#include <xmmintrin.h>

#define MXCSR_DEFAULT 0x1f80u /* nearest, denormals kept, no exceptions */
typedef unsigned environment;

static environment enter(void) {
  environment before = _mm_getcsr();
  _mm_setcsr(MXCSR_DEFAULT);
  return before;
}

static void leave(environment before) {
  _mm_setcsr(before);
}

#else
#include <fenv.h>

typedef fenv_t environment;

static environment enter(void) {
  environment before;
  fegetenv(&before);
  fesetenv(FE_DFL_ENV);
  return before;
}

static void leave(environment before) {
  fesetenv(&before);
}
#endif

/* ---- the operations ---- */

void reduce_n(const struct reduce_variant *variant, void *dst, const void *const srcs[], unsigned n,
              size_t count, enum reduce_type type, enum reduce_op op) {
  environment before = enter();
  variant->kernels->n[type][op](dst, srcs, n, count);
  leave(before);
}

void reduce_narrow(const struct reduce_variant *variant, void *wire, const void *src, size_t count,
                   enum reduce_wire type, struct reduce_counters *counters) {
  environment before = enter();
  variant->kernels->narrow[type](wire, src, count, counters);
  leave(before);
}

void reduce_widen(const struct reduce_variant *variant, void *dst, const void *wire, size_t count,
                  enum reduce_wire type) {
  environment before = enter();
  variant->kernels->widen[type](dst, wire, count);
  leave(before);
}

void reduce_from_wire(const struct reduce_variant *variant, void *wire, void *dst,
                      const void *const srcs[], unsigned n, unsigned own, size_t count,
                      enum reduce_wire type, struct reduce_counters *counters) {
  environment before = enter();
  variant->kernels->from_wire[type](wire, dst, srcs, n, own, count, counters);
  leave(before);
}
