/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every NCCL type, and what reductions of them must give.
 *
 * The values are small whole numbers, exact in every type. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/fake_cuda/test/lib/values.h"

const char *const type_names[N_TYPES] = { "i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                          "f16", "f32", "f64", "bf16", "e4m3", "e5m2" };
const int type_sizes[N_TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
const char *const redop_names[N_REDOPS] = { "sum", "prod", "max", "min", "avg" };

/* ---- storing and loading ---- */

static float fp8_to_float(uint8_t x, int mantissa, int bias) {
  int exponent = (x & 127) >> mantissa;
  int fraction = x & ((1 << mantissa) - 1);
  float v = exponent ? ldexpf((float)((1 << mantissa) + fraction), exponent - bias - mantissa)
                     : ldexpf((float)fraction, 1 - bias - mantissa);
  return x & 128 ? -v : v;
}

/* The nearest code, by search: independent of the emulation's encoder. The values in use are small
 * whole numbers, so results are remembered. */
static uint8_t float_to_fp8(float v, int mantissa, int bias) {
  static uint8_t known[2][64];
  uint8_t best = 0;
  int index = (int)v + 32;
  if (known[mantissa == 3][index])
    return known[mantissa == 3][index];
  int codes = mantissa == 3 ? 127 : 124;
  for (int code = 0; code < codes; code++) {
    float distance = fabsf(fp8_to_float((uint8_t)code, mantissa, bias) - fabsf(v));
    if (distance < fabsf(fp8_to_float(best, mantissa, bias) - fabsf(v)))
      best = (uint8_t)code;
  }
  known[mantissa == 3][index] = v < 0 ? best | 128 : best;
  return known[mantissa == 3][index];
}

void value_put(void *buffer, int type, size_t i, double v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  switch (type) {
  case I8:
    ((int8_t *)buffer)[i] = (int8_t)v;
    break;
  case U8:
    ((uint8_t *)buffer)[i] = (uint8_t)(int)v;
    break;
  case I32:
    ((int32_t *)buffer)[i] = (int32_t)v;
    break;
  case U32:
    ((uint32_t *)buffer)[i] = (uint32_t)(int)v;
    break;
  case I64:
    ((int64_t *)buffer)[i] = (int64_t)v;
    break;
  case U64:
    ((uint64_t *)buffer)[i] = (uint64_t)(int64_t)v;
    break;
  case F16:
    ((_Float16 *)buffer)[i] = (_Float16)v;
    break;
  case F32:
    ((float *)buffer)[i] = f;
    break;
  case F64:
    ((double *)buffer)[i] = v;
    break;
  case BF16:
    ((uint16_t *)buffer)[i] = (uint16_t)(bits >> 16);
    break; /* exact for our values */
  case E4M3:
    ((uint8_t *)buffer)[i] = float_to_fp8(f, 3, 7);
    break;
  case E5M2:
    ((uint8_t *)buffer)[i] = float_to_fp8(f, 2, 15);
    break;
  }
}

double value_get(const void *buffer, int type, size_t i) {
  uint32_t bits;
  float f;
  switch (type) {
  case I8:
    return ((const int8_t *)buffer)[i];
  case U8:
    return ((const uint8_t *)buffer)[i];
  case I32:
    return ((const int32_t *)buffer)[i];
  case U32:
    return ((const uint32_t *)buffer)[i];
  case I64:
    return (double)((const int64_t *)buffer)[i];
  case U64:
    return (double)((const uint64_t *)buffer)[i];
  case F16:
    return (double)((const _Float16 *)buffer)[i];
  case F32:
    return ((const float *)buffer)[i];
  case F64:
    return ((const double *)buffer)[i];
  case BF16:
    bits = (uint32_t)((const uint16_t *)buffer)[i] << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
  case E4M3:
    return fp8_to_float(((const uint8_t *)buffer)[i], 3, 7);
  default:
    return fp8_to_float(((const uint8_t *)buffer)[i], 2, 15);
  }
}

/* What a value becomes when it is stored in an integer type. */
double value_wrapped(double v, int type) {
  switch (type) {
  case I8:
    return (int8_t)(int)v;
  case U8:
    return (uint8_t)(int)v;
  case U32:
    return (uint32_t)(int64_t)v;
  case U64:
    return v < 0 ? (double)(uint64_t)(int64_t)v : v;
  default:
    return v;
  }
}

/* ---- what to send and what to expect ---- */

double value_element(int of_rank, size_t i, int redop, int round) {
  unsigned h = (unsigned)(i * 2654435761u) ^ ((unsigned)(of_rank + 16 * round) * 40503u);
  h ^= h >> 13;
  if (redop == PROD)
    return 1 + h % 2;
  return (double)(h % 9) - (redop == SUM || redop == AVG ? 0 : 4);
}

double value_reduced(int n_ranks, size_t i, int redop, int type, int round) {
  double a = value_wrapped(value_element(0, i, redop, round), type);
  for (int r = 1; r < n_ranks; r++) {
    double b = value_wrapped(value_element(r, i, redop, round), type);
    switch (redop) {
    case PROD:
      a *= b;
      break;
    case MAXIMUM:
      a = fmax(a, b);
      break;
    case MINIMUM:
      a = fmin(a, b);
      break;
    default:
      a += b;
    }
  }
  if (redop == AVG) {
    a /= n_ranks;
    return type < F16 ? floor(a) : a;
  }
  return redop == MAXIMUM || redop == MINIMUM ? a : value_wrapped(a, type);
}

double value_tolerance(double value, int redop, int type) {
  double v = fabs(value);
  if (type >= E4M3)
    return redop == AVG ? 0.3 * v + 0.05 : (type == E5M2 ? 0.3 : 0.13) * v;
  if (redop != AVG || type < F16)
    return 0;
  return v * (type == BF16 ? 0.03 : type == F16 ? 0.004 : 1e-5) + 1e-3;
}
