/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. Encoding and decoding walk the same fields in the same order with a cursor. */
#include "net_plugin/setup/handshake.h"

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "common/plain.h"
#include "net_plugin/codec/codec.h"
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

/* A position in a message, for writing or for reading. */
struct cursor {
  uint8_t *at;
  bool is_reading;
};

static void walk(struct cursor *cursor, void *field, size_t bytes) {
  if (cursor->is_reading) {
    memcpy(field, cursor->at, bytes);
  } else {
    memcpy(cursor->at, field, bytes);
  }
  cursor->at += bytes;
}

static void walk_u16(struct cursor *cursor, uint16_t *field) {
  uint16_t wire = htole16(*field);
  walk(cursor, &wire, sizeof wire);
  *field = le16toh(wire);
}

static void walk_u32(struct cursor *cursor, uint32_t *field) {
  uint32_t wire = htole32(*field);
  walk(cursor, &wire, sizeof wire);
  *field = le32toh(wire);
}

static void walk_u64(struct cursor *cursor, uint64_t *field) {
  uint64_t wire = htole64(*field);
  walk(cursor, &wire, sizeof wire);
  *field = le64toh(wire);
}

static void walk_text(struct cursor *cursor, char *text, size_t bytes) {
  walk(cursor, text, bytes);
  if (cursor->is_reading) {
    text[bytes - 1] = '\0';
    plain_text(text); /* it goes into logs */
  }
}

static void walk_prefix(struct cursor *cursor, enum handshake_kind kind, uint16_t *wire_version,
                        char *version) {
  uint32_t magic = kinds[kind].magic;
  uint16_t total = kinds[kind].bytes;
  walk_u32(cursor, &magic);
  walk_u16(cursor, wire_version);
  walk_u16(cursor, &total);
  walk_text(cursor, version, VERSION_TEXT_BYTES);
}

static void walk_decision(struct cursor *cursor, struct decision *decision) {
  walk_u16(cursor, &decision->version);
  walk_u64(cursor, &decision->hash);
  walk_u64(cursor, &decision->profile);
}

static void walk_hello(struct cursor *cursor, struct hello *hello) {
  walk_prefix(cursor, HANDSHAKE_HELLO, &hello->wire_version, hello->version);
  walk(cursor, hello->listener, TOKEN_BYTES);
  walk(cursor, hello->connection, TOKEN_BYTES);
  walk_u16(cursor, &hello->lane);
  walk_u16(cursor, &hello->terms.lanes);
  walk_u32(cursor, &hello->epoch);
  walk_u32(cursor, &hello->terms.chunk_bytes);
  walk_u32(cursor, &hello->terms.eager_bytes);
  walk_u16(cursor, &hello->terms.eager_slots);
  walk(cursor, &hello->dscp, sizeof hello->dscp);
  walk(cursor, &hello->is_first, sizeof hello->is_first);
  walk(cursor, &hello->terms.wants_checksums, sizeof hello->terms.wants_checksums);
  walk(cursor, &hello->terms.remote_keys, sizeof hello->terms.remote_keys);
  walk(cursor, &hello->ciphers, sizeof hello->ciphers);
  walk(cursor, &hello->has_secret, sizeof hello->has_secret);
  walk_u32(cursor, &hello->process);
  walk(cursor, hello->nonce, NONCE_BYTES);
  walk_text(cursor, hello->host, HOST_TEXT_BYTES);
  walk_text(cursor, hello->nic, NIC_TEXT_BYTES);
  walk_decision(cursor, &hello->decision);
  walk_text(cursor, hello->decision.choices, CHOICES_TEXT_BYTES);
  walk(cursor, hello->listens, sizeof hello->listens);
}

static void walk_challenge(struct cursor *cursor, struct challenge *challenge) {
  walk_prefix(cursor, HANDSHAKE_CHALLENGE, &challenge->wire_version, challenge->version);
  walk(cursor, challenge->nonce, NONCE_BYTES);
}

static void walk_proof(struct cursor *cursor, struct proof *proof) {
  walk_prefix(cursor, HANDSHAKE_PROOF, &proof->wire_version, proof->version);
  walk(cursor, proof->handle, MAC_BYTES);
  walk(cursor, proof->connection, MAC_BYTES);
  walk(cursor, proof->offer.bytes, LANE_OFFER_BYTES);
}

