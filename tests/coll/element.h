/* SPDX-License-Identifier: Apache-2.0 */
/* element: NCCL's data types: names, sizes, and the bits ("code") of a number.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_ELEMENT_H
#define COLL_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In the order of ncclDataType_t, whose values these are; those of 8 bits are left out. */
enum element_type {
  ELEMENT_INT8,
  ELEMENT_UINT8,
  ELEMENT_INT32,
  ELEMENT_UINT32,
  ELEMENT_INT64,
  ELEMENT_UINT64,
  ELEMENT_HALF,
  ELEMENT_FLOAT,
  ELEMENT_DOUBLE,
  ELEMENT_BFLOAT16,
  ELEMENT_TYPES
};

struct element_info {
  const char *name; /* as nccl-tests calls it */
  unsigned size_bytes;
  bool is_float, is_signed;
  unsigned mantissa_bits; /* stored ones; 0 for integers */
  /* Every whole number from -exact_limit to exact_limit can be stored exactly. For wide floating
   * point types as much as the checks need. */
  int exact_limit;
};

extern const struct element_info element_infos[ELEMENT_TYPES];

/* The type of that name, or -1. */
int element_find(const char *name);

/* Floating point types only: the code of a number that is exact in the type, and normal or zero;
 * and the number of such a code. */
uint64_t element_encode(enum element_type type, double value);
double element_decode(enum element_type type, uint64_t code);

/* Arrays of codes. Codes of integers are their low bytes; the machine is little-endian. */
static inline void element_store(void *array, unsigned size_bytes, size_t i, uint64_t code) {
  memcpy((char *)array + i * size_bytes, &code, size_bytes);
}

static inline uint64_t element_load(const void *array, unsigned size_bytes, size_t i) {
  uint64_t code = 0;
  memcpy(&code, (const char *)array + i * size_bytes, size_bytes);
  return code;
}

#endif
