/* SPDX-License-Identifier: Apache-2.0 */
/* See hash.h. CRC32C is in hash_crc32c.c. */
#include "common/hash.h"

#include <string.h>

#include "common/bytes.h"

enum { BLOCK_BYTES = sizeof((struct hash_sha256 *)0)->block };

/* ---- SHA-256: FIPS 180-4, with its names; its words are big-endian ---- */

static uint32_t get_be32(const uint8_t *from) {
  return __builtin_bswap32(bytes_get_le32(from));
}

static void put_be32(uint8_t *to, uint32_t value) {
  bytes_put_le32(to, __builtin_bswap32(value));
}

static uint32_t rotate_right(uint32_t word, unsigned bits) {
  return word >> bits | word << (32 - bits);
}

static void sha256_block(uint32_t state[8], const uint8_t block[BLOCK_BYTES]) {
  static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
  };
  uint32_t w[64], v[8]; /* a to h */
  for (int t = 0; t < 16; t++) {
    w[t] = get_be32(block + 4 * t);
  }
  for (int t = 16; t < 64; t++) {
    uint32_t x = w[t - 15], y = w[t - 2];
    w[t] = w[t - 16] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[t - 7] +
           (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
  }
  memcpy(v, state, sizeof v);
  for (int t = 0; t < 64; t++) {
    uint32_t a = v[0], e = v[4];
    uint32_t t1 = v[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                  ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
    uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                  ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(&v[1], &v[0], 7 * sizeof v[0]);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) {
    state[i] += v[i];
  }
  hash_wipe(w, sizeof w);
  hash_wipe(v, sizeof v);
}

void hash_sha256_init(struct hash_sha256 *hash) {
  *hash = (struct hash_sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void hash_sha256_update(struct hash_sha256 *hash, const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  while (count > 0) {
    size_t used = hash->bytes % BLOCK_BYTES, room = BLOCK_BYTES - used;
    size_t taken = count < room ? count : room;
    memcpy(hash->block + used, at, taken);
    hash->bytes += taken;
    at += taken;
    count -= taken;
    if (taken == room) {
      sha256_block(hash->state, hash->block);
    }
  }
}

/* A bit 1, bits 0, and the number of bits, so that blocks are whole. */
void hash_sha256_final(struct hash_sha256 *hash, uint8_t digest[HASH_SHA256_BYTES]) {
  static const uint8_t padding[BLOCK_BYTES] = { 0x80 };
  uint8_t bits[8];
  bytes_put_le64(bits, __builtin_bswap64(hash->bytes * 8));
  size_t used = hash->bytes % BLOCK_BYTES, most = BLOCK_BYTES - sizeof bits;
  hash_sha256_update(hash, padding, used < most ? most - used : BLOCK_BYTES + most - used);
  hash_sha256_update(hash, bits, sizeof bits);
  for (size_t i = 0; i < 8; i++) {
    put_be32(digest + 4 * i, hash->state[i]);
  }
  hash_wipe(hash, sizeof *hash);
}

void hash_sha256(const void *bytes, size_t count, uint8_t digest[HASH_SHA256_BYTES]) {
  struct hash_sha256 hash;
  hash_sha256_init(&hash);
  hash_sha256_update(&hash, bytes, count);
  hash_sha256_final(&hash, digest);
}

/* ---- HMAC and HKDF ---- */

struct hmac {
  struct hash_sha256 inner, outer;
};

static void hmac_init(struct hmac *hmac, const void *key, size_t key_bytes) {
  uint8_t inner[BLOCK_BYTES] = { 0 }, outer[BLOCK_BYTES];
  if (key_bytes > sizeof inner) {
    hash_sha256(key, key_bytes, inner);
  } else if (key_bytes > 0) {
    memcpy(inner, key, key_bytes);
  }
  for (size_t i = 0; i < sizeof inner; i++) {
    outer[i] = inner[i] ^ 0x5c;
    inner[i] ^= 0x36;
  }
  hash_sha256_init(&hmac->inner);
  hash_sha256_update(&hmac->inner, inner, sizeof inner);
  hash_sha256_init(&hmac->outer);
  hash_sha256_update(&hmac->outer, outer, sizeof outer);
  hash_wipe(inner, sizeof inner);
  hash_wipe(outer, sizeof outer);
}

static void hmac_final(struct hmac *hmac, uint8_t digest[HASH_SHA256_BYTES]) {
  hash_sha256_final(&hmac->inner, digest);
  hash_sha256_update(&hmac->outer, digest, HASH_SHA256_BYTES);
  hash_sha256_final(&hmac->outer, digest);
}

void hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                      uint8_t digest[HASH_SHA256_BYTES]) {
  struct hmac hmac;
  hmac_init(&hmac, key, key_bytes);
  hash_sha256_update(&hmac.inner, bytes, count);
  hmac_final(&hmac, digest);
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
    struct hmac hmac;
    hmac_init(&hmac, key, HASH_SHA256_BYTES);
    hash_sha256_update(&hmac.inner, block, number ? sizeof block : 0);
    hash_sha256_update(&hmac.inner, info, info_bytes);
    number++;
    hash_sha256_update(&hmac.inner, &number, 1);
    hmac_final(&hmac, block);
    size_t taken = out_bytes < sizeof block ? out_bytes : sizeof block;
    memcpy(at, block, taken);
    at += taken;
    out_bytes -= taken;
  }
  hash_wipe(block, sizeof block);
}

/* ---- secrets ---- */

bool hash_is_equal(const void *a, const void *b, size_t count) {
  const volatile uint8_t *one = a, *other = b;
  uint8_t differs = 0;
  for (size_t i = 0; i < count; i++) {
    differs |= one[i] ^ other[i];
  }
  return differs == 0;
}

void hash_wipe(void *bytes, size_t count) {
  explicit_bzero(bytes, count);
}
