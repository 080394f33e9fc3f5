/* SPDX-License-Identifier: Apache-2.0 */
/* auth: who may join a connection. PURE.
 *
 * Both sides of a lane prove that they know the connection's key, without showing it, over both
 * nonces and everything else that was sent on that lane; so a recorded handshake is of no use.
 *
 *   root            = HKDF-Extract(salt: none, the secret in NCCL's handle)
 *   handle key      = HKDF-Expand(root, "stratus 2 handle")
 *   connection key  = HKDF-Expand(HKDF-Extract(salt: root, digest of the job secret or nothing),
 *                                 "stratus 2 connection", identity of the connection)
 *   digest          = HMAC(key: "stratus 2 job secret", job secret)
 *   dialler's proof = HMAC(each of both keys, "stratus 2 dialling side", hello, challenge, offer)
 *   listener's      = HMAC(connection key, "stratus 2 listening side", hello, challenge, reply)
 *   key of a lane   = HKDF-Expand(connection key, "stratus 2 data of dialling side" or
 *                                 "stratus 2 data of listener", hello, challenge, cipher)
 *
 * All with SHA-256; labels are padded with zeros to 32 bytes. Both nonces are within hello and
 * challenge, so no two proofs are alike, and each epoch of a lane has keys of its own, one per
 * direction: 32 bytes, and 12 that mask the nonces. Tokens for librdmacm are made alike.
 *
 * The handle key separates a peer with another job secret, whose user deserves a clear message,
 * from a stranger. Everything else takes the connection key.
 *
 * Owns: nothing; whoever holds keys wipes them (hash_wipe).  Threads: any.  Blocks: never.  Fails:
 * cannot. */
#ifndef NET_PLUGIN_SETUP_AUTH_H
#define NET_PLUGIN_SETUP_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/setup/handshake.h"

#define AUTH_SECRET_BYTES 16 /* in NCCL's handle */
#define AUTH_KEY_BYTES 32

struct auth_keys {
  uint8_t handle[AUTH_KEY_BYTES], connection[AUTH_KEY_BYTES];
};

/* The handle key alone. */
void auth_handle_key(const uint8_t secret[AUTH_SECRET_BYTES], uint8_t key[AUTH_KEY_BYTES]);
/* job: digest of the job secret, NULL without one. */
void auth_keys_derive(const uint8_t secret[AUTH_SECRET_BYTES], const uint8_t job[AUTH_KEY_BYTES],
                      const uint8_t connection[TOKEN_BYTES], struct auth_keys *keys);

/* What the dialling side answers to the challenge, and with it to proof->offer. */
void auth_prove(const struct auth_keys *keys, const struct transcript *transcript,
                struct proof *proof);

/* Whether this mac of the proof was made with this key. proof->handle is to be asked for first: it
 * takes one hash, and the key only depends on the handle; false: a stranger. proof->connection of
 * who knows the handle: false: it has another job secret. */
bool auth_is_proof(const uint8_t key[AUTH_KEY_BYTES], const struct transcript *transcript,
                   const struct proof *proof, const uint8_t mac[MAC_BYTES]);

/* Finishes the reply, with its mac: by the handle's key for REPLY_OTHER_SECRET, else by the
 * connection's; zero if the status has none. */
void auth_sign_reply(const struct auth_keys *keys, const struct transcript *transcript,
                     struct reply *reply);
/* Of a reply as it came. True for one that needs no mac, too: whoever can forge such a refusal can
 * cut the wire as well. */
bool auth_is_genuine(const struct auth_keys *keys, const struct transcript *transcript,
                     const struct reply *reply);

/* The keys of this epoch of a lane, both directions, for the connecting side or the accepting one.
 */
void auth_lane_keys(const struct auth_keys *keys, const struct transcript *transcript,
                    enum lane_cipher cipher, bool is_dialler, struct lane_crypto *crypto);

/* What both sides show where the transport connects the endpoints of this epoch of a lane. */
void auth_endpoint_tokens(const struct auth_keys *keys, const struct transcript *transcript,
                          struct lane_tokens *tokens);

#endif
