/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. */
#include "net_plugin/setup/handshake.h"

#include <errno.h>
#include <string.h>

#include "common/hash.h"
#include "common/plain.h"
#include "common/version.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/link/link.h"

static const struct {
  uint32_t magic;
  uint16_t bytes;
} kinds[HANDSHAKE_KINDS] = {
  [HANDSHAKE_HELLO] = { 0x48525453u, HELLO_BYTES },         /* "STRH" */
  [HANDSHAKE_CHALLENGE] = { 0x43525453u, CHALLENGE_BYTES }, /* "STRC" */
  [HANDSHAKE_PROOF] = { 0x50525453u, PROOF_BYTES },         /* "STRP" */
  [HANDSHAKE_REPLY] = { 0x41525453u, REPLY_BYTES },         /* "STRA" */
};

static uint32_t checksum(const uint8_t *bytes, enum handshake_kind kind) {
  return hash_crc32c(0, bytes, kinds[kind].bytes - sizeof(uint32_t));
}

static void encode(const void *message, enum handshake_kind kind, uint8_t *bytes) {
  size_t total = kinds[kind].bytes;
  const struct handshake_prefix prefix = { kinds[kind].magic, HANDSHAKE_WIRE_VERSION,
                                           kinds[kind].bytes, STRATUS_VERSION };
  memcpy(bytes, message, total);
  memcpy(bytes, &prefix, sizeof prefix);
  uint32_t crc = checksum(bytes, kind);
  memcpy(bytes + total - sizeof crc, &crc, sizeof crc);
}

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES]) {
  encode(hello, HANDSHAKE_HELLO, bytes);
}

void challenge_encode(const struct challenge *challenge, uint8_t bytes[CHALLENGE_BYTES]) {
  encode(challenge, HANDSHAKE_CHALLENGE, bytes);
}

void proof_encode(const struct proof *proof, uint8_t bytes[PROOF_BYTES]) {
  encode(proof, HANDSHAKE_PROOF, bytes);
}

void reply_encode(const struct reply *reply, uint8_t bytes[REPLY_BYTES]) {
  encode(reply, HANDSHAKE_REPLY, bytes);
}

size_t handshake_bytes(enum handshake_kind kind) {
  return kinds[kind].bytes;
}

/* It goes into logs. */
static void end_text(char *text, size_t bytes) {
  text[bytes - 1] = '\0';
  plain_text(text);
}

int handshake_prefix_check(const uint8_t *bytes, enum handshake_kind *kind,
                           struct handshake_prefix *prefix) {
  unsigned found = 0;
  memcpy(prefix, bytes, sizeof *prefix);
  end_text(prefix->version, sizeof prefix->version);
  while (found < HANDSHAKE_KINDS && kinds[found].magic != prefix->magic) {
    found++;
  }
  if (found == HANDSHAKE_KINDS) {
    return -EPROTO;
  }
  *kind = (enum handshake_kind)found;
  if (prefix->wire_version != HANDSHAKE_WIRE_VERSION) {
    return -EPROTONOSUPPORT;
  }
  return prefix->bytes == kinds[found].bytes ? 0 : -EPROTO;
}

/* A whole message of this kind, undamaged. Each begins with its prefix. */
static int decode(const uint8_t *bytes, enum handshake_kind wanted, void *message) {
  enum handshake_kind kind;
  struct handshake_prefix prefix;
  size_t total = kinds[wanted].bytes;
  memset(message, 0, total);
  int error = handshake_prefix_check(bytes, &kind, &prefix);
  memcpy(message, &prefix, sizeof prefix);
  if (error || kind != wanted) {
    return error ? error : -EPROTO;
  }
  uint32_t crc;
  memcpy(&crc, bytes + total - sizeof crc, sizeof crc);
  memcpy((uint8_t *)message + sizeof prefix, bytes + sizeof prefix, total - sizeof prefix);
  return crc == checksum(bytes, kind) ? 0 : -EPROTO;
}

#define CHUNK_BYTES_MIN 4096 /* bytes: the least that link_config takes */

/* Their texts may go into logs, whatever else is wrong. */
static void end_texts(struct conn_params *params) {
  end_text(params->host, sizeof params->host);
  end_text(params->nic, sizeof params->nic);
  end_text(params->decision.choices, sizeof params->decision.choices);
}

static bool are_params_valid(const struct conn_params *params) {
  return params->lanes >= 1 && params->lanes <= WIRE_MAX_LANES &&
         params->chunk_bytes >= CHUNK_BYTES_MIN && params->chunk_bytes <= WIRE_MAX_CHUNK_BYTES &&
         params->eager_bytes <= params->chunk_bytes && params->wants_checksums <= 1 &&
         params->remote_keys <= WIRE_REMOTE_KEYS && (params->ciphers & (1u << LANE_PLAIN)) == 0;
}

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *hello) {
  int error = decode(bytes, HANDSHAKE_HELLO, hello);
  if (error) {
    return error;
  }
  end_texts(&hello->params);
  bool is_valid = are_params_valid(&hello->params) && hello->lane < hello->params.lanes &&
                  hello->epoch >= 1 && hello->dscp >= -1 && hello->dscp <= 63 &&
                  hello->is_first <= 1 && hello->params.has_secret <= 1;
  return is_valid ? 0 : -EINVAL;
}

int challenge_decode(const uint8_t bytes[CHALLENGE_BYTES], struct challenge *challenge) {
  return decode(bytes, HANDSHAKE_CHALLENGE, challenge);
}

int proof_decode(const uint8_t bytes[PROOF_BYTES], struct proof *proof) {
  int error = decode(bytes, HANDSHAKE_PROOF, proof);
  return error || lane_offer_is_valid(&proof->offer) ? error : -EINVAL;
}

int reply_decode(const uint8_t bytes[REPLY_BYTES], struct reply *reply) {
  int error = decode(bytes, HANDSHAKE_REPLY, reply);
  if (error) {
    return error;
  }
  end_texts(&reply->params);
  unsigned ciphers = reply->params.ciphers;
  bool is_valid = reply->status < REPLY_STATUS_END && reply->params.has_secret <= 1 &&
                  lane_offer_is_valid(&reply->offer) &&
                  (reply->connect_port == 0) == lane_offer_is_none(&reply->offer) &&
                  (reply->status != REPLY_ACCEPTED ||
                   (are_params_valid(&reply->params) && ciphers < 1u << LANE_CIPHERS &&
                    (ciphers & (ciphers - 1)) == 0));
  return is_valid ? 0 : -EINVAL;
}

bool reply_has_mac(unsigned status) {
  return status != REPLY_OTHER_VERSION && status != REPLY_UNKNOWN;
}

const char *reply_status_text(unsigned status) {
  static const char *const texts[REPLY_STATUS_END] = {
    [REPLY_ACCEPTED] = "accepted",
    [REPLY_OTHER_VERSION] = "it runs another, incompatible stratus version",
    [REPLY_UNKNOWN] = "it knows no such listener or connection (any more)",
    [REPLY_REFUSED] = "the flow does not fit the connection",
    [REPLY_NO_RESOURCES] = "it is out of memory or descriptors",
    [REPLY_OTHER_ENCRYPTION] = "STRATUS_ENCRYPT differs: one of the hosts has it on",
    [REPLY_OTHER_SECRET] = "it has another job secret",
    [REPLY_OTHER_DECISIONS] = "its profile differs, or variables of NCCL do",
  };
  return status < REPLY_STATUS_END ? texts[status] : "unknown status";
}
