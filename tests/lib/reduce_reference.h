/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_reference: what net_plugin/reduce has to compute, one element at a time, as plainly as it
 * can be said. Conversions are by integers alone, from the formats' definitions. Owns: nothing.
 * Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_REDUCE_REFERENCE_H
#define TESTS_LIB_REDUCE_REFERENCE_H

#include "net_plugin/reduce/reduce.h"

extern const char *const reference_type_names[REDUCE_TYPES];
extern const char *const reference_op_names[REDUCE_OPS];

/* Bits of an f32 from a code of a smaller floating-point type, and the nearest code. */
uint32_t reference_widen(enum reduce_type type, uint32_t code);
uint32_t reference_round(enum reduce_type type, uint32_t f32_bits);

/* The type of a wire. */
enum reduce_type reference_wire_type(enum reduce_wire wire);
/* Adds one rounding to the counters, by looking at both sides of it. */
void reference_count(struct reduce_counters *counters, enum reduce_type type, uint32_t f32_bits,
                     uint32_t code);

/* Element i of the sources, combined, as its bytes lie in memory. */
uint64_t reference_element(const void *const srcs[], unsigned n, size_t i, enum reduce_type type,
                           enum reduce_op op);
/* The number of an element, for floating-point types. */
double reference_number(const void *array, size_t i, enum reduce_type type);

/* Elements of any size; bytes need no alignment. */
uint64_t reference_get(const void *array, size_t i, size_t bytes);
void reference_put(void *array, size_t i, size_t bytes, uint64_t element);

#endif
