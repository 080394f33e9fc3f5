/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars only; volatile where an operation must be rounded by itself. */
#include "tests/lib/reduce_reference.h"

#include <math.h>
#include <string.h>

const char *const reference_type_names[REDUCE_TYPES] = { "int8",     "uint8",      "int32",
                                                         "uint32",   "int64",      "uint64",
                                                         "float16",  "float32",    "float64",
                                                         "bfloat16", "float8e4m3", "float8e5m2" };
const char *const reference_op_names[REDUCE_OPS] = { "sum", "prod", "max", "min" };

struct layout {
  int mantissa_bits, bias;
  uint32_t sign, nan, infinity, top;
};
static const struct layout layouts[REDUCE_TYPES] = {
  [REDUCE_FLOAT16] = { 10, 15, 0x8000, 0x7fff, 0x7c00, 0x7c00 },
  [REDUCE_BFLOAT16] = { 7, 127, 0x8000, 0x7fff, 0x7f80, 0x7f80 },
  [REDUCE_FLOAT8E4M3] = { 3, 7, 0x80, 0x7f, 0x7f, 0x7e }, /* infinity: its NaN */
  [REDUCE_FLOAT8E5M2] = { 2, 15, 0x80, 0x7f, 0x7c, 0x7b },
};

/* The number is fraction * 2^exponent: shift it up until it has the implicit bit of an f32. */
uint32_t reference_widen(enum reduce_type type, uint32_t code) {
  const struct layout *layout = &layouts[type];
  uint32_t sign = code & layout->sign ? 0x80000000u : 0, magnitude = code & (layout->sign - 1);
  uint32_t fraction = magnitude & ((1u << layout->mantissa_bits) - 1);
  int field = (int)(magnitude >> layout->mantissa_bits);
  if (magnitude >= layout->infinity) {
    uint32_t payload = fraction << (23 - layout->mantissa_bits);
    /* bfloat16 is the upper half of an f32; others become quiet */
    payload |= magnitude > layout->infinity && type != REDUCE_BFLOAT16 ? 0x400000 : 0;
    return sign | 0x7f800000 | payload;
  }
  if (magnitude == 0) {
    return sign;
  }
  int exponent = (field ? field : 1) - layout->bias - layout->mantissa_bits;
  uint32_t significand = fraction | (field ? 1u << layout->mantissa_bits : 0);
  while (significand < 1u << 23 && exponent > -149) {
    significand <<= 1;
    exponent--;
  }
  if (significand < 1u << 23) {
    return sign | significand; /* denormal in f32 as well */
  }
  return sign | (uint32_t)(exponent + 150) << 23 | (significand & 0x7fffff);
}

/* significand * 2^-places, rounded to the nearest whole number, ties to even. */
static uint64_t shift_and_round(uint64_t significand, int places) {
  if (places <= 0) {
    return significand << -places;
  }
  if (places > 40) {
    return 0; /* a significand has 24 bits */
  }
  uint64_t whole = significand >> places, rest = significand & ((UINT64_C(1) << places) - 1);
  uint64_t half = UINT64_C(1) << (places - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}

uint32_t reference_round(enum reduce_type type, uint32_t f32_bits) {
  const struct layout *layout = &layouts[type];
  uint32_t sign = f32_bits >> 31 ? layout->sign : 0, magnitude = f32_bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return layout->nan;
  }
  if (magnitude == 0x7f800000) {
    return sign | layout->top;
  }
  int field = (int)(magnitude >> 23), exponent = (field ? field : 1) - 150;
  uint64_t significand = (magnitude & 0x7fffff) | (field ? 1u << 23 : 0);
  if (significand == 0) {
    return sign;
  }
  int highest = 63 - __builtin_clzll(significand);
  int least = 1 - layout->bias - layout->mantissa_bits; /* the smallest denormal is 2^least */
  int unit = highest + exponent - layout->mantissa_bits;
  unit = unit < least ? least : unit;
  uint64_t whole = shift_and_round(significand, unit - exponent);
  /* A denormal's whole number is its code; each unit more is one exponent field more. A carry out
   * of the mantissa goes on into the field. */
  uint64_t code = whole + ((uint64_t)(unit - least) << layout->mantissa_bits);
  return sign | (code > layout->top ? layout->top : (uint32_t)code);
}

