/* SPDX-License-Identifier: Apache-2.0 */
/* rates: the typical one of some lanes' rates, as picoseconds per byte.
 * Owns: nothing.  Threads: the link's.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_RATES_H
#define NET_PLUGIN_POLICY_RATES_H

#include <stdint.h>

#include "net_plugin/policy/policy_facts.h"

struct rates {
  unsigned count;
  uint32_t sorted[POLICY_MAX_LANES];
};

/* 0 stands for a rate that is not known, and is left out. */
static inline void rates_add(struct rates *rates, uint32_t ps_per_byte) {
  if (ps_per_byte == 0) {
    return;
  }
  unsigned at = rates->count++;
  for (; at > 0 && rates->sorted[at - 1] > ps_per_byte; at--) {
    rates->sorted[at] = rates->sorted[at - 1];
  }
  rates->sorted[at] = ps_per_byte;
}

/* The median, so that one lane that is briefly very fast or slow changes nothing for the others;
 * the faster one of two in the middle, so that two lanes can be compared, too. 0: none is known. */
static inline uint32_t rates_typical(const struct rates *rates) {
  return rates->count > 0 ? rates->sorted[(rates->count - 1) / 2] : 0;
}

#endif
