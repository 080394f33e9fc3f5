/* SPDX-License-Identifier: Apache-2.0 */
/* See auth.h. A label at the beginning of every hashed text keeps the purposes of a key apart; all
 * parts have fixed sizes, so that no two texts of the same purpose are equal. */
#include "net_plugin/setup/auth.h"

#include <string.h>

#include "common/hash.h"

_Static_assert(AUTH_KEY_BYTES == HASH_SHA256_BYTES && MAC_BYTES == HASH_SHA256_BYTES,
               "keys and proofs are SHA-256 digests");

#define LABEL_BYTES 32

struct label {
  char text[LABEL_BYTES];
};

static const struct label for_handle = { "stratus 2 handle" },
                          for_connection = { "stratus 2 connection" },
                          by_dialler = { "stratus 2 dialling side" },
                          by_listener = { "stratus 2 listening side" },
                          from_dialler = { "stratus 2 data of dialling side" },
                          from_listener = { "stratus 2 data of listener" },
                          for_request = { "stratus 2 librdmacm request" },
                          for_answer = { "stratus 2 librdmacm answer" };

/* From the first secret alone: all that it takes to tell a stranger. */
static void derive_handle(const uint8_t secret[AUTH_SECRET_BYTES], uint8_t root[AUTH_KEY_BYTES],
                          uint8_t key[AUTH_KEY_BYTES]) {
  hash_hkdf_extract("", 0, secret, AUTH_SECRET_BYTES, root);
  hash_hkdf_expand(root, for_handle.text, LABEL_BYTES, key, AUTH_KEY_BYTES);
}

void auth_handle_key(const uint8_t secret[AUTH_SECRET_BYTES], uint8_t key[AUTH_KEY_BYTES]) {
  uint8_t root[AUTH_KEY_BYTES];
  derive_handle(secret, root, key);
  hash_wipe(root, sizeof root);
}

void auth_keys_derive(const uint8_t secret[AUTH_SECRET_BYTES], const uint8_t job[AUTH_KEY_BYTES],
                      const uint8_t connection[TOKEN_BYTES], struct auth_keys *keys) {
  uint8_t root[AUTH_KEY_BYTES], info[LABEL_BYTES + TOKEN_BYTES];
  derive_handle(secret, root, keys->handle);
  hash_hkdf_extract(root, sizeof root, job, job ? AUTH_KEY_BYTES : 0, root);
  memcpy(info, for_connection.text, LABEL_BYTES);
  memcpy(info + LABEL_BYTES, connection, TOKEN_BYTES);
  hash_hkdf_expand(root, info, sizeof info, keys->connection, AUTH_KEY_BYTES);
  hash_wipe(root, sizeof root);
}

/* The proof of `who` over what was sent so far, and what it sends now. */
static void prove(const uint8_t key[AUTH_KEY_BYTES], const struct label *who,
                  const struct transcript *transcript, const void *now, size_t now_bytes,
                  uint8_t mac[MAC_BYTES]) {
  uint8_t text[LABEL_BYTES + TRANSCRIPT_BYTES + REPLY_MAC_AT];
  size_t bytes = LABEL_BYTES + TRANSCRIPT_BYTES;
  memcpy(text, who->text, LABEL_BYTES);
  memcpy(text + LABEL_BYTES, transcript, TRANSCRIPT_BYTES);
  memcpy(text + bytes, now, now_bytes);
  hash_hmac_sha256(key, AUTH_KEY_BYTES, text, bytes + now_bytes, mac);
}

void auth_prove(const struct auth_keys *keys, const struct transcript *transcript,
                struct proof *proof) {
  const struct lane_offer *offer = &proof->offer;
  prove(keys->handle, &by_dialler, transcript, offer, sizeof *offer, proof->handle);
  prove(keys->connection, &by_dialler, transcript, offer, sizeof *offer, proof->connection);
}

bool auth_is_proof(const uint8_t key[AUTH_KEY_BYTES], const struct transcript *transcript,
                   const struct proof *proof, const uint8_t mac[MAC_BYTES]) {
  uint8_t right[MAC_BYTES];
  prove(key, &by_dialler, transcript, &proof->offer, sizeof proof->offer, right);
  return hash_is_equal(right, mac, MAC_BYTES);
}

static void reply_mac(const struct auth_keys *keys, const struct transcript *transcript,
                      const struct reply *reply, uint8_t mac[MAC_BYTES]) {
  const uint8_t *key = reply->status == REPLY_OTHER_SECRET ? keys->handle : keys->connection;
  prove(key, &by_listener, transcript, reply, REPLY_MAC_AT, mac);
}

void auth_sign_reply(const struct auth_keys *keys, const struct transcript *transcript,
                     struct reply *reply) {
  memset(reply->mac, 0, MAC_BYTES);
  handshake_finish(reply, HANDSHAKE_REPLY);
  if (reply_has_mac(reply->status)) {
    reply_mac(keys, transcript, reply, reply->mac);
    handshake_finish(reply, HANDSHAKE_REPLY); /* its checksum is of the mac, too */
  }
}

bool auth_is_genuine(const struct auth_keys *keys, const struct transcript *transcript,
                     const struct reply *reply) {
  uint8_t mac[MAC_BYTES];
  if (!reply_has_mac(reply->status)) {
    return true;
  }
  reply_mac(keys, transcript, reply, mac);
  return hash_is_equal(mac, reply->mac, MAC_BYTES);
}

/* Both nonces are in hello and challenge: no two epochs of a lane share a key. */
static void lane_key(const struct auth_keys *keys, const struct label *purpose,
                     const struct transcript *transcript, enum lane_cipher cipher, uint8_t *key,
                     size_t key_bytes) {
  uint8_t info[LABEL_BYTES + TRANSCRIPT_BYTES + 1];
  memcpy(info, purpose->text, LABEL_BYTES);
  memcpy(info + LABEL_BYTES, transcript, TRANSCRIPT_BYTES);
  info[sizeof info - 1] = (uint8_t)cipher;
  hash_hkdf_expand(keys->connection, info, sizeof info, key, key_bytes);
}

void auth_lane_keys(const struct auth_keys *keys, const struct transcript *transcript,
                    enum lane_cipher cipher, bool is_dialler, struct lane_crypto *crypto) {
  crypto->cipher = cipher;
  lane_key(keys, &from_dialler, transcript, cipher, is_dialler ? crypto->send : crypto->receive,
           LANE_KEY_BYTES);
  lane_key(keys, &from_listener, transcript, cipher, is_dialler ? crypto->receive : crypto->send,
           LANE_KEY_BYTES);
}

void auth_endpoint_tokens(const struct auth_keys *keys, const struct transcript *transcript,
                          struct lane_tokens *tokens) {
  lane_key(keys, &for_request, transcript, LANE_PLAIN, tokens->request, LANE_TOKEN_BYTES);
  lane_key(keys, &for_answer, transcript, LANE_PLAIN, tokens->answer, LANE_TOKEN_BYTES);
}
