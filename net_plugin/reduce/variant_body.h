/* SPDX-License-Identifier: Apache-2.0 */
/* variant_body: the kernels of one variant and their table, called VARIANT. After formats.h and
 * f16_from_f32() and f32_from_f16().
 *
 * A kernel takes a block of some registers' width from each source in turn, so every source is read
 * once, the accumulators stay in registers, and nothing else is written. What is left at the end
 * goes through the same operations with fewer lanes from memory. */
#ifndef NET_PLUGIN_REDUCE_VARIANT_BODY_H
#define NET_PLUGIN_REDUCE_VARIANT_BODY_H

#include "net_plugin/reduce/formats.h"
#include "net_plugin/reduce/variant.h"

/* Registers of a block: with what a load and a mask need, they fit the 16 of AVX2. */
#define BLOCK 4

#define AT(base, element, bytes) ((const char *)(base) + (element) * (bytes))
#define PUT_AT(base, element, bytes) ((char *)(base) + (element) * (bytes))

/* LOAD(address, lanes) gives an ACC, STORE(address, ACC, lanes) rounds it; ELEMENT: bytes in
 * memory. */
#define KERNEL(NAME, ACC, ELEMENT, LOAD, COMBINE, STORE)                                           \
  INLINE void NAME##_block(void *dst, const void *const srcs[], unsigned n, size_t at,             \
                           size_t registers, size_t lanes) {                                       \
    ACC acc[BLOCK];                                                                                \
    _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                               \
      acc[i] = LOAD(AT(srcs[0], at + i * LANES(ACC), ELEMENT), lanes);                             \
    }                                                                                              \
    for (unsigned k = 1; k < n; k++) {                                                             \
      _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                             \
        acc[i] = COMBINE(acc[i], LOAD(AT(srcs[k], at + i * LANES(ACC), ELEMENT), lanes));          \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                               \
      STORE(PUT_AT(dst, at + i * LANES(ACC), ELEMENT), acc[i], lanes);                             \
    }                                                                                              \
  }                                                                                                \
  TARGET static void NAME(void *dst, const void *const srcs[], unsigned n, size_t count) {         \
    size_t at = 0, lanes = LANES(ACC);                                                             \
    for (; count - at >= BLOCK * lanes; at += BLOCK * lanes) {                                     \
      NAME##_block(dst, srcs, n, at, BLOCK, lanes);                                                \
    }                                                                                              \
    for (; count - at >= lanes; at += lanes) {                                                     \
      NAME##_block(dst, srcs, n, at, 1, lanes);                                                    \
    }                                                                                              \
    if (at < count) {                                                                              \
      NAME##_block(dst, srcs, n, at, 1, count - at);                                               \
    }                                                                                              \
  }

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))

/* ---- sums and products ---- */

KERNEL(sum_8, u8v, 1, get_u8v, ADD, put_u8v)
KERNEL(sum_32, u32v, 4, get_u32v, ADD, put_u32v)
KERNEL(sum_64, u64v, 8, get_u64v, ADD, put_u64v)
KERNEL(prod_8, u8v, 1, get_u8v, MULTIPLY, put_u8v)
KERNEL(prod_32, u32v, 4, get_u32v, MULTIPLY, put_u32v)
KERNEL(prod_64, u64v, 8, get_u64v, MULTIPLY, put_u64v)

#define STORE_F32(at, value, lanes) put_f32v(at, one_nan(value), lanes)
#define STORE_F64(at, value, lanes) put_f64v(at, one_nan_f64(value), lanes)
KERNEL(sum_f32, f32v, 4, get_f32v, ADD, STORE_F32)
KERNEL(prod_f32, f32v, 4, get_f32v, MULTIPLY, STORE_F32)
KERNEL(sum_f64, f64v, 8, get_f64v, ADD, STORE_F64)
KERNEL(prod_f64, f64v, 8, get_f64v, MULTIPLY, STORE_F64)

#define LOAD_BF16(at, lanes) f32_from_bf16(get_u16h(at, lanes))
#define STORE_BF16(at, value, lanes) put_u16h(at, bf16_from_f32(value), lanes)
#define LOAD_F16(at, lanes) f32_from_f16(get_u16h(at, lanes))
#define STORE_F16(at, value, lanes) put_u16h(at, f16_from_f32(value), lanes)
KERNEL(sum_bf16, f32v, 2, LOAD_BF16, ADD, STORE_BF16)
KERNEL(prod_bf16, f32v, 2, LOAD_BF16, MULTIPLY, STORE_BF16)
KERNEL(sum_f16, f32v, 2, LOAD_F16, ADD, STORE_F16)
KERNEL(prod_f16, f32v, 2, LOAD_F16, MULTIPLY, STORE_F16)

