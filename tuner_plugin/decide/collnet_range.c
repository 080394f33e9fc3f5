/* SPDX-License-Identifier: Apache-2.0 */
/* See collnet_range.h. */
#include "tuner_plugin/decide/collnet_range.h"

#include <float.h>

#include "tuner_plugin/decide/limits.h"

/* What NCCL writes into cells that are not available (NCCL_ALGO_PROTO_IGNORE, nccl_tuner.h). */
#define IGNORED (-1.0f)

struct collnet_range collnet_range_of(size_t ranks, size_t nodes, bool is_halved) {
  struct collnet_range range = { COLLNET_RANGE_LEAST_BYTES, UINT64_MAX };
  if (!is_halved && ranks == nodes) {
    range.most = COLLNET_RANGE_MOST_ONE_GPU_BYTES;
  } else if (!is_halved && nodes == 2) {
    range.most = COLLNET_RANGE_MOST_TWO_HOSTS_BYTES;
  }
  return range;
}

static bool is_collnet(int algo) {
  return algo == PROFILE_COLLNET_DIRECT || algo == PROFILE_COLLNET_CHAIN;
}

void collnet_range_apply(const struct collnet_range *range, int coll, uint64_t bytes,
                         struct decide_costs costs) {
  if (coll != PROFILE_ALLREDUCE || range->most == 0 ||
      (bytes >= range->least && bytes <= range->most)) {
    return;
  }
  bool has_other = false;
  for (int i = 0; i < costs.algos * costs.protos; i++) {
    bool is_available = costs.us[i] >= 0 && costs.us[i] < FLT_MAX;
    has_other |= is_available && !is_collnet(i / costs.protos);
  }
  for (int i = 0; has_other && i < costs.algos * costs.protos; i++) {
    if (is_collnet(i / costs.protos)) {
      costs.us[i] = IGNORED;
    }
  }
}
