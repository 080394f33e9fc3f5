/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_numbers: what each member sends and what must come out, for every data type. The numbers
 * are small whole ones, so sums, products, maxima and minima are exact in each type, in any order.
 * With 16-bit exchange of f32 they are not whole, and the result is within a bound. fp8 is in
 * tests/unit/test_reduce*.c. */
#ifndef TESTS_ABI_COLLNET_NUMBERS_H
#define TESTS_ABI_COLLNET_NUMBERS_H

#include <math.h>

#include "tests/coll/element.h"

enum { SUM, PROD, MAX, MIN, OPS }; /* as ncclRedOp_t */

static inline double number_load(const void *array, int type, size_t at) {
  const struct element_info *info = &element_infos[type];
  uint64_t code = element_load(array, info->size_bytes, at);
  unsigned shift = 64 - 8 * info->size_bytes;
  return info->is_float    ? element_decode((enum element_type)type, code)
         : info->is_signed ? (double)((int64_t)(code << shift) >> shift)
                           : (double)code;
}

static inline void number_store(void *array, int type, size_t at, double value) {
  const struct element_info *info = &element_infos[type];
  element_store(array, info->size_bytes, at,
                info->is_float ? element_encode((enum element_type)type, value)
                               : (uint64_t)(int64_t)value);
}

/* What a member sends as element `at`: 0 to 3. */
static inline double number_sent(int member, size_t at, int op, int type) {
  size_t mixed = at * 2654435761u + (size_t)member * 40503u;
  double value = (double)((mixed >> 7) % 4);
  if (op == PROD) {
    value = value == 0 ? 1 : value; /* products stay below 3^4 */
  }
  /* Not representable in 16 bits: shows whether f32 sums are rounded as stated. */
  return type == ELEMENT_FLOAT && op == SUM ? (float)(value + (double)(mixed % 97) / 128) : value;
}

/* What must come out; *magnitude: the sum of what was sent, without signs. */
static inline double number_reduced(int members, size_t at, int op, int type, double *magnitude) {
  double result = number_sent(0, at, op, type);
  *magnitude = fabs(result);
  for (int member = 1; member < members; member++) {
    double value = number_sent(member, at, op, type);
    *magnitude += fabs(value);
    result = op == SUM                         ? result + value
             : op == PROD                      ? result * value
             : (op == MAX) == (value > result) ? value
                                               : result;
  }
  return result;
}

#endif
