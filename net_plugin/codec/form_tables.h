/* SPDX-License-Identifier: Apache-2.0 */
/* form_tables: how to shuffle 8 bytes by a mask of 8 bits, for instruction sets that can shuffle by
 * a register but not by a mask. Owns: constants.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef CODEC_FORM_TABLES_H
#define CODEC_FORM_TABLES_H

#include <stdint.h>

/* The indices of the bits that are set, one behind the other; then zeros. */
extern const uint64_t codec_gather[256];
/* For each bit that is set how many are set below it; 0x80, which gives 0, for the others. */
extern const uint64_t codec_scatter[256];

#endif
