/* SPDX-License-Identifier: Apache-2.0 */
/* hash: CRC32C for frames, SHA-256, HMAC and HKDF for identities and secrets.
 * Every connection proves its key by HMAC, so none of it may depend on a library that a host can
 * lack, as libcrypto: it is here, and no instruction or address depends on secret data.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_SHA256_BYTES = 32 };

/* CRC32C (Castagnoli, RFC 3720 appendix B.4) of the bytes that `crc` covers followed by these;
 * starts at 0. Uses the fastest form that this processor supports. */
uint32_t hash_crc32c(uint32_t crc, const void *bytes, size_t count);

/* All forms, the fastest first, for tests; the last one runs on any processor. NULL after the last.
 */
struct hash_crc32c_form {
  const char *name;
  bool (*is_usable)(void); /* if false, run() must not be called */
  uint32_t (*run)(uint32_t crc, const void *bytes, size_t count);
};
const struct hash_crc32c_form *hash_crc32c_form(size_t i);

/* FIPS 180-4. Final wipes it. */
struct hash_sha256 {
  uint32_t state[8];
  uint64_t bytes;    /* so far */
  uint8_t block[64]; /* the bytes that are no whole block yet */
};
void hash_sha256_init(struct hash_sha256 *hash);
void hash_sha256_update(struct hash_sha256 *hash, const void *bytes, size_t count);
void hash_sha256_final(struct hash_sha256 *hash, uint8_t digest[HASH_SHA256_BYTES]);

void hash_sha256(const void *bytes, size_t count, uint8_t digest[HASH_SHA256_BYTES]);

/* HMAC-SHA-256 (RFC 2104), key of any length. */
void hash_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
                      uint8_t digest[HASH_SHA256_BYTES]);

/* HKDF (RFC 5869) with SHA-256: extract makes a key from secrets, expand derives keys from it.
 * out_bytes: at most 8160. */
void hash_hkdf_extract(const void *salt, size_t salt_bytes, const void *secret, size_t secret_bytes,
                       uint8_t key[HASH_SHA256_BYTES]);
void hash_hkdf_expand(const uint8_t key[HASH_SHA256_BYTES], const void *info, size_t info_bytes,
                      void *out, size_t out_bytes);

/* Compares in constant time; for secrets and digests. */
bool hash_is_equal(const void *a, const void *b, size_t count);
/* Zeroes secrets; not optimised away. */
void hash_wipe(void *bytes, size_t count);

#endif
