/* SPDX-License-Identifier: Apache-2.0 */
/* aead: AES-256-GCM and ChaCha20-Poly1305, one direction, by OpenSSL's libcrypto (3 or 1.1), which
 * is opened at run time.
 *
 * The process may use the same libcrypto itself, so that nothing of it that is shared is touched:
 * OpenSSL 3 gets a library context of its own, without openssl.cnf, and no clean-up at exit is
 * registered. The library stays loaded. What it computes is compared with known results before a
 * cipher is offered: one that is missing, refused (FIPS) or wrong is not.
 *
 * Owns: the key and the library's context, from a successful start to aead_end.  Threads: one at a
 * time per struct; loading: any.  Blocks: the first call of a process, as dlopen does.
 * Fails: aead_start false without memory or the cipher. */
#ifndef NET_PLUGIN_LANE_TCP_AEAD_H
#define NET_PLUGIN_LANE_TCP_AEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane_crypto.h"

/* Of both ciphers. */
#define AEAD_KEY_BYTES 32
#define AEAD_NONCE_BYTES 12
#define AEAD_TAG_BYTES 16

enum aead_direction { AEAD_OPEN, AEAD_SEAL };

struct aead {
  void *context; /* libcrypto's */
};

bool aead_start(struct aead *aead, enum aead_direction direction, enum lane_cipher cipher,
                const uint8_t key[AEAD_KEY_BYTES]);
/* Another key, for the same direction. */
bool aead_rekey(struct aead *aead, const uint8_t key[AEAD_KEY_BYTES]);
/* Nothing, if it has not started. */
void aead_end(struct aead *aead);

/* `from` and `to` are the same, or do not overlap; `header` is authenticated only. False: the
 * library failed, and nothing that it wrote may be used. */
bool aead_seal(struct aead *aead, const uint8_t nonce[AEAD_NONCE_BYTES], const void *header,
               size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
               uint8_t tag[AEAD_TAG_BYTES]);
/* False: something was changed; nothing at `to` may be used. */
bool aead_open(struct aead *aead, const uint8_t nonce[AEAD_NONCE_BYTES], const void *header,
               size_t header_bytes, const void *from, size_t bytes, uint8_t *to,
               const uint8_t tag[AEAD_TAG_BYTES]);

#endif