#define LOAD_E4M3(at, lanes) f32_from_f8(get_u8q(at, lanes), FORMAT_E4M3)
#define STORE_E4M3(at, value, lanes) put_u8q(at, f8_from_f32(value, FORMAT_E4M3), lanes)
#define LOAD_E5M2(at, lanes) f32_from_f8(get_u8q(at, lanes), FORMAT_E5M2)
#define STORE_E5M2(at, value, lanes) put_u8q(at, f8_from_f32(value, FORMAT_E5M2), lanes)
KERNEL(sum_e4m3, f32v, 1, LOAD_E4M3, ADD, STORE_E4M3)
KERNEL(prod_e4m3, f32v, 1, LOAD_E4M3, MULTIPLY, STORE_E4M3)
KERNEL(sum_e5m2, f32v, 1, LOAD_E5M2, ADD, STORE_E5M2)
KERNEL(prod_e5m2, f32v, 1, LOAD_E5M2, MULTIPLY, STORE_E5M2)

/* ---- the least and the greatest ----
 *
 * Of signed integers. Unsigned ones have their first bit turned; floating-point numbers become
 * keys: negative ones have all bits but the sign turned, so keys are ordered as the numbers are,
 * and -0 comes before +0. A NaN gets the key that loses to every number, so that a number comes out
 * if there is one: as CUDA's fmin, fmax, __hmin and __hmax do, which NCCL uses. */

#define MIN_MAX(BITS)                                                                              \
  INLINE u##BITS##v min_##BITS(u##BITS##v a, u##BITS##v b) {                                       \
    return SELECT(u##BITS##v, (i##BITS##v)a < (i##BITS##v)b, a, b);                                \
  }                                                                                                \
  INLINE u##BITS##v max_##BITS(u##BITS##v a, u##BITS##v b) {                                       \
    return SELECT(u##BITS##v, (i##BITS##v)a > (i##BITS##v)b, a, b);                                \
  }
MIN_MAX(8)
MIN_MAX(16)
MIN_MAX(32)
MIN_MAX(64)

