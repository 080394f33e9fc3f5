/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, as constant expressions: the first byte is the lowest. */
#include "net_plugin/codec/form_tables.h"

#define BELOW(mask, bit) ((unsigned)__builtin_popcount((mask) & ((1u << (bit)) - 1)))
#define IS_SET(mask, bit) ((mask) >> (bit)&1u)

#define GATHER_BIT(mask, bit)                                                                      \
  (IS_SET(mask, bit) ? (uint64_t)(bit) << (8 * (BELOW(mask, bit) & 7)) : 0)
#define SCATTER_BIT(mask, bit)                                                                     \
  ((uint64_t)(IS_SET(mask, bit) ? BELOW(mask, bit) : 0x80) << (8 * (bit)))

#define ALL_BITS(one, mask)                                                                        \
  (one(mask, 0) | one(mask, 1) | one(mask, 2) | one(mask, 3) | one(mask, 4) | one(mask, 5) |       \
   one(mask, 6) | one(mask, 7))
#define ROW_4(one, mask)                                                                           \
  ALL_BITS(one, mask), ALL_BITS(one, (mask) + 1), ALL_BITS(one, (mask) + 2),                       \
      ALL_BITS(one, (mask) + 3)
#define ROW_16(one, mask)                                                                          \
  ROW_4(one, mask), ROW_4(one, (mask) + 4), ROW_4(one, (mask) + 8), ROW_4(one, (mask) + 12)
#define ROW_64(one, mask)                                                                          \
  ROW_16(one, mask), ROW_16(one, (mask) + 16), ROW_16(one, (mask) + 32), ROW_16(one, (mask) + 48)
#define TABLE(one) ROW_64(one, 0u), ROW_64(one, 64u), ROW_64(one, 128u), ROW_64(one, 192u)

const uint64_t codec_gather[256] = { TABLE(GATHER_BIT) };
const uint64_t codec_scatter[256] = { TABLE(SCATTER_BIT) };
