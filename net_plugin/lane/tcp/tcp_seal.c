/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_seal.h. */
#include "net_plugin/lane/tcp/tcp_seal.h"

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"

#define KEY_BYTES AEAD_KEY_BYTES
#define NONCE_BYTES AEAD_NONCE_BYTES
_Static_assert(KEY_BYTES + NONCE_BYTES == LANE_KEY_BYTES && AEAD_TAG_BYTES == TCP_SEAL_TAG_BYTES,
               "as the ciphers have them");

bool tcp_seal_start(struct tcp_seal *seal, enum aead_direction direction, enum lane_cipher cipher,
                    const uint8_t key[LANE_KEY_BYTES]) {
  *seal = (struct tcp_seal){ 0 };
  memcpy(seal->key, key, LANE_KEY_BYTES);
  if (!aead_start(&seal->aead, direction, cipher, key)) {
    hash_wipe(seal, sizeof *seal);
    return false;
  }
  return true;
}

void tcp_seal_end(struct tcp_seal *seal) {
  aead_end(&seal->aead);
  hash_wipe(seal, sizeof *seal);
}

static bool next_key(struct tcp_seal *seal) {
  static const char label[] = "stratus 2 next key";
  uint8_t next[LANE_KEY_BYTES];
  hash_hkdf_expand(seal->key, label, sizeof label, next, sizeof next);
  memcpy(seal->key, next, sizeof next);
  hash_wipe(next, sizeof next);
  seal->records = 0;
  return aead_rekey(&seal->aead, seal->key);
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
  bool is_sealed =
      next_nonce(seal, nonce) &&
      aead_seal(&seal->aead, nonce, record, TCP_SEAL_LENGTH_BYTES, text, bytes, sealed, tag);
  return is_sealed ? bytes + TCP_SEAL_OVERHEAD_BYTES : 0;
}

size_t tcp_seal_record_bytes(const uint8_t length[TCP_SEAL_LENGTH_BYTES]) {
  uint32_t bytes = bytes_get_le32(length);
  return bytes >= 1 && bytes <= TCP_SEAL_TEXT_BYTES ? bytes + TCP_SEAL_OVERHEAD_BYTES : 0;
}

int tcp_seal_open(struct tcp_seal *seal, uint8_t *record, size_t record_bytes) {
  uint8_t nonce[NONCE_BYTES];
  uint8_t *sealed = record + TCP_SEAL_LENGTH_BYTES;
  size_t bytes = record_bytes - TCP_SEAL_OVERHEAD_BYTES;
  bool is_right =
      next_nonce(seal, nonce) && aead_open(&seal->aead, nonce, record, TCP_SEAL_LENGTH_BYTES,
                                           sealed, bytes, sealed, sealed + bytes);
  return is_right ? 0 : -EBADMSG;
}
