/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C in three forms: by a table, a byte a step; by the processor's instruction in three streams
 * (20 to 25 GB/s of 8 KiB and more on an AMD EPYC); and by carry-less multiplication in registers
 * of 64 bytes (43 to 55; of 32 bytes it was no faster than the instruction). Two hosts without
 * caps, STRATUS_CHECKSUM=1: 5.6 GB/s by the instruction, 6.7 by multiplication, 7.7 without
 * (scripts/bench checksum). */
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

CRC_TARGET static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  crc = ~crc;
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
  return ~(uint32_t)wide;
}

static bool has_instruction(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2");
#else /* ARMv8.0 leaves it to the maker */
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

#endif

#if defined(__x86_64__)

/* ---- by multiplying without carries, 64 bytes an instruction ----
 *
 * The bytes read so far stand as a polynomial A of 128 bits in each part of a register, and T bits
 * later in the message as A * x^T. With A = L * x^64 + H, whose halves the register has, and P the
 * CRC's polynomial, that is congruent to L * (x^(64+T) mod P) + H * (x^T mod P), which has less
 * than 128 bits again: two multiplications by keys, and what stands at T bits is added. What is
 * left in the end goes through the CRC instruction, as the rest of the message does. Operands have
 * their bits reversed, as the CRC has; a product of such is shifted by one bit, so keys have one x
 * less. */

#include <immintrin.h>

#define WIDE_TARGET __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))
#define WIDE_PARTS 4 /* registers that do not wait for each other; unrolled below */

struct fold_key {
  uint64_t low, high;
};
/* To the next register's part, register, and WIDE_PARTS registers. */
static struct fold_key over_part, over_one, over_all;
static pthread_once_t fold_keys_once = PTHREAD_ONCE_INIT;

/* x^exponent modulo the polynomial, in the upper half. */
static uint64_t power_of_x(unsigned exponent) {
  uint32_t power = UINT32_C(1) << 31;
  for (; exponent > 0; exponent--) {
    power = (power >> 1) ^ ((power & 1) ? CRC32C_POLYNOMIAL : 0);
  }
  return (uint64_t)power << 32;
}

static struct fold_key fold_key(unsigned bits) {
  return (struct fold_key){ power_of_x(bits + 63), power_of_x(bits - 1) };
}

static void fill_fold_keys(void) {
  over_part = fold_key(128);
  over_one = fold_key(512);
  over_all = fold_key(512 * WIDE_PARTS);
}

WIDE_TARGET static inline __m512i fold(__m512i folded, const struct fold_key *key, __m512i next) {
  __m512i keys = _mm512_set4_epi64((int64_t)key->high, (int64_t)key->low, (int64_t)key->high,
                                   (int64_t)key->low);
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(folded, keys, 0x00),
                                   _mm512_clmulepi64_epi128(folded, keys, 0x11), next, 0x96);
}

WIDE_TARGET static inline __m128i fold_part(__m128i folded, __m128i next) {
  __m128i keys = _mm_set_epi64x((int64_t)over_part.high, (int64_t)over_part.low);
  return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(folded, keys, 0x00),
                                _mm_clmulepi64_si128(folded, keys, 0x11), next, 0x96);
}

WIDE_TARGET static uint32_t by_multiplication(uint32_t crc, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  if (count < 2 * 64 * WIDE_PARTS) {
    return by_instruction(crc, bytes, count);
  }
  pthread_once(&fold_keys_once, fill_fold_keys);
  __m512i parts[WIDE_PARTS];
#pragma GCC unroll 4
  for (int i = 0; i < WIDE_PARTS; i++) {
    parts[i] = _mm512_loadu_si512(at + 64 * i);
  }
  parts[0] = _mm512_xor_si512(parts[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
  for (at += sizeof parts, count -= sizeof parts; count >= sizeof parts;
       at += sizeof parts, count -= sizeof parts) {
#pragma GCC unroll 4
    for (int i = 0; i < WIDE_PARTS; i++) {
      parts[i] = fold(parts[i], &over_all, _mm512_loadu_si512(at + 64 * i));
    }
  }
  __m512i one = parts[0];
  for (int i = 1; i < WIDE_PARTS; i++) {
    one = fold(one, &over_one, parts[i]);
  }
  __m128i left = _mm512_extracti32x4_epi32(one, 0);
  left = fold_part(left, _mm512_extracti32x4_epi32(one, 1));
  left = fold_part(left, _mm512_extracti32x4_epi32(one, 2));
  left = fold_part(left, _mm512_extracti32x4_epi32(one, 3));
  uint64_t rest = _mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(left, 0));
  rest = _mm_crc32_u64(rest, (uint64_t)_mm_extract_epi64(left, 1));
  return by_instruction(~(uint32_t)rest, at, count); /* which inverts it back */
}

static bool has_multiplication(void) {
  return has_instruction() && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl");
}

#endif

/* ---- which of them ---- */

static bool always(void) {
  return true;
}

/* The fastest first. */
static const struct hash_crc32c_form forms[] = {
#if defined(__x86_64__)
  { "multiplication", has_multiplication, by_multiplication },
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
