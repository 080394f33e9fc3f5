/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C by the processor's instruction in three streams, or by tables of 8 bytes a step; the rest
 * is libsodium's. */
#include "common/hash.h"

#include <pthread.h>
#include <sodium/utils.h>
#include <string.h>

#include "common/bytes.h"

/* ---- CRC32C ---- */

#define CRC32C_POLYNOMIAL UINT32_C(0x82f63b78) /* 0x1edc6f41, bits reversed */

/* crc_tables[k][b]: the CRC of byte b followed by k zero bytes. */
static uint32_t crc_tables[8][256];
static pthread_once_t crc_tables_once = PTHREAD_ONCE_INIT;

static void fill_crc_tables(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ ((crc & 1) ? CRC32C_POLYNOMIAL : 0);
    }
    crc_tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int k = 1; k < 8; k++) {
      uint32_t before = crc_tables[k - 1][byte];
      crc_tables[k][byte] = (before >> 8) ^ crc_tables[0][before & 0xff];
    }
  }
}

uint32_t hash_crc32c_portable(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&crc_tables_once, fill_crc_tables);
  const unsigned char *at = bytes;
  crc = ~crc;
  for (; count >= 8; at += 8, count -= 8) {
    uint64_t word = bytes_get_le64(at) ^ crc;
    crc = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
      crc ^= crc_tables[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; count > 0; at++, count--) {
    crc = (crc >> 8) ^ crc_tables[0][(crc ^ *at) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__) || (defined(__aarch64__) && defined(__ARM_FEATURE_CRC32))
#define HAS_CRC_INSTRUCTION 1
#endif

#if HAS_CRC_INSTRUCTION

/* The instruction takes 8 bytes per cycle but answers three cycles later, so three streams are
 * under way at once, over three blocks that follow each other. Their CRCs are put together by
 * moving one over the zeros that stand for the block behind it, which is a linear map: four tables
 * of 256. */

#define LONG_BLOCK 4096
#define SHORT_BLOCK 256

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
#define CRC_TARGET
#define CRC_WORD(crc, at) __crc32cd((crc), bytes_get_le64(at))
typedef uint32_t crc_wide;
#define CRC_BYTE(crc, at) __crc32cb((crc), *(at))
#endif

/* What becomes of `crc` over so many zero bytes. */
static uint32_t over_zeros(uint32_t crc, size_t bytes) {
  for (; bytes > 0; bytes--) {
    crc = (crc >> 8) ^ crc_tables[0][crc & 0xff];
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
  pthread_once(&crc_tables_once, fill_crc_tables);
  fill_crc_shift(&over_long, LONG_BLOCK);
  fill_crc_shift(&over_short, SHORT_BLOCK);
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

CRC_TARGET static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  crc = ~crc;
  if (count >= 3 * SHORT_BLOCK) {
    pthread_once(&crc_shifts_once, fill_crc_shifts);
    crc = crc32c_three(crc, &at, &count, LONG_BLOCK, &over_long);
    crc = crc32c_three(crc, &at, &count, SHORT_BLOCK, &over_short);
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

#endif

uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t count) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") ? crc32c_instruction(crc, bytes, count)
                                          : hash_crc32c_portable(crc, bytes, count);
#elif HAS_CRC_INSTRUCTION
  return crc32c_instruction(crc, bytes, count);
#else
  return hash_crc32c_portable(crc, bytes, count);
#endif
}

/* ---- SHA-256, HMAC ---- */

/* libsodium's hash functions need no sodium_init(); their int results are always 0. */

void hash_sha256_init(struct hash_sha256 *hash) {
  crypto_hash_sha256_init(&hash->state);
}

void hash_sha256_update(struct hash_sha256 *hash, const void *bytes, size_t count) {
  crypto_hash_sha256_update(&hash->state, bytes, count);
}

void hash_sha256_final(struct hash_sha256 *hash, uint8_t digest[HASH_SHA256_BYTES]) {
  crypto_hash_sha256_final(&hash->state, digest);
}

void hash_sha256(const void *bytes, size_t count, uint8_t digest[HASH_SHA256_BYTES]) {
  crypto_hash_sha256(digest, bytes, count);
}

void hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                      uint8_t digest[HASH_SHA256_BYTES]) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key, key_bytes);
  crypto_auth_hmacsha256_update(&state, bytes, count);
  crypto_auth_hmacsha256_final(&state, digest);
  sodium_memzero(&state, sizeof state);
}

void hash_hkdf_extract(const void *salt, size_t salt_bytes, const void *secret, size_t secret_bytes,
                       uint8_t key[HASH_SHA256_BYTES]) {
  hash_hmac_sha256(salt, salt_bytes, secret, secret_bytes, key);
}

void hash_hkdf_expand(const uint8_t key[HASH_SHA256_BYTES], const void *info, size_t info_bytes,
                      void *out, size_t out_bytes) {
  uint8_t block[HASH_SHA256_BYTES], number = 0;
  uint8_t *at = out;
  while (out_bytes > 0) {
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, HASH_SHA256_BYTES);
    crypto_auth_hmacsha256_update(&state, block, number ? sizeof block : 0);
    crypto_auth_hmacsha256_update(&state, info, info_bytes);
    number++;
    crypto_auth_hmacsha256_update(&state, &number, 1);
    crypto_auth_hmacsha256_final(&state, block);
    sodium_memzero(&state, sizeof state);
    size_t taken = out_bytes < sizeof block ? out_bytes : sizeof block;
    memcpy(at, block, taken);
    at += taken;
    out_bytes -= taken;
  }
  sodium_memzero(block, sizeof block);
}

bool hash_is_equal(const void *a, const void *b, size_t count) {
  return sodium_memcmp(a, b, count) == 0;
}

void hash_wipe(void *bytes, size_t count) {
  sodium_memzero(bytes, count);
}