#define INTEGERS(BITS)                                                                             \
  INLINE u##BITS##v turn_##BITS(u##BITS##v value) {                                                \
    return value ^ ((uint##BITS##_t)1 << (BITS - 1));                                              \
  }                                                                                                \
  INLINE u##BITS##v get_turned_##BITS(const void *at, size_t lanes) {                              \
    return turn_##BITS(get_u##BITS##v(at, lanes));                                                 \
  }                                                                                                \
  INLINE void put_turned_##BITS(void *at, u##BITS##v value, size_t lanes) {                        \
    put_u##BITS##v(at, turn_##BITS(value), lanes);                                                 \
  }                                                                                                \
  KERNEL(min_i##BITS, u##BITS##v, BITS / 8, get_u##BITS##v, min_##BITS, put_u##BITS##v)            \
  KERNEL(max_i##BITS, u##BITS##v, BITS / 8, get_u##BITS##v, max_##BITS, put_u##BITS##v)            \
  KERNEL(min_u##BITS, u##BITS##v, BITS / 8, get_turned_##BITS, min_##BITS, put_turned_##BITS)      \
  KERNEL(max_u##BITS, u##BITS##v, BITS / 8, get_turned_##BITS, max_##BITS, put_turned_##BITS)
INTEGERS(8)
INTEGERS(32)
INTEGERS(64)

/* Codes of TYPE above LARGEST are NaN; those above TOP and not NaN become TOP. */
#define FLOATS(TYPE, BITS, LARGEST, TOP)                                                           \
  INLINE u##BITS##v mask_##TYPE(void) {                                                            \
    return (u##BITS##v){ 0 } + (uint##BITS##_t)((uint##BITS##_t) ~(uint##BITS##_t)0 >> 1);         \
  }                                                                                                \
  INLINE u##BITS##v nans_##TYPE(u##BITS##v code) {                                                 \
    return (u##BITS##v)((i##BITS##v)(code & mask_##TYPE()) > (int##BITS##_t)(LARGEST));            \
  }                                                                                                \
  INLINE u##BITS##v turn_##TYPE(u##BITS##v code) {                                                 \
    return code ^ ((u##BITS##v)((i##BITS##v)code < 0) & mask_##TYPE());                            \
  }                                                                                                \
  INLINE u##BITS##v get_low_##TYPE(const void *at, size_t lanes) {                                 \
    u##BITS##v code = get_u##BITS##v(at, lanes);                                                   \
    return SELECT(u##BITS##v, nans_##TYPE(code), ~mask_##TYPE(), turn_##TYPE(code));               \
  }                                                                                                \
  INLINE u##BITS##v get_high_##TYPE(const void *at, size_t lanes) {                                \
    u##BITS##v code = get_u##BITS##v(at, lanes);                                                   \
    return SELECT(u##BITS##v, nans_##TYPE(code), mask_##TYPE(), turn_##TYPE(code));                \
  }                                                                                                \
  INLINE void put_##TYPE(void *at, u##BITS##v key, size_t lanes) {                                 \
    u##BITS##v code = turn_##TYPE(key), nans = nans_##TYPE(code);                                  \
    code = SELECT(u##BITS##v, nans, mask_##TYPE(), code);                                          \
    if ((TOP) < (LARGEST)) {                                                                       \
      code += ~nans & (u##BITS##v)((i##BITS##v)(code & mask_##TYPE()) > (int##BITS##_t)(TOP));     \
    }                                                                                              \
    put_u##BITS##v(at, code, lanes);                                                               \
  }                                                                                                \
  KERNEL(min_##TYPE, u##BITS##v, BITS / 8, get_high_##TYPE, min_##BITS, put_##TYPE)                \
  KERNEL(max_##TYPE, u##BITS##v, BITS / 8, get_low_##TYPE, max_##BITS, put_##TYPE)
FLOATS(f32, 32, F32_INFINITY, F32_INFINITY)
FLOATS(f64, 64, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff0000000000000))
FLOATS(f16, 16, 0x7c00, 0x7c00)
FLOATS(bf16, 16, 0x7f80, 0x7f80)
FLOATS(e4m3, 8, 0x7e, 0x7e)
FLOATS(e5m2, 8, 0x7c, 0x7b)

/* ---- f32 and the wire ---- */

struct counts {
  u32v overflows, underflows;
};

/* Magnitudes from `over` on become infinite; those below `normal` become zero or denormal. What
 * lies below a range's beginning wraps around and so beyond its end. */
INLINE void count_lost(struct counts *counts, f32v value, uint32_t over, uint32_t normal) {
  u32v magnitude = magnitude_of(value);
  counts->overflows -= (u32v)(magnitude - over < F32_INFINITY - over);
  counts->underflows -= (u32v)(magnitude - 1 < normal - 1);
}

TARGET static uint64_t sum_of_lanes(u32v counts) {
  uint64_t sum = 0;
  for (size_t i = 0; i < LANES(u32v); i++) {
    sum += counts[i];
  }
  return sum;
}

TARGET static void add_counts(struct reduce_counters *counters, const struct counts *counts,
                              size_t elements) {
  counters->elements += elements;
  counters->overflows += sum_of_lanes(counts->overflows);
  counters->underflows += sum_of_lanes(counts->underflows);
}

#define WIRE(TYPE, OVER, NORMAL)                                                                   \
  INLINE void narrow_step_##TYPE(void *wire, const void *src, size_t lanes,                        \
                                 struct counts *counts) {                                          \
    f32v value = get_f32v(src, lanes);                                                             \
    put_u16h(wire, TYPE##_from_f32(value), lanes);                                                 \
    count_lost(counts, value, OVER, NORMAL);                                                       \
  }                                                                                                \
  TARGET static void narrow_##TYPE(void *wire, const void *src, size_t count,                      \
                                   struct reduce_counters *counters) {                             \
    struct counts counts = { { 0 }, { 0 } };                                                       \
    size_t at = 0, lanes = LANES(f32v);                                                            \
    for (; count - at >= lanes; at += lanes) {                                                     \
      narrow_step_##TYPE(PUT_AT(wire, at, 2), AT(src, at, 4), lanes, &counts);                     \
    }                                                                                              \
    narrow_step_##TYPE(PUT_AT(wire, at, 2), AT(src, at, 4), count - at, &counts);                  \
    add_counts(counters, &counts, count);                                                          \
  }                                                                                                \
  TARGET static void widen_##TYPE(void *dst, const void *wire, size_t count) {                     \
    size_t at = 0, lanes = LANES(f32v);                                                            \
    for (; count - at >= lanes; at += lanes) {                                                     \
      put_f32v(PUT_AT(dst, at, 4), f32_from_##TYPE(get_u16h(AT(wire, at, 2), lanes)), lanes);      \
    }                                                                                              \
    lanes = count - at;                                                                            \
    put_f32v(PUT_AT(dst, at, 4), f32_from_##TYPE(get_u16h(AT(wire, at, 2), lanes)), lanes);        \
  }                                                                                                \
  INLINE f32v part_##TYPE(const void *const srcs[], unsigned k, unsigned own, size_t at,           \
                          size_t lanes) {                                                          \
    return k == own ? get_f32v(AT(srcs[k], at, 4), lanes)                                          \
                    : f32_from_##TYPE(get_u16h(AT(srcs[k], at, 2), lanes));                        \
  }                                                                                                \
  INLINE void from_wire_block_##TYPE(void *wire, void *dst, const void *const srcs[], unsigned n,  \
                                     unsigned own, size_t at, size_t registers, size_t lanes,      \
                                     struct counts *counts) {                                      \
    f32v sum[BLOCK];                                                                               \
    _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                               \
      sum[i] = part_##TYPE(srcs, 0, own, at + i * LANES(f32v), lanes);                             \
    }                                                                                              \
    for (unsigned k = 1; k < n; k++) {                                                             \
      _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                             \
        sum[i] += part_##TYPE(srcs, k, own, at + i * LANES(f32v), lanes);                          \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 4") for (size_t i = 0; i < registers; i++) {                               \
      u16h rounded = TYPE##_from_f32(sum[i]);                                                      \
      count_lost(counts, sum[i], OVER, NORMAL);                                                    \
      put_u16h(PUT_AT(wire, at + i * LANES(f32v), 2), rounded, lanes);                             \
      put_f32v(PUT_AT(dst, at + i * LANES(f32v), 4), f32_from_##TYPE(rounded), lanes);             \
    }                                                                                              \
  }                                                                                                \
  TARGET static void from_wire_##TYPE(void *wire, void *dst, const void *const srcs[], unsigned n, \
                                      unsigned own, size_t count,                                  \
                                      struct reduce_counters *counters) {                          \
    struct counts counts = { { 0 }, { 0 } };                                                       \
    size_t at = 0, lanes = LANES(f32v);                                                            \
    for (; count - at >= BLOCK * lanes; at += BLOCK * lanes) {                                     \
      from_wire_block_##TYPE(wire, dst, srcs, n, own, at, BLOCK, lanes, &counts);                  \
    }                                                                                              \
    for (; count - at >= lanes; at += lanes) {                                                     \
      from_wire_block_##TYPE(wire, dst, srcs, n, own, at, 1, lanes, &counts);                      \
    }                                                                                              \
    if (at < count) {                                                                              \
      from_wire_block_##TYPE(wire, dst, srcs, n, own, at, 1, count - at, &counts);                 \
    }                                                                                              \
    add_counts(counters, &counts, count);                                                          \
  }
/* The tie above the largest number goes to infinity, the one below the least normal number to that.
 */
WIRE(bf16, 0x7f7f8000, 0x007f8000)
WIRE(f16, 0x477ff000, 0x387fe000)

/* ---- the table ---- */

#define ROW(sum, prod, name)                                                                       \
  { [REDUCE_SUM] = sum, [REDUCE_PROD] = prod, [REDUCE_MAX] = max_##name, [REDUCE_MIN] = min_##name }
const struct reduce_kernels VARIANT = {
  .n = { [REDUCE_INT8] = ROW(sum_8, prod_8, i8),
         [REDUCE_UINT8] = ROW(sum_8, prod_8, u8),
         [REDUCE_INT32] = ROW(sum_32, prod_32, i32),
         [REDUCE_UINT32] = ROW(sum_32, prod_32, u32),
         [REDUCE_INT64] = ROW(sum_64, prod_64, i64),
         [REDUCE_UINT64] = ROW(sum_64, prod_64, u64),
         [REDUCE_FLOAT16] = ROW(sum_f16, prod_f16, f16),
         [REDUCE_FLOAT32] = ROW(sum_f32, prod_f32, f32),
         [REDUCE_FLOAT64] = ROW(sum_f64, prod_f64, f64),
         [REDUCE_BFLOAT16] = ROW(sum_bf16, prod_bf16, bf16),
         [REDUCE_FLOAT8E4M3] = ROW(sum_e4m3, prod_e4m3, e4m3),
         [REDUCE_FLOAT8E5M2] = ROW(sum_e5m2, prod_e5m2, e5m2) },
  .narrow = { [REDUCE_WIRE_BFLOAT16] = narrow_bf16, [REDUCE_WIRE_FLOAT16] = narrow_f16 },
  .widen = { [REDUCE_WIRE_BFLOAT16] = widen_bf16, [REDUCE_WIRE_FLOAT16] = widen_f16 },
  .from_wire = { [REDUCE_WIRE_BFLOAT16] = from_wire_bf16, [REDUCE_WIRE_FLOAT16] = from_wire_f16 },
};

#endif
