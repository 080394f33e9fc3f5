/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: what each rank sends, and what a reduction of it must give; in arrays of host memory.
 * Owns: nothing.  Threads: each pattern one at a time.
 * Blocks: never.  Fails: cannot.
 *
 * An element depends on the rank, on its place and on the seed, so data of another rank, place or
 * earlier run is seen to be wrong. Operations that only move data send arbitrary bits. Reductions
 * send numbers chosen so that every order of adding them is exact in the type:
 *
 *   integers         arbitrary bits (arithmetic modulo 2^n does not depend on order either);
 *                    for avg small non-negative ones, whose sum fits
 *   floating point   whole numbers whose sums stay below the type's exact_limit; for prod powers
 *                    of two
 *
 * With contents (coll --data) ranks send those instead. What is only moved are the contents
 * from another place on for each rank. For sum, avg, min and max of floating point all ranks send
 * the same, so that the sum over any of them is a small multiple of it; with the lowest bits of the
 * mantissa cleared, as many as that takes, all of these are exact. Numbers so small or large that
 * they would not be are sent as 0. Other reductions send what they send without contents.
 *
 * Reductions are of up to PATTERN_RANKS_MAX ranks, and avg of floating point of a power of two of
 * them: ncclAvg multiplies by 1/n, which other numbers round. */
#ifndef COLL_PATTERN_H
#define COLL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "tests/coll/contents.h"
#include "tests/coll/element.h"

/* In the order of ncclRedOp_t, whose values these are. */
enum pattern_redop {
  PATTERN_SUM,
  PATTERN_PROD,
  PATTERN_MAX,
  PATTERN_MIN,
  PATTERN_AVG,
  PATTERN_NONE, /* data is only moved */
};

enum { PATTERN_RANKS_MAX = 64 };

struct pattern {
  enum element_type type;
  enum pattern_redop redop;
  int ranks;
  uint64_t seed;
  int limit;                       /* of the numbers that each rank sends */
  const struct contents *contents; /* NULL: none, or not for this reduction */
  /* Of contents, for reductions: which bits of a code are sent, and what codes without sign. */
  uint64_t kept, least, most;
  const void *const *arrays; /* of pattern_use; NULL: none */
  size_t shift;
};

/* contents: NULL: none. Else to be there as long as the pattern. */
void pattern_init(struct pattern *pattern, enum element_type type, enum pattern_redop redop,
                  int ranks, uint64_t seed, const struct contents *contents);

/* Another run of the same kind: cheap. */
void pattern_set_seed(struct pattern *pattern, uint64_t seed);

/* In the place of all that: what each rank sends and, last, the reduction, in arrays that begin
 * `shift` elements behind their beginning. A check then costs a comparison of memory. Until
 * pattern_init; the arrays are to be there as long. */
void pattern_use(struct pattern *pattern, const void *const *arrays, size_t shift);

/* Code of element `place` of what `rank` sends. */
uint64_t pattern_sent(const struct pattern *pattern, int rank, uint64_t place);

/* Code of element `place` of the reduction over all ranks. */
uint64_t pattern_expected(const struct pattern *pattern, uint64_t place);

/* Stands for "the reduction over all ranks" where a source rank is asked for. */
enum { PATTERN_REDUCED = -1 };

/* `count` elements of what `rank` sends, from `place` on. */
void pattern_fill(const struct pattern *pattern, int rank, uint64_t place, void *to, size_t count);

/* Number of elements that differ from what `source` sent at `place` and after, or from the
 * reduction. `first_wrong` receives the index of the first, if there is one. */
uint64_t pattern_compare(const struct pattern *pattern, int source, uint64_t place,
                         const void *data, size_t count, size_t *first_wrong);

/* Guards are bytes around a buffer that nothing may write. */
enum { PATTERN_GUARD_BYTES = 4096 };
void pattern_fill_guard(unsigned char guard[PATTERN_GUARD_BYTES]);
uint64_t pattern_compare_guard(const unsigned char guard[PATTERN_GUARD_BYTES]); /* bytes changed */

#endif
