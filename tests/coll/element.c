/* SPDX-License-Identifier: Apache-2.0 */
/* element: the conversions are written from the formats' definitions (IEEE 754 binary16,
 * bfloat16), independently of NCCL and of the emulated GPU. */
#include "tests/coll/element.h"

#include <math.h>
#include <string.h>

const struct element_info element_infos[ELEMENT_TYPES] = {
  [ELEMENT_INT8] = { "int8", 1, false, true, 0, 127 },
  [ELEMENT_UINT8] = { "uint8", 1, false, false, 0, 255 },
  [ELEMENT_INT32] = { "int32", 4, false, true, 0, INT32_MAX },
  [ELEMENT_UINT32] = { "uint32", 4, false, false, 0, INT32_MAX },
  [ELEMENT_INT64] = { "int64", 8, false, true, 0, INT32_MAX },
  [ELEMENT_UINT64] = { "uint64", 8, false, false, 0, INT32_MAX },
  [ELEMENT_HALF] = { "half", 2, true, true, 10, 2048 },
  [ELEMENT_FLOAT] = { "float", 4, true, true, 23, 2048 },
  [ELEMENT_DOUBLE] = { "double", 8, true, true, 52, 2048 },
  [ELEMENT_BFLOAT16] = { "bfloat16", 2, true, true, 7, 256 },
};

/* Layout of the small formats; float and double are the machine's own. */
struct small_format {
  int exponent_bits, mantissa_bits, bias;
  uint64_t largest; /* code of the largest finite number */
};

static const struct small_format *small_format(enum element_type type) {
  static const struct small_format formats[ELEMENT_TYPES] = {
    [ELEMENT_HALF] = { 5, 10, 15, 0x7bff },
    [ELEMENT_BFLOAT16] = { 8, 7, 127, 0x7f7f },
  };
  return &formats[type];
}

int element_find(const char *name) {
  for (int type = 0; type < ELEMENT_TYPES; type++) {
    if (!strcmp(element_infos[type].name, name))
      return type;
  }
  return -1;
}

static double decode_small(const struct small_format *format, uint64_t code) {
  uint64_t sign = code >> (format->exponent_bits + format->mantissa_bits) & 1;
  uint64_t magnitude =
      code & ((UINT64_C(1) << (format->exponent_bits + format->mantissa_bits)) - 1);
  int exponent = (int)(magnitude >> format->mantissa_bits);
  int fraction = (int)(magnitude & ((UINT64_C(1) << format->mantissa_bits) - 1));
  double value;
  if (magnitude > format->largest)
    value = fraction ? NAN : INFINITY;
  else if (exponent)
    value = ldexp((1 << format->mantissa_bits) + fraction,
                  exponent - format->bias - format->mantissa_bits);
  else
    value = ldexp(fraction, 1 - format->bias - format->mantissa_bits);
  return sign ? -value : value;
}

/* Non-negative codes grow with their numbers, so the nearest is found by bisection; a tie goes to
 * the even code, as IEEE 754 rounds. */
static uint64_t encode_small(const struct small_format *format, double value) {
  double magnitude = fabs(value);
  uint64_t low = 0, high = format->largest;
  while (high - low > 1) {
    uint64_t middle = (low + high) / 2;
    if (decode_small(format, middle) <= magnitude)
      low = middle;
    else
      high = middle;
  }
  double below = magnitude - decode_small(format, low);
  double above = decode_small(format, high) - magnitude;
  uint64_t code = below < above || (below == above && !(low & 1)) ? low : high;
  uint64_t sign = signbit(value) ? 1 : 0;
  return sign << (format->exponent_bits + format->mantissa_bits) | code;
}

uint64_t element_encode(enum element_type type, double value) {
  uint64_t code = 0;
  float single = (float)value;
  if (type == ELEMENT_DOUBLE)
    memcpy(&code, &value, sizeof value);
  else if (type == ELEMENT_FLOAT)
    memcpy(&code, &single, sizeof single); /* little-endian */
  else
    code = encode_small(small_format(type), value);
  return code;
}

double element_decode(enum element_type type, uint64_t code) {
  double value;
  float single;
  memcpy(&value, &code, sizeof value);
  memcpy(&single, &code, sizeof single);
  return type == ELEMENT_DOUBLE  ? value
         : type == ELEMENT_FLOAT ? (double)single
                                 : decode_small(small_format(type), code);
}
