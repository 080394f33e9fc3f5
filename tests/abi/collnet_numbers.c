/* SPDX-License-Identifier: Apache-2.0 */
/* See collnet_numbers.h. */
#include "tests/abi/collnet_numbers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
  size_t bytes;
  int is_signed_integer, is_integer;
} types[NUMBER_TYPES] = {
  [NUMBER_INT8] = { 1, 1, 1 },     [NUMBER_UINT8] = { 1, 0, 1 },   [NUMBER_INT32] = { 4, 1, 1 },
  [NUMBER_UINT32] = { 4, 0, 1 },   [NUMBER_INT64] = { 8, 1, 1 },   [NUMBER_UINT64] = { 8, 0, 1 },
  [NUMBER_FLOAT16] = { 2, 0, 0 },  [NUMBER_FLOAT32] = { 4, 0, 0 }, [NUMBER_FLOAT64] = { 8, 0, 0 },
  [NUMBER_BFLOAT16] = { 2, 0, 0 },
};

size_t number_bytes(int type) {
  return types[type].bytes;
}

/* Whole numbers of up to 8 bits, which both 16-bit types hold exactly. */
static uint16_t to_half(double value) {
  if (value == 0) {
    return 0;
  }
  int exponent;
  double mantissa = frexp(fabs(value), &exponent); /* 0.5 to 1 */
  unsigned bits = (unsigned)((mantissa * 2 - 1) * 1024);
  return (uint16_t)((value < 0 ? 0x8000u : 0) | (unsigned)(exponent - 1 + 15) << 10 | bits);
}

static double from_half(uint16_t code) {
  int exponent = (code >> 10) & 31;
  double mantissa = (code & 1023) / 1024.0;
  double value = exponent ? ldexp(1 + mantissa, exponent - 15) : ldexp(mantissa, -14);
  return code & 0x8000 ? -value : value;
}

void number_store(void *array, int type, size_t at, double value) {
  unsigned char *to = (unsigned char *)array + at * types[type].bytes;
  float single = (float)value;
  int64_t whole = (int64_t)value;
  uint16_t half = to_half(value);
  if (types[type].is_integer) {
    memcpy(to, &whole, types[type].bytes); /* little-endian */
  } else if (type == NUMBER_FLOAT64) {
    memcpy(to, &value, sizeof(value));
  } else if (type == NUMBER_FLOAT32) {
    memcpy(to, &single, sizeof(single));
  } else if (type == NUMBER_FLOAT16) {
    memcpy(to, &half, sizeof(half));
  } else {
    memcpy(to, (unsigned char *)&single + 2, 2);
  }
}

double number_load(const void *array, int type, size_t at) {
  const unsigned char *from = (const unsigned char *)array + at * types[type].bytes;
  uint64_t whole = 0;
  unsigned char single[4] = { 0 };
  float value;
  double wide;
  uint16_t half;
  if (types[type].is_integer) {
    unsigned shift = 64 - 8 * (unsigned)types[type].bytes;
    memcpy(&whole, from, types[type].bytes);
    return types[type].is_signed_integer ? (double)((int64_t)(whole << shift) >> shift)
                                         : (double)whole;
  }
  switch (type) {
  case NUMBER_FLOAT64:
    memcpy(&wide, from, sizeof(wide));
    return wide;
  case NUMBER_FLOAT16:
    memcpy(&half, from, sizeof(half));
    return from_half(half);
  case NUMBER_FLOAT32:
    memcpy(single, from, 4);
    break;
  default:
    memcpy(single + 2, from, 2);
  }
  memcpy(&value, single, sizeof(value));
  return value;
}

double number_sent(int member, size_t at, int op, int type) {
  size_t mixed = at * 2654435761u + (size_t)member * 40503u;
  double value = (double)((mixed >> 7) % 4);
  if (op == NUMBER_PROD) {
    value = value == 0 ? 1 : value; /* products stay below 3^4 */
  }
  /* Not representable in 16 bits: shows whether f32 sums are rounded as stated. */
  return type == NUMBER_FLOAT32 && op == NUMBER_SUM ? (float)(value + (double)(mixed % 97) / 128)
                                                    : value;
}

double number_reduced(int members, size_t at, int op, int type, double *magnitude) {
  double result = number_sent(0, at, op, type);
  *magnitude = fabs(result);
  for (int member = 1; member < members; member++) {
    double value = number_sent(member, at, op, type);
    *magnitude += fabs(value);
    result = op == NUMBER_SUM                         ? result + value
             : op == NUMBER_PROD                      ? result * value
             : (op == NUMBER_MAX) == (value > result) ? value
                                                      : result;
  }
  return result;
}
