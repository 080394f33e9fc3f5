/* SPDX-License-Identifier: Apache-2.0 */
/* variant: what each variant of reduce provides. Arguments are those of reduce.h, except that the
 * floating-point environment is the default one. Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot. */
#ifndef NET_PLUGIN_REDUCE_VARIANT_H
#define NET_PLUGIN_REDUCE_VARIANT_H

#include "net_plugin/reduce/reduce.h"

typedef void reduce_n_kernel(void *dst, const void *const srcs[], unsigned n, size_t count);
typedef void reduce_narrow_kernel(void *wire, const void *src, size_t count,
                                  struct reduce_counters *counters);
typedef void reduce_widen_kernel(void *dst, const void *wire, size_t count);
typedef void reduce_from_wire_kernel(void *wire, void *dst, const void *const srcs[], unsigned n,
                                     unsigned own, size_t count, struct reduce_counters *counters);

struct reduce_kernels {
  reduce_n_kernel *n[REDUCE_TYPES][REDUCE_OPS];
  reduce_narrow_kernel *narrow[REDUCE_WIRES];
  reduce_widen_kernel *widen[REDUCE_WIRES];
  reduce_from_wire_kernel *from_wire[REDUCE_WIRES];
};

extern const struct reduce_kernels reduce_avx512, reduce_avx2, reduce_neon, reduce_portable;

#endif
