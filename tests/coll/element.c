/* SPDX-License-Identifier: Apache-2.0 */
/* element: the conversions are written from the formats' definitions (IEEE 754 binary16,
 * bfloat16), independently of NCCL and of the emulated GPU. */
#include "tests/coll/element.h"

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

int element_find(const char *name) {
  for (int type = 0; type < ELEMENT_TYPES; type++) {
    if (!strcmp(element_infos[type].name, name))
      return type;
  }
  return -1;
}

/* What a float has more than a half: bits of the mantissa, and of the exponent's bias. */
enum { HALF_SHIFT = 13, HALF_BIAS = 112 << 23 };

uint64_t element_encode(enum element_type type, double value) {
  uint64_t code = 0;
  float single = (float)value;
  if (type == ELEMENT_DOUBLE) {
    memcpy(&code, &value, sizeof value);
    return code;
  }
  memcpy(&code, &single, sizeof single);
  uint64_t sign = code >> 31, magnitude = code & INT32_MAX;
  if (type == ELEMENT_BFLOAT16)
    code >>= 16;
  else if (type == ELEMENT_HALF)
    code = sign << 15 | (magnitude ? (magnitude - HALF_BIAS) >> HALF_SHIFT : 0);
  return code;
}

double element_decode(enum element_type type, uint64_t code) {
  double value;
  float single;
  memcpy(&value, &code, sizeof value);
  if (type == ELEMENT_DOUBLE)
    return value;
  uint64_t sign = code >> 15, magnitude = code & INT16_MAX;
  if (type == ELEMENT_BFLOAT16)
    code <<= 16;
  else if (type == ELEMENT_HALF)
    code = sign << 31 | (magnitude ? (magnitude << HALF_SHIFT) + HALF_BIAS : 0);
  memcpy(&single, &code, sizeof single);
  return (double)single;
}
