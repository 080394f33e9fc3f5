/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. Encoding and decoding walk the same fields in the same order with a cursor. */
#include "net_plugin/setup/handshake.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/link/link.h"

#define HELLO_MAGIC 0x48525453u /* "STRH" */
#define REPLY_MAGIC 0x41525453u /* "STRA" */

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
    for (char *c = text; *c; c++) {
      *c = *c >= ' ' && *c <= '~' ? *c : '?'; /* it goes into logs */
    }
  }
}

static void walk_prefix(struct cursor *cursor, uint32_t magic, uint16_t total,
                        uint16_t *wire_version, char *version) {
  walk_u32(cursor, &magic);
  walk_u16(cursor, wire_version);
  walk_u16(cursor, &total);
  walk_text(cursor, version, VERSION_TEXT_BYTES);
}

static void walk_hello(struct cursor *cursor, struct hello *hello) {
  walk_prefix(cursor, HELLO_MAGIC, HELLO_BYTES, &hello->wire_version, hello->version);
  walk(cursor, hello->listener, TOKEN_BYTES);
  walk(cursor, hello->connection, TOKEN_BYTES);
  walk_u16(cursor, &hello->lane);
  walk_u16(cursor, &hello->lanes);
  walk_u32(cursor, &hello->epoch);
  walk_u32(cursor, &hello->chunk_bytes);
  walk_u32(cursor, &hello->eager_bytes);
  walk_u16(cursor, &hello->eager_slots);
  walk(cursor, &hello->dscp, sizeof hello->dscp);
  walk(cursor, &hello->is_first, sizeof hello->is_first);
  walk_u32(cursor, &hello->pid);
  walk_text(cursor, hello->host, HOST_TEXT_BYTES);
  walk_text(cursor, hello->nic, NIC_TEXT_BYTES);
}

static void walk_reply(struct cursor *cursor, struct reply *reply) {
  walk_prefix(cursor, REPLY_MAGIC, REPLY_BYTES, &reply->wire_version, reply->version);
  walk_u16(cursor, &reply->status);
  walk_u16(cursor, &reply->lanes);
  walk_u32(cursor, &reply->eager_bytes);
  walk_u16(cursor, &reply->eager_slots);
  walk_u64(cursor, &reply->received_before);
  walk_u32(cursor, &reply->pid);
  walk_text(cursor, reply->host, HOST_TEXT_BYTES);
  walk_text(cursor, reply->nic, NIC_TEXT_BYTES);
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

void reply_encode(const struct reply *reply, uint8_t bytes[REPLY_BYTES]) {
  struct reply copy = *reply;
  memset(bytes, 0, REPLY_BYTES);
  walk_reply(&(struct cursor){ bytes, false }, &copy);
  seal(bytes, REPLY_BYTES);
}

int handshake_prefix_check(const uint8_t *bytes, uint16_t *wire_version,
                           char version[VERSION_TEXT_BYTES]) {
  uint32_t magic = bytes_get_le32(bytes);
  if (magic != HELLO_MAGIC && magic != REPLY_MAGIC) {
    return -EPROTO;
  }
  *wire_version = bytes_get_le16(bytes + 4);
  struct cursor cursor = { (uint8_t *)(uintptr_t)bytes + 8, true };
  walk_text(&cursor, version, VERSION_TEXT_BYTES);
  if (*wire_version != HANDSHAKE_WIRE_VERSION) {
    return -EPROTONOSUPPORT;
  }
  return bytes_get_le16(bytes + 6) == (magic == HELLO_MAGIC ? HELLO_BYTES : REPLY_BYTES) ? 0
                                                                                         : -EPROTO;
}

int hello_decode(const uint8_t bytes[HELLO_BYTES], struct hello *hello) {
  memset(hello, 0, sizeof *hello);
  int error = handshake_prefix_check(bytes, &hello->wire_version, hello->version);
  if (error) {
    return error;
  }
  if (bytes_get_le32(bytes) != HELLO_MAGIC || !is_sealed(bytes, HELLO_BYTES)) {
    return -EPROTO;
  }
  walk_hello(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, hello);
  bool is_valid =
      hello->lanes >= 1 && hello->lanes <= WIRE_MAX_LANES && hello->lane < hello->lanes &&
      hello->epoch >= 1 && hello->chunk_bytes >= 1 && hello->chunk_bytes <= WIRE_MAX_CHUNK_BYTES &&
      hello->eager_bytes <= hello->chunk_bytes && hello->eager_slots <= LINK_WINDOW / 2 &&
      hello->dscp >= -1 && hello->dscp <= 63 && hello->is_first <= 1;
  return is_valid ? 0 : -EINVAL;
}

int reply_decode(const uint8_t bytes[REPLY_BYTES], struct reply *reply) {
  memset(reply, 0, sizeof *reply);
  int error = handshake_prefix_check(bytes, &reply->wire_version, reply->version);
  if (error) {
    return error;
  }
  if (bytes_get_le32(bytes) != REPLY_MAGIC || !is_sealed(bytes, REPLY_BYTES)) {
    return -EPROTO;
  }
  walk_reply(&(struct cursor){ (uint8_t *)(uintptr_t)bytes, true }, reply);
  bool is_valid =
      reply->status < REPLY_STATUS_END &&
      (reply->status != REPLY_ACCEPTED ||
       (reply->lanes >= 1 && reply->lanes <= WIRE_MAX_LANES &&
        reply->eager_bytes <= WIRE_MAX_CHUNK_BYTES && reply->eager_slots <= LINK_WINDOW / 2));
  return is_valid ? 0 : -EINVAL;
}

const char *reply_status_text(unsigned status) {
  static const char *const texts[REPLY_STATUS_END] = {
    [REPLY_ACCEPTED] = "accepted",
    [REPLY_OTHER_VERSION] = "it runs another, incompatible stratus version",
    [REPLY_UNKNOWN] = "it knows no such listener or connection (any more)",
    [REPLY_REFUSED] = "the flow does not fit the connection",
    [REPLY_NO_RESOURCES] = "it is out of memory or descriptors",
  };
  return status < REPLY_STATUS_END ? texts[status] : "unknown status";
}
