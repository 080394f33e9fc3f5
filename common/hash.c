/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C by the processor's instruction or by tables of 8 bytes a step; the rest is libsodium's. */
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
    for (int k = 0; k < 8; k++) {
      crc ^= crc_tables[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; count > 0; at++, count--) {
    crc = (crc >> 8) ^ crc_tables[0][(crc ^ *at) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *bytes,
                                                               size_t count) {
  const unsigned char *at = bytes;
  uint64_t wide = (uint32_t)~crc;
  for (; count >= 8; at += 8, count -= 8) {
    wide = _mm_crc32_u64(wide, bytes_get_le64(at));
  }
  crc = (uint32_t)wide;
  for (; count > 0; at++, count--) {
    crc = _mm_crc32_u8(crc, *at);
  }
  return ~crc;
}

uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t count) {
  if (__builtin_cpu_supports("sse4.2")) {
    return crc32c_sse42(crc, bytes, count);
  }
  return hash_crc32c_portable(crc, bytes, count);
}

#else

uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t count) {
  return hash_crc32c_portable(crc, bytes, count);
}

#endif

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
