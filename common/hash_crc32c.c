/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C in three forms: by a table, a byte a step; by the processor's instruction in three
 * streams; by carry-less multiplication in registers of 32 bytes, which is faster than memory:
 * wider ones gain nothing. */
#include <pthread.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "common/limits.h"

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78) /* 0x1edc6f41, bits reversed */

/* Of each byte. */
static uint32_t crc_table[256];
static pthread_once_t crc_table_once = PTHREAD_ONCE_INIT;

static void fill_crc_table(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ ((crc & 1) ? CRC32C_POLYNOMIAL : 0);
    }
    crc_table[byte] = crc;
  }
}

/* Where there is no instruction for it. */
static uint32_t by_table(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&crc_table_once, fill_crc_table);
  crc = ~crc;
  for (const unsigned char *at = bytes; count > 0; at++, count--) {
    crc = (crc >> 8) ^ crc_table[(crc ^ *at) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__) || defined(__aarch64__)
#define HAS_CRC_INSTRUCTION 1
#endif

#if HAS_CRC_INSTRUCTION

/* The instruction takes 8 bytes per cycle but answers three cycles later, so three streams run at
 * once, over three blocks that follow each other. Their CRCs are put together by moving one over
 * the zeros that stand for the block behind it, which is a linear map: four tables of 256. */

struct crc_shift {
  uint32_t table[4][256];
};
static struct crc_shift over_long, over_short;
static pthread_once_t crc_shifts_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(crc, at) _mm_crc32_u64((crc), bytes_get_le64(at))
/* As wide as the instruction's result: a narrower one costs a cycle to cut it off. */
typedef uint64_t crc_wide;
#define CRC_BYTE(crc, at) _mm_crc32_u8((uint32_t)(crc), *(at))
#else
#include <arm_acle.h>
#include <sys/auxv.h>
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_WORD(crc, at) __crc32cd((crc), bytes_get_le64(at))
typedef uint32_t crc_wide;
#define CRC_BYTE(crc, at) __crc32cb((crc), *(at))
#endif

/* What becomes of `crc` over so many zero bytes. */
static uint32_t over_zeros(uint32_t crc, size_t bytes) {
  for (; bytes > 0; bytes--) {
    crc = (crc >> 8) ^ crc_table[crc & 0xff];
  }
  return crc;
}

static void fill_crc_shift(struct crc_shift *shift, size_t bytes) {
  uint32_t bits[32];
  for (int bit = 0; bit < 32; bit++) {
    bits[bit] = over_zeros(UINT32_C(1) << bit, bytes);
  }
  for (int k = 0; k < 4; k++) {
    for (uint32_t byte = 0; byte < 256; byte++) {
      uint32_t crc = 0;
      for (int bit = 0; bit < 8; bit++) {
        crc ^= byte >> bit & 1 ? bits[8 * k + bit] : 0;
      }
      shift->table[k][byte] = crc;
    }
  }
}

static void fill_crc_shifts(void) {
  pthread_once(&crc_table_once, fill_crc_table);
  fill_crc_shift(&over_long, HASH_LONG_BLOCK_BYTES);
  fill_crc_shift(&over_short, HASH_SHORT_BLOCK_BYTES);
}

static inline uint32_t shift_crc(const struct crc_shift *shift, uint32_t crc) {
  return shift->table[0][crc & 0xff] ^ shift->table[1][crc >> 8 & 0xff] ^
         shift->table[2][crc >> 16 & 0xff] ^ shift->table[3][crc >> 24];
}

/* Three blocks at a time, as long as there are; *at and *count go on. */
CRC_TARGET static inline uint32_t crc32c_three(uint32_t crc, const unsigned char **at,
                                               size_t *count, size_t block,
                                               const struct crc_shift *shift) {
  const unsigned char *from = *at;
  for (; *count >= 3 * block; *count -= 3 * block) {
    crc_wide first = crc, second = 0, third = 0;
    for (const unsigned char *end = from + block; from < end; from += 8) {
      first = CRC_WORD(first, from);
      second = CRC_WORD(second, from + block);
      third = CRC_WORD(third, from + 2 * block);
    }
    crc = shift_crc(shift, shift_crc(shift, (uint32_t)first) ^ (uint32_t)second);
    crc ^= (uint32_t)third;
    from += 2 * block;
  }
  *at = from;
  return crc;
}

/* Without the inversions at both ends. */
CRC_TARGET static uint32_t go_on(uint32_t crc, const unsigned char *at, size_t count) {
  if (count >= 3 * HASH_SHORT_BLOCK_BYTES) {
    pthread_once(&crc_shifts_once, fill_crc_shifts);
    crc = crc32c_three(crc, &at, &count, HASH_LONG_BLOCK_BYTES, &over_long);
    crc = crc32c_three(crc, &at, &count, HASH_SHORT_BLOCK_BYTES, &over_short);
  }
  crc_wide wide = crc;
  for (; count >= 8; at += 8, count -= 8) {
    wide = CRC_WORD(wide, at);
  }
  for (; count > 0; at++, count--) {
    wide = CRC_BYTE(wide, at);
  }
  return (uint32_t)wide;
}

static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t count) {
  return ~go_on(~crc, bytes, count);
}

