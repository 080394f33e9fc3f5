/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_numbers: what each member sends and what must come out, for every data type. The numbers
 * are small whole ones, so sums, products, maxima and minima are exact in each type, in any order.
 * With 16-bit exchange of f32 they are not whole, and the result is within a bound. */
#ifndef TESTS_ABI_COLLNET_NUMBERS_H
#define TESTS_ABI_COLLNET_NUMBERS_H

#include <stddef.h>

/* As ncclDataType_t and ncclRedOp_t. */
enum {
  NUMBER_INT8,
  NUMBER_UINT8,
  NUMBER_INT32,
  NUMBER_UINT32,
  NUMBER_INT64,
  NUMBER_UINT64,
  NUMBER_FLOAT16,
  NUMBER_FLOAT32,
  NUMBER_FLOAT64,
  NUMBER_BFLOAT16,
  NUMBER_TYPES, /* fp8 is in tests/unit/test_reduce*.c */
};
enum { NUMBER_SUM, NUMBER_PROD, NUMBER_MAX, NUMBER_MIN, NUMBER_OPS };

size_t number_bytes(int type);
void number_store(void *array, int type, size_t at, double value);
double number_load(const void *array, int type, size_t at);

/* What `member` sends as element `at`: 0 to 3. */
double number_sent(int member, size_t at, int op, int type);
/* What must come out; *magnitude: the sum of what was sent, without signs. */
double number_reduced(int members, size_t at, int op, int type, double *magnitude);

#endif