static void walk_reply(struct cursor *cursor, struct reply *reply) {
  uint8_t *start = cursor->at;
  walk_prefix(cursor, HANDSHAKE_REPLY, &reply->wire_version, reply->version);
  walk_u16(cursor, &reply->status);
  walk_u16(cursor, &reply->terms.lanes);
  walk_u32(cursor, &reply->terms.eager_bytes);
  walk_u16(cursor, &reply->terms.eager_slots);
  walk_u64(cursor, &reply->received_before);
  walk(cursor, &reply->terms.wants_checksums, sizeof reply->terms.wants_checksums);
  walk(cursor, &reply->cipher, sizeof reply->cipher);
  walk(cursor, &reply->terms.remote_keys, sizeof reply->terms.remote_keys);
  walk(cursor, reply->offer.bytes, LANE_OFFER_BYTES);
  walk_u16(cursor, &reply->connect_port);
  walk(cursor, &reply->has_secret, sizeof reply->has_secret);
  walk_u32(cursor, &reply->process);
  walk_text(cursor, reply->host, HOST_TEXT_BYTES);
  walk_text(cursor, reply->nic, NIC_TEXT_BYTES);
  walk_decision(cursor, &reply->decision);
  walk(cursor, &reply->addresses.count, sizeof reply->addresses.count);
  walk(cursor, reply->addresses.bytes, sizeof reply->addresses.bytes);
  walk(cursor, &reply->terms.codec, sizeof reply->terms.codec);
  walk_text(cursor, reply->decision.choices, CHOICES_TEXT_BYTES);
  cursor->at = start + REPLY_MAC_AT;
  walk(cursor, reply->mac, MAC_BYTES);
}

static void seal(uint8_t *bytes, size_t total) {
  bytes_put_le32(bytes + total - 4, hash_crc32c(0, bytes, total - 4));
}

static bool is_sealed(const uint8_t *bytes, size_t total) {
  return bytes_get_le32(bytes + total - 4) == hash_crc32c(0, bytes, total - 4);
}

void hello_encode(const struct hello *hello, uint8_t bytes[HELLO_BYTES]) {
  struct hello copy = *hello;
  memset(bytes, 0, HELLO_BYTES);
  walk_hello(&(struct cursor){ bytes, false }, &copy);
  seal(bytes, HELLO_BYTES);
}

void challenge_encode(const struct challenge *challenge, uint8_t bytes[CHALLENGE_BYTES]) {
  struct challenge copy = *challenge;
  memset(bytes, 0, CHALLENGE_BYTES);
  walk_challenge(&(struct cursor){ bytes, false }, &copy);
  seal(bytes, CHALLENGE_BYTES);
}

void proof_encode(const struct proof *proof, uint8_t bytes[PROOF_BYTES]) {
  struct proof copy = *proof;
  memset(bytes, 0, PROOF_BYTES);
  walk_proof(&(struct cursor){ bytes, false }, &copy);
  seal(bytes, PROOF_BYTES);
}

void reply_encode(const struct reply *reply, uint8_t bytes[REPLY_BYTES]) {
  struct reply copy = *reply;
  memset(bytes, 0, REPLY_BYTES);
  walk_reply(&(struct cursor){ bytes, false }, &copy);
  seal(bytes, REPLY_BYTES);
}

size_t handshake_bytes(enum handshake_kind kind) {
  return kinds[kind].bytes;
}

int handshake_prefix_check(const uint8_t *bytes, enum handshake_kind *kind, uint16_t *wire_version,
                           char version[VERSION_TEXT_BYTES]) {
  uint32_t magic = bytes_get_le32(bytes);
  unsigned found = 0;
  while (found < HANDSHAKE_KINDS && kinds[found].magic != magic) {
    found++;
  }
  if (found == HANDSHAKE_KINDS) {
    return -EPROTO;
  }
  *kind = (enum handshake_kind)found;
  *wire_version = bytes_get_le16(bytes + 4);
  struct cursor cursor = { (uint8_t *)(uintptr_t)bytes + 8, true };
  walk_text(&cursor, version, VERSION_TEXT_BYTES);
  if (*wire_version != HANDSHAKE_WIRE_VERSION) {
    return -EPROTONOSUPPORT;
  }
  return bytes_get_le16(bytes + 6) == kinds[found].bytes ? 0 : -EPROTO;
}

/* A whole message of this kind, undamaged. */
static int check_whole(const uint8_t *bytes, enum handshake_kind wanted, uint16_t *wire_version,
                       char *version) {
  enum handshake_kind kind;
  int error = handshake_prefix_check(bytes, &kind, wire_version, version);
  if (!error && (kind != wanted || !is_sealed(bytes, kinds[kind].bytes))) {
    error = -EPROTO;
  }
  return error;
}

