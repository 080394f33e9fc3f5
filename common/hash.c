/* SPDX-License-Identifier: Apache-2.0 */
/* All of it is libsodium's. CRC32C is in hash_crc32c.c. */
#include "common/hash.h"

#include <sodium/utils.h>
#include <string.h>

#include "common/bytes.h"

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

uint64_t hash_short(const uint8_t key[HASH_SHORT_KEY_BYTES], const void *bytes, size_t count) {
  uint8_t hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, bytes, count, key);
  return bytes_get_le64(hash);
}

bool hash_is_equal(const void *a, const void *b, size_t count) {
  return sodium_memcmp(a, b, count) == 0;
}

void hash_wipe(void *bytes, size_t count) {
  sodium_memzero(bytes, count);
}
