/* SPDX-License-Identifier: Apache-2.0 */
/* auth: who knows the keys is believed, over exactly what was said, and nobody else. */
#include "net_plugin/setup/auth.h"

#include <string.h>

#include "tests/lib/unit.h"

struct talk {
  struct auth_keys keys;
  struct transcript transcript;
};

static const uint8_t secret[AUTH_SECRET_BYTES] = { 1 }, other_secret[AUTH_SECRET_BYTES] = { 2 };
static const uint8_t job[AUTH_KEY_BYTES] = { 3 }, other_job[AUTH_KEY_BYTES] = { 4 };
static const uint8_t id[TOKEN_BYTES] = { 5 }, other_id[TOKEN_BYTES] = { 6 };

static struct talk sample(void) {
  struct talk talk;
  auth_keys_derive(secret, job, id, &talk.keys);
  memset(&talk.transcript.hello, 0x11, HELLO_BYTES);
  memset(&talk.transcript.challenge, 0x22, CHALLENGE_BYTES);
  return talk;
}

enum verdict { STRANGER, OTHER_SECRET, KNOWN };

/* As the listening side asks. */
static enum verdict judge_proof(const struct auth_keys *keys, const struct talk *talk,
                                const struct proof *proof) {
  if (!auth_is_proof(keys->handle, &talk->transcript, proof, proof->handle)) {
    return STRANGER;
  }
  bool is_known = auth_is_proof(keys->connection, &talk->transcript, proof, proof->connection);
  return is_known ? KNOWN : OTHER_SECRET;
}

static enum verdict judge(const struct auth_keys *listener, const struct auth_keys *dialler) {
  struct talk talk = sample();
  struct proof proof = { 0 };
  auth_prove(dialler, &talk.transcript, &proof);
  return judge_proof(listener, &talk, &proof);
}

UNIT_TEST(only_equal_keys_are_known) {
  struct auth_keys keys, other;
  auth_keys_derive(secret, job, id, &keys);
  assert_int_equal(judge(&keys, &keys), KNOWN);
  auth_keys_derive(secret, other_job, id, &other);
  assert_int_equal(judge(&keys, &other), OTHER_SECRET);
  auth_keys_derive(secret, NULL, id, &other);
  assert_int_equal(judge(&keys, &other), OTHER_SECRET);
  assert_int_equal(judge(&other, &keys), OTHER_SECRET);
  auth_keys_derive(secret, job, other_id, &other);
  assert_int_equal(judge(&keys, &other), OTHER_SECRET);
  auth_keys_derive(other_secret, job, id, &other);
  assert_int_equal(judge(&keys, &other), STRANGER);
  memset(&other, 0, sizeof other);
  assert_int_equal(judge(&keys, &other), STRANGER);
}

/* Without a job secret is not the same as with one of zeros. */
UNIT_TEST(no_secret_is_no_value) {
  static const uint8_t zeros[AUTH_KEY_BYTES];
  struct auth_keys with, without;
  auth_keys_derive(secret, zeros, id, &with);
  auth_keys_derive(secret, NULL, id, &without);
  assert_memory_not_equal(with.connection, without.connection, AUTH_KEY_BYTES);
  assert_memory_equal(with.handle, without.handle, AUTH_KEY_BYTES);
  assert_memory_not_equal(with.handle, with.connection, AUTH_KEY_BYTES);
}

UNIT_TEST(a_proof_holds_for_its_own_words_only) {
  struct talk talk = sample();
  struct proof proof = { .offer = { 1, 4 } };
  auth_prove(&talk.keys, &talk.transcript, &proof);
  proof.offer.kind++;
  assert_int_equal(judge_proof(&talk.keys, &talk, &proof), STRANGER);
  proof.offer.kind--;
  for (size_t i = 0; i < TRANSCRIPT_BYTES; i++) {
    ((uint8_t *)&talk.transcript)[i] ^= 1;
    assert_int_equal(judge_proof(&talk.keys, &talk, &proof), STRANGER);
    ((uint8_t *)&talk.transcript)[i] ^= 1;
  }
  for (size_t i = 0; i < MAC_BYTES; i++) {
    proof.connection[i] ^= 1;
    assert_int_equal(judge_proof(&talk.keys, &talk, &proof), OTHER_SECRET);
    proof.connection[i] ^= 1;
  }
  assert_int_equal(judge_proof(&talk.keys, &talk, &proof), KNOWN);
}

static bool is_genuine(const struct talk *talk, const struct auth_keys *keys, size_t flip) {
  struct reply reply = { .status = REPLY_ACCEPTED, .params.lanes = 4 };
  auth_sign_reply(&talk->keys, &talk->transcript, &reply);
  if (flip < REPLY_MAC_AT * 8) {
    ((uint8_t *)&reply)[flip / 8] ^= (uint8_t)(1u << flip % 8);
  }
  return auth_is_genuine(keys, &talk->transcript, &reply);
}

UNIT_TEST(a_reply_is_genuine_as_it_is_only) {
  struct talk talk = sample();
  struct auth_keys other;
  auth_keys_derive(secret, other_job, id, &other);
  assert_true(is_genuine(&talk, &talk.keys, SIZE_MAX));
  assert_false(is_genuine(&talk, &other, SIZE_MAX));
  for (size_t bit = 0; bit < REPLY_MAC_AT * 8; bit++) {
    if (bit / 2 == offsetof(struct reply, status) * 8 / 2) {
      continue; /* what has such a status needs no mac */
    }
    assert_false(is_genuine(&talk, &talk.keys, bit));
  }
}

/* The dialling side's own proof, sent back to it, is no reply. */
UNIT_TEST(proofs_have_a_direction) {
  struct talk talk = sample();
  struct proof proof = { 0 };
  struct reply reply = { .params.lanes = 1 };
  auth_prove(&talk.keys, &talk.transcript, &proof);
  memcpy(reply.mac, proof.connection, MAC_BYTES);
  handshake_finish(&reply, HANDSHAKE_REPLY);
  assert_false(auth_is_genuine(&talk.keys, &talk.transcript, &reply));
}

/* Both sides have the same two keys, crosswise; each lane, cipher and connection its own. */
UNIT_TEST(lanes_have_keys_of_their_own) {
  struct talk talk = sample();
  struct lane_crypto dialler, listener, other;
  auth_lane_keys(&talk.keys, &talk.transcript, LANE_AES256GCM, true, &dialler);
  auth_lane_keys(&talk.keys, &talk.transcript, LANE_AES256GCM, false, &listener);
  assert_memory_equal(dialler.send, listener.receive, LANE_KEY_BYTES);
  assert_memory_equal(dialler.receive, listener.send, LANE_KEY_BYTES);
  assert_memory_not_equal(dialler.send, dialler.receive, LANE_KEY_BYTES);
  auth_lane_keys(&talk.keys, &talk.transcript, LANE_CHACHA20POLY1305, true, &other);
  assert_memory_not_equal(dialler.send, other.send, LANE_KEY_BYTES);
  talk.transcript.challenge.nonce[NONCE_BYTES - 1] ^= 1;
  auth_lane_keys(&talk.keys, &talk.transcript, LANE_AES256GCM, true, &other);
  assert_memory_not_equal(dialler.send, other.send, LANE_KEY_BYTES);
  talk = sample();
  talk.keys.connection[0] ^= 1;
  auth_lane_keys(&talk.keys, &talk.transcript, LANE_AES256GCM, true, &other);
  assert_memory_not_equal(dialler.send, other.send, LANE_KEY_BYTES);
}