#define CHUNK_BYTES_MIN 4096 /* bytes: the least that link_config takes */

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *hello) {
  memset(hello, 0, sizeof *hello);
  int error = check_whole(bytes, HANDSHAKE_HELLO, &hello->wire_version, hello->version);
  if (error) {
    return error;
  }
  walk_hello(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, hello);
  struct terms *terms = &hello->terms;
  terms->codec = CODEC_VERSION;
  bool is_valid =
      terms->lanes >= 1 && terms->lanes <= WIRE_MAX_LANES && hello->lane < terms->lanes &&
      hello->epoch >= 1 && terms->chunk_bytes >= CHUNK_BYTES_MIN &&
      terms->chunk_bytes <= WIRE_MAX_CHUNK_BYTES && terms->eager_bytes <= terms->chunk_bytes &&
      terms->eager_slots <= LINK_WINDOW / 2 && hello->dscp >= -1 && hello->dscp <= 63 &&
      hello->is_first <= 1 && hello->has_secret <= 1 && terms->wants_checksums <= 1 &&
      terms->remote_keys <= WIRE_REMOTE_KEYS && (hello->ciphers & (1u << LANE_PLAIN)) == 0 &&
      addresses_are_valid(hello->listens, sizeof hello->listens, hello->listens[0] != 0);
  return is_valid ? 0 : -EINVAL;
}

int challenge_decode(const uint8_t bytes[CHALLENGE_BYTES], struct challenge *challenge) {
  memset(challenge, 0, sizeof *challenge);
  int error = check_whole(bytes, HANDSHAKE_CHALLENGE, &challenge->wire_version, challenge->version);
  if (!error) {
    walk_challenge(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, challenge);
  }
  return error;
}

int proof_decode(const uint8_t bytes[PROOF_BYTES], struct proof *proof) {
  memset(proof, 0, sizeof *proof);
  int error = check_whole(bytes, HANDSHAKE_PROOF, &proof->wire_version, proof->version);
  if (!error) {
    walk_proof(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, proof);
    error = lane_offer_is_valid(&proof->offer) ? 0 : -EINVAL;
  }
  return error;
}

size_t address_bytes(unsigned family) {
  return family == 4 ? ADDRESS_IPV4_BYTES : family == 6 ? ADDRESS_IPV6_BYTES : 0;
}

bool addresses_are_valid(const uint8_t *bytes, size_t room, unsigned count) {
  size_t at = 0;
  if (count > ADDRESSES_MAX) {
    return false;
  }
  for (unsigned i = 0; i < count; i++) {
    size_t taken = at < room ? address_bytes(bytes[at]) : 0;
    if (taken == 0 || taken > room - at) {
      return false;
    }
    at += taken;
  }
  while (at < room && bytes[at] == 0) {
    at++;
  }
  return at == room;
}

static bool is_list_valid(const struct reply *reply) {
  const struct address_list *list = &reply->addresses;
  return (list->count == 0 || reply->status == REPLY_ACCEPTED) &&
         addresses_are_valid(list->bytes, sizeof list->bytes, list->count);
}

int reply_decode(const uint8_t bytes[REPLY_BYTES], struct reply *reply) {
  memset(reply, 0, sizeof *reply);
  int error = check_whole(bytes, HANDSHAKE_REPLY, &reply->wire_version, reply->version);
  if (error) {
    return error;
  }
  walk_reply(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, reply);
  struct terms *terms = &reply->terms;
  terms->chunk_bytes = WIRE_MAX_CHUNK_BYTES;
  bool is_valid =
      reply->status < REPLY_STATUS_END && reply->has_secret <= 1 && terms->wants_checksums <= 1 &&
      reply->cipher < LANE_CIPHERS && terms->remote_keys <= WIRE_REMOTE_KEYS &&
      lane_offer_is_valid(&reply->offer) &&
      (reply->connect_port == 0) == lane_offer_is_none(&reply->offer) && is_list_valid(reply) &&
      (reply->status != REPLY_ACCEPTED ||
       (terms->lanes >= 1 && terms->lanes <= WIRE_MAX_LANES &&
        terms->eager_bytes <= WIRE_MAX_CHUNK_BYTES && terms->eager_slots <= LINK_WINDOW / 2));
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
