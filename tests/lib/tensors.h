/* SPDX-License-Identifier: Apache-2.0 */
/* tensors: chunks for the codec: pieces of real gradients and weights (tests/data/codec), and
 * invented ones. Each kind is the same bytes each time.
 * Owns: nothing.  Threads: any.  Blocks: to read a sample.  Fails: the test. */
#ifndef TESTS_LIB_TENSORS_H
#define TESTS_LIB_TENSORS_H

#include <stddef.h>
#include <stdint.h>

enum tensor {
  TENSOR_RANDOM,
  TENSOR_ZEROS,
  TENSOR_ONE_BYTE, /* zeros and one byte that is none */
  TENSOR_EVERY_16, /* all patterns of 16 bits, one behind the other */
  TENSOR_BF16,     /* normal, of several variances */
  TENSOR_F32,
  TENSOR_BF16_IN_F32,
  TENSOR_SPARSE_BF16, /* half of them zeros, one by one and in runs */
  TENSOR_ODD_BF16,    /* with NaN, infinities and denormals of both signs */
  TENSOR_INT32,       /* small ones of both signs */
  TENSOR_BYTES,       /* signed ones, most of them near zero */
  TENSOR_LINES,       /* bf16 as LL128 sends it: 120 bytes, 8 of a flag */
  TENSOR_INVENTED,    /* the number of those above; samples from here on */
  TENSOR_SAMPLES = 8,
  TENSORS = TENSOR_INVENTED + TENSOR_SAMPLES,
};

/* The file of a sample. */
const char *tensor_name(unsigned which);

/* Samples are repeated as often as needed. */
void tensor_fill(unsigned which, uint8_t *buffer, size_t bytes);

#endif
