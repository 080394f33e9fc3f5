/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_seal.h. */
#include "net_plugin/lane/tcp/tcp_seal.h"

#include <errno.h>
#include <sodium/core.h>
#include <sodium/crypto_aead_chacha20poly1305.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"

#define KEY_BYTES AES_GCM_KEY_BYTES
#define NONCE_BYTES (LANE_KEY_BYTES - KEY_BYTES)
_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == KEY_BYTES &&
                   AES_GCM_NONCE_BYTES == NONCE_BYTES &&
                   crypto_aead_chacha20poly1305_ietf_NPUBBYTES == NONCE_BYTES &&
                   AES_GCM_TAG_BYTES == TCP_SEAL_TAG_BYTES &&
                   crypto_aead_chacha20poly1305_ietf_ABYTES == TCP_SEAL_TAG_BYTES,
               "both ciphers have the same sizes");

unsigned lane_crypto_ciphers(void) {
  if (sodium_init() < 0) {
    return 0;
  }
  unsigned ciphers = 1u << LANE_CHACHA20POLY1305;
  /* Needs instructions that not every processor has. */
  return aes_gcm_is_available() ? ciphers | 1u << LANE_AES256GCM : ciphers;
}

const char *lane_crypto_name(enum lane_cipher cipher, char text[LANE_CRYPTO_NAME_MAX]) {
  if (cipher == LANE_AES256GCM) {
    snprintf(text, LANE_CRYPTO_NAME_MAX, "AES-256-GCM (%s)", aes_gcm_library());
    return text;
  }
  return cipher == LANE_PLAIN ? "nothing" : "ChaCha20-Poly1305";
}

bool tcp_seal_start(struct tcp_seal *seal, enum aes_gcm_direction direction,
                    enum lane_cipher cipher, const uint8_t key[LANE_KEY_BYTES]) {
  *seal = (struct tcp_seal){ .cipher = cipher };
  memcpy(seal->key, key, LANE_KEY_BYTES);
  if (cipher == LANE_AES256GCM && !aes_gcm_start(&seal->aes, direction, key)) {
    hash_wipe(seal, sizeof *seal);
    return false;
  }
  return true;
}

void tcp_seal_end(struct tcp_seal *seal) {
  if (seal->cipher == LANE_AES256GCM) {
    aes_gcm_end(&seal->aes);
  }
  hash_wipe(seal, sizeof *seal);
}

static bool next_key(struct tcp_seal *seal) {
  static const char label[] = "stratus 2 next key";
  uint8_t next[LANE_KEY_BYTES];
  hash_hkdf_expand(seal->key, label, sizeof label, next, sizeof next);
  memcpy(seal->key, next, sizeof next);
  hash_wipe(next, sizeof next);
  seal->records = 0;
  return seal->cipher != LANE_AES256GCM || aes_gcm_rekey(&seal->aes, seal->key);
}

static bool next_nonce(struct tcp_seal *seal, uint8_t nonce[NONCE_BYTES]) {
  if (seal->records == TCP_SEAL_RECORDS_PER_KEY && !next_key(seal)) {
    return false;
  }
  uint8_t number[NONCE_BYTES] = { 0 };
  bytes_put_le64(number + NONCE_BYTES - 8, seal->records++);
  for (int i = 0; i < NONCE_BYTES; i++) {
    nonce[i] = seal->key[KEY_BYTES + i] ^ number[i];
  }
  return true;
}

size_t tcp_seal_close(struct tcp_seal *seal, const void *text, size_t bytes, uint8_t *record) {
  uint8_t nonce[NONCE_BYTES];
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES, *tag = sealed + bytes;
  bytes_put_le32(record, (uint32_t)bytes);
  if (!next_nonce(seal, nonce)) {
    return 0;
  }
  if (seal->cipher == LANE_AES256GCM) {
    if (!aes_gcm_seal(&seal->aes, nonce, record, TCP_SEAL_LENGTH_BYTES, text, bytes, sealed, tag)) {
      return 0;
    }
  } else {
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        sealed, tag, NULL, text, bytes, record, TCP_SEAL_LENGTH_BYTES, NULL, nonce, seal->key);
  }
  return bytes + TCP_SEAL_OVERHEAD_BYTES;
}

size_t tcp_seal_record_bytes(const uint8_t length[TCP_SEAL_LENGTH_BYTES]) {
  uint32_t bytes = bytes_get_le32(length);
  return bytes >= 1 && bytes <= TCP_SEAL_TEXT_BYTES ? bytes + TCP_SEAL_OVERHEAD_BYTES : 0;
}

int tcp_seal_open(struct tcp_seal *seal, uint8_t *record, size_t record_bytes) {
  uint8_t nonce[NONCE_BYTES];
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES;
  size_t bytes = record_bytes - TCP_SEAL_OVERHEAD_BYTES;
  if (!next_nonce(seal, nonce)) {
    return -EBADMSG;
  }
  bool is_right = seal->cipher == LANE_AES256GCM
                      ? aes_gcm_open(&seal->aes, nonce, record, TCP_SEAL_LENGTH_BYTES, sealed,
                                     bytes, sealed, sealed + bytes)
                      : crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                            sealed, NULL, sealed, bytes, sealed + bytes, record,
                            TCP_SEAL_LENGTH_BYTES, nonce, seal->key) == 0;
  return is_right ? 0 : -EBADMSG;
}
