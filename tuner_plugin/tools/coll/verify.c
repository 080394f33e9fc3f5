/* SPDX-License-Identifier: Apache-2.0 */
/* verify: element by element, against values computed independently. */
#include "tuner_plugin/tools/coll/verify.h"

#include <math.h>

void verify_fill(const struct pattern *pattern, int rank, uint64_t place, void *to, size_t count) {
  unsigned size = element_infos[pattern->type].size_bytes;
  for (size_t i = 0; i < count; i++)
    element_store(to, size, i, pattern_sent(pattern, rank, place + i));
}

/* Codes that differ can still be right: zero has two, and rounding has room for a few. */
static bool is_close(const struct pattern *pattern, uint64_t got, uint64_t expected) {
  if (pattern->redop == PATTERN_NONE || !element_infos[pattern->type].is_float)
    return false;
  double want = element_decode(pattern->type, expected);
  double have = element_decode(pattern->type, got);
  return fabs(have - want) <= pattern_tolerance(pattern, want); /* false for a NaN */
}

uint64_t verify_compare(const struct pattern *pattern, int source, uint64_t place, const void *data,
                        size_t count, size_t *first_wrong) {
  unsigned size = element_infos[pattern->type].size_bytes;
  uint64_t wrong = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t expected = source == VERIFY_REDUCED ? pattern_expected(pattern, place + i)
                                                 : pattern_sent(pattern, source, place + i);
    uint64_t got = element_load(data, size, i);
    if (got == expected || is_close(pattern, got, expected))
      continue;
    if (!wrong)
      *first_wrong = i;
    wrong++;
  }
  return wrong;
}

/* No two neighbours are equal and no byte is what fills the rest of the buffer. */
static unsigned char guard_byte(size_t i) {
  return (unsigned char)(0x80 | (i * 37 & 0x7f));
}

void verify_fill_guard(unsigned char guard[VERIFY_GUARD_BYTES]) {
  for (size_t i = 0; i < VERIFY_GUARD_BYTES; i++)
    guard[i] = guard_byte(i);
}

uint64_t verify_compare_guard(const unsigned char guard[VERIFY_GUARD_BYTES]) {
  uint64_t changed = 0;
  for (size_t i = 0; i < VERIFY_GUARD_BYTES; i++)
    changed += guard[i] != guard_byte(i);
  return changed;
}
