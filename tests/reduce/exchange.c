/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: AllReduce of f32 by net_plugin/reduce among workers that are in one process: each owns
 * a part, sums it and gives the result to the others. A shared object, for tests/reduce/train. */
#include <string.h>

#include "net_plugin/reduce/reduce.h"

enum { MOST_WORKERS = 16, EXACT = -1 };

/* Sums all workers' elements at..at+count in the owner, and copies them to the others. */
static void sum_part(float *const arrays[], unsigned workers, unsigned owner, size_t at,
                     size_t count) {
  const void *srcs[MOST_WORKERS];
  for (unsigned k = 0; k < workers; k++) {
    srcs[k] = arrays[k] + at;
  }
  reduce_n(reduce_fastest(), arrays[owner] + at, srcs, workers, count, REDUCE_FLOAT32, REDUCE_SUM);
  for (unsigned k = 0; k < workers; k++) {
    if (k != owner) {
      memcpy(arrays[k] + at, arrays[owner] + at, count * sizeof(float));
    }
  }
}

/* The same in 16 bits: what stands in `wires`, of the same length as the array, would be sent. */
static void sum_part_compressed(float *const arrays[], uint16_t *const wires[], unsigned workers,
                                unsigned owner, size_t at, size_t count, enum reduce_wire type,
                                struct reduce_counters *counters) {
  const struct reduce_variant *variant = reduce_fastest();
  const void *srcs[MOST_WORKERS];
  for (unsigned k = 0; k < workers; k++) {
    srcs[k] = k == owner ? (void *)(arrays[k] + at) : wires[k] + at;
    if (k != owner) {
      reduce_narrow(variant, wires[k] + at, arrays[k] + at, count, type, counters);
    }
  }
  reduce_from_wire(variant, wires[owner] + at, arrays[owner] + at, srcs, workers, owner, count,
                   type, counters);
  for (unsigned k = 0; k < workers; k++) {
    if (k != owner) {
      reduce_widen(variant, arrays[k] + at, wires[owner] + at, count, type);
    }
  }
}

/* Every worker's array becomes the sum of all. type: of enum reduce_wire, or EXACT, which needs no
 * wires. Returns 0, or -1 if there are too many workers. */
__attribute__((visibility("default"))) int exchange_sum(float *const arrays[],
                                                        uint16_t *const wires[], unsigned workers,
                                                        size_t count, int type,
                                                        struct reduce_counters *counters);

int exchange_sum(float *const arrays[], uint16_t *const wires[], unsigned workers, size_t count,
                 int type, struct reduce_counters *counters) {
  if (workers < 1 || workers > MOST_WORKERS) {
    return -1;
  }
  for (unsigned owner = 0; owner < workers; owner++) {
    size_t at = count * owner / workers, end = count * (owner + 1) / workers;
    if (type == EXACT) {
      sum_part(arrays, workers, owner, at, end - at);
    } else {
      sum_part_compressed(arrays, wires, workers, owner, at, end - at, (enum reduce_wire)type,
                          counters);
    }
  }
  return 0;
}
