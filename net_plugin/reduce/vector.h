/* SPDX-License-Identifier: Apache-2.0 */
/* vector: registers as the compiler's vector types, whose operators work lane by lane. For files
 * that define VECTOR_BYTES, the width of a register, and TARGET, an attribute that lets functions
 * use the instructions for it; the types are theirs alone.
 *
 * Lanes of numbers are unsigned, so that sums wrap; signed ones are for comparisons, whose result
 * has all bits of a lane set or none. */
#ifndef NET_PLUGIN_REDUCE_VECTOR_H
#define NET_PLUGIN_REDUCE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))

#define VECTOR(type, bytes) type __attribute__((vector_size(bytes)))
typedef VECTOR(uint8_t, VECTOR_BYTES) u8v;
typedef VECTOR(uint16_t, VECTOR_BYTES) u16v;
typedef VECTOR(uint32_t, VECTOR_BYTES) u32v;
typedef VECTOR(uint64_t, VECTOR_BYTES) u64v;
typedef VECTOR(int8_t, VECTOR_BYTES) i8v;
typedef VECTOR(int16_t, VECTOR_BYTES) i16v;
typedef VECTOR(int32_t, VECTOR_BYTES) i32v;
typedef VECTOR(int64_t, VECTOR_BYTES) i64v;
typedef VECTOR(float, VECTOR_BYTES) f32v;
typedef VECTOR(double, VECTOR_BYTES) f64v;
/* As many lanes as a u32v. */
typedef VECTOR(uint16_t, VECTOR_BYTES / 2) u16h;
typedef VECTOR(uint8_t, VECTOR_BYTES / 4) u8q;

#define LANES(type) (sizeof(type) / sizeof((*(type *)0)[0]))

/* Where a comparison holds, a, else b. */
#define SELECT(type, mask, a, b) (((type)(mask) & (a)) | (~(type)(mask) & (b)))

/* The first lanes from memory and to memory; other lanes are zero. */
#define MEMORY(type)                                                                               \
  INLINE type get_##type(const void *at, size_t lanes) {                                           \
    type value = { 0 };                                                                            \
    memcpy(&value, at, lanes * sizeof value[0]);                                                   \
    return value;                                                                                  \
  }                                                                                                \
  INLINE void put_##type(void *at, type value, size_t lanes) {                                     \
    memcpy(at, &value, lanes * sizeof value[0]);                                                   \
  }
MEMORY(u8v)
MEMORY(u16v)
MEMORY(u32v)
MEMORY(u64v)
MEMORY(f32v)
MEMORY(f64v)
MEMORY(u16h)
MEMORY(u8q)

/* Lanes of other widths as the compiler does it. gcc 12 takes several instructions for registers of
 * more than 16 bytes; variants with such have their own. */
INLINE u32v u32_from_u16_by_compiler(u16h narrow) {
  return __builtin_convertvector(narrow, u32v);
}

INLINE u16h u16_from_u32_by_compiler(u32v wide) {
  return __builtin_convertvector(wide, u16h);
}

INLINE u32v u32_from_u8_by_compiler(u8q narrow) {
  return u32_from_u16_by_compiler(__builtin_convertvector(narrow, u16h));
}

INLINE u8q u8_from_u32_by_compiler(u32v wide) {
  return __builtin_convertvector(u16_from_u32_by_compiler(wide), u8q);
}

#endif
