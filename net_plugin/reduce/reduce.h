/* SPDX-License-Identifier: Apache-2.0 */
/* reduce: combines the parts of several hosts, element by element, and rounds f32 to 16 bits for
 * the network and back. PURE.
 *
 * Sources are combined in the order in which they stand in the array, ((s0 + s1) + s2) + ..., so
 * the result has the same bits in whatever order the parts arrived, by every variant, and however
 * the elements are divided among calls. README.md has the rules of rounding and the error bounds.
 *
 * Owns: nothing.  Threads: any; the caller's rounding mode and treatment of denormals do not matter
 * and are kept.  Blocks: never.  Fails: cannot; what may be passed stands at each function.
 * Units: counts are elements. Buffers need no alignment. */
#ifndef NET_PLUGIN_REDUCE_REDUCE_H
#define NET_PLUGIN_REDUCE_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of ncclDataType_t. */
enum reduce_type {
  REDUCE_INT8,
  REDUCE_UINT8,
  REDUCE_INT32,
  REDUCE_UINT32,
  REDUCE_INT64,
  REDUCE_UINT64,
  REDUCE_FLOAT16,
  REDUCE_FLOAT32,
  REDUCE_FLOAT64,
  REDUCE_BFLOAT16,
  REDUCE_FLOAT8E4M3,
  REDUCE_FLOAT8E5M2,
  REDUCE_TYPES
};

/* Values of ncclRedOp_t; an average is a sum to the network. */
enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_OPS };

/* What f32 is rounded to on the network. */
enum reduce_wire { REDUCE_WIRE_BFLOAT16, REDUCE_WIRE_FLOAT16, REDUCE_WIRES };

size_t reduce_element_bytes(enum reduce_type type);

/* ---- variants: the same bits, by the instructions that this processor has ---- */

struct reduce_kernels;
struct reduce_variant {
  const char *name;
  bool (*is_usable)(void); /* if false, the processor cannot run it */
  const struct reduce_kernels *kernels;
};

/* All of them, the fastest first; the last runs anywhere. NULL after the last. */
const struct reduce_variant *reduce_variant(size_t i);
/* The first that is usable. */
const struct reduce_variant *reduce_fastest(void);

/* ---- the operations ---- */

/* dst[i] = the sources' [i] combined, in one pass. n: at least 1. dst may be one of the sources;
 * otherwise it overlaps none. */
void reduce_n(const struct reduce_variant *variant, void *dst, const void *const srcs[], unsigned n,
              size_t count, enum reduce_type type, enum reduce_op op);

/* What rounding f32 to the wire's type has done. Calls add to it, and count right up to 2^33
 * elements a call. */
struct reduce_counters {
  uint64_t elements;   /* rounded */
  uint64_t overflows;  /* finite before, infinite after */
  uint64_t underflows; /* not zero before; zero or denormal in the wire's type after */
};

/* wire[i] = src[i] rounded. wire may begin where src does; otherwise they do not overlap. */
void reduce_narrow(const struct reduce_variant *variant, void *wire, const void *src, size_t count,
                   enum reduce_wire type, struct reduce_counters *counters);

/* dst[i] = wire[i], exactly. wire may be the second half of dst's bytes, so that 16-bit numbers can
 * be received there and widened in place; otherwise they do not overlap. */
void reduce_widen(const struct reduce_variant *variant, void *dst, const void *wire, size_t count,
                  enum reduce_wire type);

/* The owner's step of a compressed sum: srcs[own] is its own part in f32, the others are wires.
 * wire[i] = the sum in f32, rounded once; dst[i] = wire[i] in f32, which is what the other hosts
 * get from reduce_widen(). n: at least 1; own < n. dst may be srcs[own], wire may be one of the
 * others; otherwise nothing overlaps. The counters count the rounding of the sum. */
void reduce_from_wire(const struct reduce_variant *variant, void *wire, void *dst,
                      const void *const srcs[], unsigned n, unsigned own, size_t count,
                      enum reduce_wire type, struct reduce_counters *counters);

#endif