#endif

#if defined(__x86_64__)

/* ---- by multiplying without carries, 32 bytes an instruction ----
 *
 * The bytes read so far stand as a polynomial A of 128 bits in each part of a register, and T bits
 * later in the message as A * x^T. With A = L * x^64 + H, whose halves the register has, and P the
 * CRC's polynomial, that is congruent to L * (x^(64+T) mod P) + H * (x^T mod P), which has less
 * than 128 bits again: two multiplications by keys, and what stands at T bits is added. What is
 * left in the end goes through the CRC instruction, as the rest of the message does. Operands have
 * their bits reversed, as the CRC has; a product of such is shifted by one bit, so keys have one x
 * less. */

#include <immintrin.h>

struct fold_key {
  uint64_t low, high;
};
static struct fold_key fold_128, fold_256, fold_1024;
static pthread_once_t fold_once = PTHREAD_ONCE_INIT;

/* x^exponent modulo the polynomial, in the upper half. */
static uint64_t power_of_x(unsigned exponent) {
  uint32_t power = UINT32_C(1) << 31;
  for (; exponent > 0; exponent--) {
    power = (power >> 1) ^ ((power & 1) ? CRC32C_POLYNOMIAL : 0);
  }
  return (uint64_t)power << 32;
}

static struct fold_key fold_key(unsigned distance_bits) {
  return (struct fold_key){ power_of_x(distance_bits + 63), power_of_x(distance_bits - 1) };
}

static void fill_fold_keys(void) {
  fold_128 = fold_key(128);
  fold_256 = fold_key(256);
  fold_1024 = fold_key(1024);
}

#define PCLMUL_TARGET __attribute__((target("sse4.2,pclmul")))
#define AVX2_TARGET __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

PCLMUL_TARGET static inline __m128i fold_16(__m128i folded, const struct fold_key *key,
                                            __m128i next) {
  __m128i keys = _mm_set_epi64x((int64_t)key->high, (int64_t)key->low);
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(folded, keys, 0x00),
                                     _mm_clmulepi64_si128(folded, keys, 0x11)),
                       next);
}

PCLMUL_TARGET static inline uint32_t crc_of_16(__m128i folded) {
  uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(folded, 0));
  return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(folded, 1));
}

AVX2_TARGET static inline __m256i keys_32(const struct fold_key *key) {
  return _mm256_set_epi64x((int64_t)key->high, (int64_t)key->low, (int64_t)key->high,
                           (int64_t)key->low);
}

AVX2_TARGET static inline __m256i fold_32(__m256i folded, __m256i keys, __m256i next) {
  return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(folded, keys, 0x00),
                                           _mm256_clmulepi64_epi128(folded, keys, 0x11)),
                          next);
}

#define LOAD_32(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))

AVX2_TARGET static uint32_t by_avx2(uint32_t crc, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  if (count < 256) {
    return by_instruction(crc, bytes, count);
  }
  pthread_once(&fold_once, fill_fold_keys);
  __m256i parts[4], keys = keys_32(&fold_1024);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    parts[i] = LOAD_32(at + 32 * i);
  }
  parts[0] = _mm256_xor_si256(parts[0], _mm256_set_epi64x(0, 0, 0, (int64_t)(uint64_t)~crc));
  for (at += 128, count -= 128; count >= 128; at += 128, count -= 128) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      parts[i] = fold_32(parts[i], keys, LOAD_32(at + 32 * i));
    }
  }
  keys = keys_32(&fold_256);
  __m256i one = parts[0];
#pragma GCC unroll 4
  for (int i = 1; i < 4; i++) {
    one = fold_32(one, keys, parts[i]);
  }
  __m128i half = fold_16(_mm256_castsi256_si128(one), &fold_128, _mm256_extracti128_si256(one, 1));
  return ~go_on(crc_of_16(half), at, count);
}

static bool has_instruction(void) {
  return __builtin_cpu_supports("sse4.2");
}

static bool has_avx2(void) {
  return has_instruction() && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("vpclmulqdq");
}

#elif HAS_CRC_INSTRUCTION

static bool has_instruction(void) { /* ARMv8.0 leaves it to the maker */
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

#endif

/* ---- which of them ---- */

static bool always(void) {
  return true;
}

/* The fastest first. */
static const struct hash_crc32c_form forms[] = {
#if defined(__x86_64__)
  { "avx2", has_avx2, by_avx2 },
#endif
#if HAS_CRC_INSTRUCTION
  { "instruction", has_instruction, by_instruction },
#endif
  { "table", always, by_table },
};
static const struct hash_crc32c_form *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

const struct hash_crc32c_form *hash_crc32c_form(size_t i) {
  return i < sizeof forms / sizeof *forms ? &forms[i] : NULL;
}

static void choose(void) {
  for (chosen = forms; !chosen->is_usable(); chosen++) {
  }
}

uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&chosen_once, choose);
  return chosen->run(crc, bytes, count);
}
