/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_range: the sizes of AllReduce at which CollNet is left to NCCL where no row was measured.
 *
 * NCCL's model gives CollNet the bandwidth within a host, whatever the network, so that it would
 * choose CollNet for every size. stratus' CollNet (STRATUS_COLLNET) has these limits:
 *   - A call carries no less than 32 KiB, whatever the size: smaller ones are faster by LL.
 *   - A NIC sends 2 (N - 1) / N of the message for N hosts. With one GPU per host that is what a
 * ring sends, with two hosts what a tree sends: only 16-bit exchange sends less.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_DECIDE_COLLNET_RANGE_H
#define TUNER_PLUGIN_DECIDE_COLLNET_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/costs.h"

struct collnet_range {
  uint64_t least, most; /* bytes of an AllReduce; most 0: NCCL's choice stands everywhere */
};

/* is_halved: sums of f32 travel in 16 bits. */
struct collnet_range collnet_range_of(size_t ranks, size_t nodes, bool is_halved);
/* Outside of the range: rules CollNet's cells out, if there are others. */
void collnet_range_apply(const struct collnet_range *range, int coll, uint64_t bytes,
                         struct decide_costs costs);

#endif
