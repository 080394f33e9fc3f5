/* SPDX-License-Identifier: Apache-2.0 */
/* values: test data of every NCCL type and reduction, computed apart from the emulation.
 * Owns: nothing.  Threads: one.  Blocks: never.  Fails: cannot. */
#ifndef FAKE_CUDA_TEST_VALUES_H
#define FAKE_CUDA_TEST_VALUES_H

#include <stddef.h>

/* In the order of ncclDataType_t and ncclRedOp_t. */
enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, E4M3, E5M2, N_TYPES };
enum { SUM, PROD, MAXIMUM, MINIMUM, AVG, N_REDOPS };
extern const char *const type_names[N_TYPES];
extern const int type_sizes[N_TYPES]; /* bytes */
extern const char *const redop_names[N_REDOPS];

void value_put(void *buffer, int type, size_t i, double v);
double value_get(const void *buffer, int type, size_t i);
/* What a value becomes when it is stored in an integer type. */
double value_wrapped(double v, int type);

/* Element i that a rank contributes; every round has other data. */
double value_element(int of_rank, size_t i, int redop, int round);
/* The reduction of element i over all ranks. */
double value_reduced(int n_ranks, size_t i, int redop, int type, int round);
/* How far a result may be from that. */
double value_tolerance(double value, int redop, int type);

#endif