enum reduce_type reference_wire_type(enum reduce_wire wire) {
  return wire == REDUCE_WIRE_FLOAT16 ? REDUCE_FLOAT16 : REDUCE_BFLOAT16;
}

void reference_count(struct reduce_counters *counters, enum reduce_type type, uint32_t f32_bits,
                     uint32_t code) {
  const struct layout *layout = &layouts[type];
  uint32_t before = f32_bits & 0x7fffffff, after = code & (layout->sign - 1);
  counters->elements++;
  counters->overflows += before < 0x7f800000 && after == layout->infinity;
  counters->underflows += before > 0 && after < 1u << layout->mantissa_bits;
}

/* ---- elements ---- */

uint64_t reference_get(const void *array, size_t i, size_t bytes) {
  uint64_t element = 0;
  memcpy(&element, (const char *)array + i * bytes, bytes);
  return element;
}

void reference_put(void *array, size_t i, size_t bytes, uint64_t element) {
  memcpy((char *)array + i * bytes, &element, bytes);
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

double reference_number(const void *array, size_t i, enum reduce_type type) {
  uint64_t code = reference_get(array, i, reduce_element_bytes(type));
  if (type == REDUCE_FLOAT64) {
    double value;
    memcpy(&value, &code, sizeof value);
    return value;
  }
  return (double)float_of(type == REDUCE_FLOAT32 ? (uint32_t)code
                                                 : reference_widen(type, (uint32_t)code));
}

/* As NVIDIA's min and max: a number goes before NaN, -0 is less than +0. */
static double lesser(double a, double b) {
  if (isnan(a) || isnan(b)) {
    return isnan(a) ? b : a;
  }
  return a < b || (a == b && signbit(a)) ? a : b;
}

static double combine_f64(double a, double b, enum reduce_op op) {
  volatile double result = op == REDUCE_SUM    ? a + b
                           : op == REDUCE_PROD ? a * b
                           : op == REDUCE_MIN  ? lesser(a, b)
                                               : -lesser(-a, -b);
  return result;
}

static double combine_f32(double a, double b, enum reduce_op op) {
  volatile float x = (float)a, y = (float)b;
  volatile float result = op == REDUCE_SUM    ? x + y
                          : op == REDUCE_PROD ? x * y
                                              : (float)combine_f64(a, b, op);
  return (double)result;
}

static uint64_t combine_integers(uint64_t a, uint64_t b, enum reduce_type type, enum reduce_op op) {
  bool is_signed = type == REDUCE_INT8 || type == REDUCE_INT32 || type == REDUCE_INT64;
  int unused = 64 - 8 * (int)reduce_element_bytes(type);
  if (op == REDUCE_SUM || op == REDUCE_PROD) {
    return op == REDUCE_SUM ? a + b : a * b;
  }
  bool is_less = is_signed ? (int64_t)(a << unused) < (int64_t)(b << unused) : a < b;
  return is_less == (op == REDUCE_MIN) ? a : b;
}

static uint64_t encode(enum reduce_type type, double value) {
  if (type == REDUCE_FLOAT64) {
    uint64_t bits = UINT64_C(0x7fffffffffffffff);
    if (!isnan(value)) {
      memcpy(&bits, &value, sizeof bits);
    }
    return bits;
  }
  uint32_t bits = isnan(value) ? 0x7fffffff : bits_of((float)value);
  return type == REDUCE_FLOAT32 ? bits : reference_round(type, bits);
}

uint64_t reference_element(const void *const srcs[], unsigned n, size_t i, enum reduce_type type,
                           enum reduce_op op) {
  size_t bytes = reduce_element_bytes(type);
  if (type <= REDUCE_UINT64) {
    uint64_t result = reference_get(srcs[0], i, bytes);
    for (unsigned k = 1; k < n; k++) {
      result = combine_integers(result, reference_get(srcs[k], i, bytes), type, op);
    }
    return result;
  }
  double result = reference_number(srcs[0], i, type);
  for (unsigned k = 1; k < n; k++) {
    double part = reference_number(srcs[k], i, type);
    result = type == REDUCE_FLOAT64 ? combine_f64(result, part, op) : combine_f32(result, part, op);
  }
  return encode(type, result);
}
