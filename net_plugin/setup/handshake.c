/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. */
#include "net_plugin/setup/handshake.h"

#include <errno.h>
#include <string.h>

#include "common/hash.h"
#include "common/plain.h"
#include "common/version.h"
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

size_t handshake_bytes(enum handshake_kind kind) {
  return kinds[kind].bytes;
}

static void end_text(char *text, size_t bytes) {
  text[bytes - 1] = '\0';
  plain_text(text);
}

static void end_texts(union handshake_message *message, enum handshake_kind kind) {
  struct conn_params *params = kind == HANDSHAKE_HELLO   ? &message->hello.params
                               : kind == HANDSHAKE_REPLY ? &message->reply.params
                                                         : NULL;
  end_text(message->prefix.version, sizeof message->prefix.version);
  if (params) {
    end_text(params->host, sizeof params->host);
    end_text(params->nic, sizeof params->nic);
    end_text(params->decision.choices, sizeof params->decision.choices);
  }
}

/* The last bytes of a message. */
static uint8_t *checksum_of(void *message, enum handshake_kind kind) {
  return (uint8_t *)message + kinds[kind].bytes - sizeof(uint32_t);
}

static uint32_t checksum(const void *message, enum handshake_kind kind) {
  return hash_crc32c(0, message, kinds[kind].bytes - sizeof(uint32_t));
}

static bool is_undamaged(union handshake_message *message, enum handshake_kind kind) {
  uint32_t crc;
  memcpy(&crc, checksum_of(message, kind), sizeof crc);
  return crc == checksum(message, kind);
}

void handshake_finish(void *message, enum handshake_kind kind) {
  const struct handshake_prefix prefix = { kinds[kind].magic, HANDSHAKE_WIRE_VERSION,
                                           kinds[kind].bytes, STRATUS_VERSION };
  memcpy(message, &prefix, sizeof prefix);
  end_texts(message, kind);
  uint32_t crc = checksum(message, kind);
  memcpy(checksum_of(message, kind), &crc, sizeof crc);
}

int handshake_prefix_check(struct handshake_prefix *prefix, enum handshake_kind *kind) {
  unsigned found = 0;
  while (found < HANDSHAKE_KINDS && kinds[found].magic != prefix->magic) {
    found++;
  }
  if (found == HANDSHAKE_KINDS) {
    return -EPROTO;
  }
  *kind = (enum handshake_kind)found;
  if (prefix->wire_version != HANDSHAKE_WIRE_VERSION) {
    end_text(prefix->version, sizeof prefix->version);
    return -EPROTONOSUPPORT;
  }
  return prefix->bytes == kinds[found].bytes ? 0 : -EPROTO;
}

#define CHUNK_BYTES_MIN 4096 /* bytes: the least that link_config takes */

static bool are_params_valid(const struct conn_params *params) {
  return params->lanes >= 1 && params->lanes <= WIRE_MAX_LANES &&
         params->chunk_bytes >= CHUNK_BYTES_MIN && params->chunk_bytes <= WIRE_MAX_CHUNK_BYTES &&
         params->eager_bytes <= params->chunk_bytes && params->wants_checksums <= 1 &&
         params->remote_keys <= WIRE_REMOTE_KEYS && (params->ciphers & (1u << LANE_PLAIN)) == 0;
}

static bool is_hello_valid(const struct hello *hello) {
  return are_params_valid(&hello->params) && hello->lane < hello->params.lanes &&
         hello->epoch >= 1 && hello->dscp >= -1 && hello->dscp <= 63 && hello->is_first <= 1 &&
         hello->params.has_secret <= 1;
}

static bool is_reply_valid(const struct reply *reply) {
  unsigned ciphers = reply->params.ciphers;
  return reply->status < REPLY_STATUS_END && reply->params.has_secret <= 1 &&
         reply->offer.key < WIRE_REMOTE_KEYS &&
         (reply->connect_port == 0) == (reply->offer.kind == 0) &&
         (reply->status != REPLY_ACCEPTED ||
          (are_params_valid(&reply->params) && ciphers < 1u << LANE_CIPHERS &&
           (ciphers & (ciphers - 1)) == 0));
}

int handshake_check(union handshake_message *message, enum handshake_kind wanted) {
  enum handshake_kind kind;
  int error = handshake_prefix_check(&message->prefix, &kind);
  if (error || kind != wanted) {
    return error ? error : -EPROTO;
  }
  if (!is_undamaged(message, kind)) {
    return -EPROTO;
  }
  end_texts(message, kind);
  if (!is_undamaged(message, kind)) { /* not as an honest peer makes them */
    return -EPROTO;
  }
  bool is_valid = kind == HANDSHAKE_HELLO   ? is_hello_valid(&message->hello)
                  : kind == HANDSHAKE_PROOF ? message->proof.offer.key < WIRE_REMOTE_KEYS
                  : kind == HANDSHAKE_REPLY ? is_reply_valid(&message->reply)
                                            : true;
  return is_valid ? 0 : -EINVAL;
}

static uint32_t lesser(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

struct conn_params params_agreed(const struct conn_params *ours, const struct conn_params *theirs) {
  unsigned ciphers = ours->ciphers & theirs->ciphers;
  struct conn_params agreed = *ours;
  agreed.lanes = (uint16_t)lesser(ours->lanes, theirs->lanes);
  agreed.chunk_bytes = lesser(ours->chunk_bytes, theirs->chunk_bytes);
  agreed.eager_bytes = lesser(ours->eager_bytes, theirs->eager_bytes);
  agreed.wants_checksums = ours->wants_checksums || theirs->wants_checksums;
  agreed.remote_keys = (uint8_t)lesser(ours->remote_keys, theirs->remote_keys);
  agreed.ciphers = (uint8_t)(ciphers & -ciphers);
  agreed.codec = agreed.remote_keys == 0 && ours->codec == theirs->codec ? ours->codec : 0;
  return agreed;
}

enum lane_cipher params_cipher(const struct conn_params *agreed) {
  return agreed->ciphers ? (enum lane_cipher)__builtin_ctz(agreed->ciphers) : LANE_PLAIN;
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
