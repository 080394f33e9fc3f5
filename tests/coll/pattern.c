/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: contents of the buffers and the reductions' results, computed from definitions. */
#include "tests/coll/pattern.h"

/* How far apart in the contents ranks begin, and within what the seed moves them: a prime number,
 * so that buffers, which have round sizes, do not begin at the same place. */
#define RANK_PLACES UINT64_C(1000003)

/* 64 well mixed bits of rank, place and seed (the finalizer of splitmix64). */
static uint64_t mix(uint64_t seed, int rank, uint64_t place) {
  uint64_t x = seed + place * UINT64_C(0x9e3779b97f4a7c15) +
               (uint64_t)(rank + 1) * UINT64_C(0xd1342543de82ef95);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A number from 0 to limit - 1. */
static int64_t below(uint64_t bits, int64_t limit) {
  return (int64_t)((bits >> 32) * (uint64_t)limit >> 32);
}

static uint64_t mask_of(const struct pattern *pattern) {
  return UINT64_MAX >> (64 - 8 * element_infos[pattern->type].size_bytes);
}

static void choose_numbers(struct pattern *pattern) {
  const struct element_info *info = &element_infos[pattern->type];
  bool is_sum = pattern->redop == PATTERN_SUM || pattern->redop == PATTERN_AVG;
  pattern->limit = info->exact_limit / (is_sum ? pattern->ranks : 1);
}

/* ---- contents ---- */

/* A multiple of up to `ranks` takes `bits` more bits, and an exponent larger by as much. */
static void choose_contents(struct pattern *pattern, const struct contents *contents) {
  const struct element_info *info = &element_infos[pattern->type];
  unsigned width = 8 * info->size_bytes, bits = 0;
  while (1 << bits < pattern->ranks)
    bits++;
  bool is_reduced = pattern->redop != PATTERN_NONE;
  bool is_possible = info->is_float && pattern->redop != PATTERN_PROD &&
                     bits <= info->mantissa_bits &&
                     2 * bits + 2 < 1u << (width - 1 - info->mantissa_bits);
  pattern->contents = contents && contents->size >= info->size_bytes && (!is_reduced || is_possible)
                          ? contents
                          : NULL;
  if (!pattern->contents || !is_reduced)
    return;
  uint64_t exponents = UINT64_C(1) << (width - 1 - info->mantissa_bits);
  pattern->kept = UINT64_MAX << bits;
  pattern->least = (UINT64_C(1) + bits) << info->mantissa_bits;
  pattern->most = ((exponents - 1 - bits) << info->mantissa_bits) - 1;
}

/* The same for all ranks where it is reduced. */
static uint64_t contents_sent(const struct pattern *pattern, int rank, uint64_t place) {
  unsigned size = element_infos[pattern->type].size_bytes;
  bool is_moved = pattern->redop == PATTERN_NONE;
  uint64_t number =
      place + pattern->seed % RANK_PLACES + (is_moved ? (uint64_t)rank * RANK_PLACES : 0);
  uint64_t code = element_load(pattern->contents->bytes, size,
                               (size_t)(number % (pattern->contents->size / size)));
  if (is_moved)
    return code;
  uint64_t magnitude = code & ~(UINT64_C(1) << (8 * size - 1));
  return magnitude < pattern->least || magnitude > pattern->most ? 0 : code & pattern->kept;
}

static uint64_t contents_expected(const struct pattern *pattern, uint64_t place) {
  uint64_t code = contents_sent(pattern, 0, place);
  return pattern->redop == PATTERN_SUM
             ? element_encode(pattern->type, element_decode(pattern->type, code) * pattern->ranks)
             : code;
}

void pattern_init(struct pattern *pattern, enum element_type type, enum pattern_redop redop,
                  int ranks, uint64_t seed, const struct contents *contents) {
  pattern->type = type;
  pattern->redop = redop;
  pattern->ranks = ranks;
  pattern->arrays = NULL;
  choose_numbers(pattern);
  choose_contents(pattern, contents);
  pattern_set_seed(pattern, seed);
}

void pattern_set_seed(struct pattern *pattern, uint64_t seed) {
  pattern->seed = mix(seed, -1, UINT64_C(1) << 40);
}

/* ---- numbers: whole ones for reductions of floating point, else bits ---- */

static bool is_whole(const struct pattern *pattern) {
  return pattern->redop != PATTERN_NONE && element_infos[pattern->type].is_float;
}

/* Negative ones as 64 bits have them. */
static uint64_t number_sent(const struct pattern *pattern, int rank, uint64_t place) {
  uint64_t bits = mix(pattern->seed, rank, place);
  if (pattern->redop == PATTERN_AVG)
    return (uint64_t)below(bits, pattern->limit + INT64_C(1));
  if (!is_whole(pattern)) /* a product of odd numbers keeps every bit that went into it */
    return (pattern->redop == PATTERN_PROD ? bits | 1 : bits) & mask_of(pattern);
  if (pattern->redop == PATTERN_PROD) /* 2^4 at most */
    return (bits & 1 ? UINT64_MAX : 1) * (1 + (rank < 4 ? bits >> 1 & 1 : 0));
  return (uint64_t)(below(bits, 2 * pattern->limit + 1) - pattern->limit);
}

/* Order of two of them as numbers of the type. */
static bool is_greater(const struct pattern *pattern, uint64_t a, uint64_t b) {
  unsigned size = is_whole(pattern) ? 8 : element_infos[pattern->type].size_bytes;
  uint64_t sign = UINT64_C(1) << (8 * size - 1);
  uint64_t flip = element_infos[pattern->type].is_signed ? sign : 0;
  return (a ^ flip) > (b ^ flip);
}

static uint64_t number_expected(const struct pattern *pattern, uint64_t place) {
  uint64_t result = pattern->redop == PATTERN_PROD ? 1 : 0;
  for (int rank = 0; rank < pattern->ranks; rank++) {
    uint64_t number = number_sent(pattern, rank, place);
    switch (pattern->redop) {
    case PATTERN_PROD:
      result *= number;
      break;
    case PATTERN_MAX:
      result = rank == 0 || is_greater(pattern, number, result) ? number : result;
      break;
    case PATTERN_MIN:
      result = rank == 0 || is_greater(pattern, result, number) ? number : result;
      break;
    default:
      result += number;
    }
  }
  return result;
}

/* ---- arrays, in the place of both ---- */

void pattern_use(struct pattern *pattern, const void *const *arrays, size_t shift) {
  pattern->arrays = arrays;
  pattern->shift = shift;
}

/* Element `place` of a rank's array, or of the reduction's. */
static const char *array_at(const struct pattern *pattern, int source, uint64_t place) {
  const char *array = pattern->arrays[source == PATTERN_REDUCED ? pattern->ranks : source];
  return array + (pattern->shift + place) * element_infos[pattern->type].size_bytes;
}

static uint64_t array_load(const struct pattern *pattern, int source, uint64_t place) {
  return element_load(array_at(pattern, source, place), element_infos[pattern->type].size_bytes, 0);
}

/* ---- all of them ---- */

uint64_t pattern_sent(const struct pattern *pattern, int rank, uint64_t place) {
  if (pattern->arrays)
    return array_load(pattern, rank, place);
  if (pattern->contents)
    return contents_sent(pattern, rank, place);
  uint64_t number = number_sent(pattern, rank, place);
  return is_whole(pattern) ? element_encode(pattern->type, (double)(int64_t)number) : number;
}

uint64_t pattern_expected(const struct pattern *pattern, uint64_t place) {
  if (pattern->arrays)
    return array_load(pattern, PATTERN_REDUCED, place);
  if (pattern->contents)
    return contents_expected(pattern, place);
  uint64_t number = number_expected(pattern, place);
  int parts = pattern->redop == PATTERN_AVG ? pattern->ranks : 1;
  if (is_whole(pattern))
    return element_encode(pattern->type, (double)(int64_t)number / parts);
  return number / (uint64_t)parts & mask_of(pattern);
}

void pattern_fill(const struct pattern *pattern, int rank, uint64_t place, void *to, size_t count) {
  unsigned size = element_infos[pattern->type].size_bytes;
  if (pattern->arrays) {
    memcpy(to, array_at(pattern, rank, place), count * size);
    return;
  }
  for (size_t i = 0; i < count; i++)
    element_store(to, size, i, pattern_sent(pattern, rank, place + i));
}

uint64_t pattern_compare(const struct pattern *pattern, int source, uint64_t place,
                         const void *data, size_t count, size_t *first_wrong) {
  unsigned size = element_infos[pattern->type].size_bytes;
  uint64_t wrong = 0;
  if (pattern->arrays && !memcmp(data, array_at(pattern, source, place), count * size))
    return 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t expected = source == PATTERN_REDUCED ? pattern_expected(pattern, place + i)
                                                  : pattern_sent(pattern, source, place + i);
    uint64_t got = element_load(data, size, i);
    if (got == expected)
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

void pattern_fill_guard(unsigned char guard[PATTERN_GUARD_BYTES]) {
  for (size_t i = 0; i < PATTERN_GUARD_BYTES; i++)
    guard[i] = guard_byte(i);
}

uint64_t pattern_compare_guard(const unsigned char guard[PATTERN_GUARD_BYTES]) {
  uint64_t changed = 0;
  for (size_t i = 0; i < PATTERN_GUARD_BYTES; i++)
    changed += guard[i] != guard_byte(i);
  return changed;
}
