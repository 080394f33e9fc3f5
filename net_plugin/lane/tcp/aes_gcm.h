/* SPDX-License-Identifier: Apache-2.0 */
/* aes_gcm: AES-256-GCM, one direction, by OpenSSL's libcrypto where one is installed, else by
 * libsodium. Both give the same bits, so hosts with different libraries understand each other;
 * OpenSSL is about twice as fast (docs/measurements.md).
 *
 * The process may use the same libcrypto itself, so that nothing of it that is shared is touched:
 * OpenSSL 3 gets a library context of its own, without openssl.cnf, and no clean-up at exit is
 * registered. The library stays loaded. What it computes is compared with known results before it
 * is used; one that is missing, refuses (FIPS) or is wrong costs speed only.
 *
 * Owns: its key and the library's context, from a successful start to aes_gcm_end.  Threads: one at
 * a time per struct; loading: any.  Blocks: the first call of a process, as dlopen does.
 * Fails: aes_gcm_start false without memory; then there is nothing to end. */
#ifndef NET_PLUGIN_LANE_TCP_AES_GCM_H
#define NET_PLUGIN_LANE_TCP_AES_GCM_H

#include <sodium/crypto_aead_aes256gcm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AES_GCM_KEY_BYTES 32
#define AES_GCM_NONCE_BYTES 12
#define AES_GCM_TAG_BYTES 16

enum aes_gcm_direction { AES_GCM_OPEN, AES_GCM_SEAL };

struct aes_gcm {
  crypto_aead_aes256gcm_state sodium; /* first: it wants alignment */
  void *context;                      /* libcrypto's; NULL: libsodium works */
};

/* The processor has instructions for it, and a library uses them. */
bool aes_gcm_is_available(void);
/* The library, for people: "OpenSSL 3.0.19" or "libsodium 1.0.18". */
const char *aes_gcm_library(void);

bool aes_gcm_start(struct aes_gcm *gcm, enum aes_gcm_direction direction,
                   const uint8_t key[AES_GCM_KEY_BYTES]);
/* Another key, for the same direction. */
bool aes_gcm_rekey(struct aes_gcm *gcm, const uint8_t key[AES_GCM_KEY_BYTES]);
void aes_gcm_end(struct aes_gcm *gcm);

/* `from` and `to` are the same, or do not overlap; `header` is authenticated only. False: the
 * library failed, and nothing that it wrote may be used. */
bool aes_gcm_seal(struct aes_gcm *gcm, const uint8_t nonce[AES_GCM_NONCE_BYTES], const void *header,
                  size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
                  uint8_t tag[AES_GCM_TAG_BYTES]);
/* False: something was changed; nothing at `to` may be used. */
bool aes_gcm_open(struct aes_gcm *gcm, const uint8_t nonce[AES_GCM_NONCE_BYTES], const void *header,
                  size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
                  const uint8_t tag[AES_GCM_TAG_BYTES]);

#endif
