/* SPDX-License-Identifier: Apache-2.0 */
/* row: the choice of a compiled profile for one range of sizes.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TUNER_PLUGIN_DECIDE_ROW_H
#define TUNER_PLUGIN_DECIDE_ROW_H

#include <stdint.h>

#include "common/profile.h"

/* What to do with a call. */
struct decide_choice {
  uint8_t algo;     /* enum profile_algorithm, which is NCCL's number */
  uint8_t proto;    /* enum profile_protocol, the same */
  uint8_t channels; /* most channels to use; 0 leaves them to NCCL */
  uint8_t over;     /* costs_cell of what NCCL must have chosen, or DECIDE_ANY_CELL */
  uint32_t chunk;   /* bytes; 0 leaves it to NCCL, and so does a row without channels */
};

enum { DECIDE_ANY_CELL = UINT8_MAX };

/* The choice for one range of sizes of one collective. */
struct decide_row {
  uint64_t bytes_lo; /* first size in the range */
  uint64_t bytes_hi; /* first size after it */
  struct decide_choice choice;
};

#endif
