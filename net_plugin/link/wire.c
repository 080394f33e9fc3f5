/* SPDX-License-Identifier: Apache-2.0 */
/* wire: frame headers to bytes and back. Whatever passes wire_header_decode is within the limits of
 * its type; what remains to check (is it in the window?) needs the link's state. */
#include "net_plugin/link/wire.h"

#include <errno.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "net_plugin/codec/codec.h"

enum {
  AT_MAGIC = 0,
  AT_TYPE = 1,
  AT_FLAGS = 2,
  AT_LENGTH = 4,
  AT_NUMBER = 8,
  AT_MESSAGE = 16,
  AT_OFFSET = 24,
  AT_TOTAL = 32,
  AT_PAYLOAD_CRC = 40,
  AT_HEADER_CRC = 44,
};

/* Of a compressed frame, the bits of its offset; above them is the chunk's length. */
#define OFFSET_BITS 40
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)
_Static_assert(WIRE_MAX_MESSAGE_BYTES <= OFFSET_MASK + 1 &&
                   WIRE_MAX_CHUNK_BYTES < 1u << (64 - OFFSET_BITS),
               "where a chunk begins, and its length, share 64 bits");

void wire_header_encode(const struct wire_header *header, uint8_t bytes[WIRE_HEADER_BYTES]) {
  bytes[AT_MAGIC] = WIRE_MAGIC;
  bytes[AT_TYPE] = header->type;
  bytes_put_le16(bytes + AT_FLAGS, header->flags);
  bool is_coded = (header->flags & WIRE_IS_CODED) != 0;
  uint64_t above = is_coded ? (uint64_t)header->length << OFFSET_BITS : 0;
  bytes_put_le32(bytes + AT_LENGTH, is_coded ? header->coded : header->length);
  bytes_put_le64(bytes + AT_NUMBER, header->number);
  bytes_put_le64(bytes + AT_MESSAGE, header->message);
  bytes_put_le64(bytes + AT_OFFSET, header->offset | above);
  bytes_put_le64(bytes + AT_TOTAL, header->total);
  bytes_put_le32(bytes + AT_PAYLOAD_CRC, header->payload_crc);
  bytes_put_le32(bytes + AT_HEADER_CRC, hash_crc32c(0, bytes, AT_HEADER_CRC));
}

/* What is compressed is shorter than it was, and neither polled nor placed. */
static bool is_valid_coding(const struct wire_header *header) {
  uint32_t crc = wire_coded_crc_bytes(header->flags);
  return header->length >= CODEC_MIN_BYTES && header->coded > crc &&
         header->coded - crc <= codec_max_coded_bytes(header->length) &&
         (header->flags & (WIRE_IS_LL | WIRE_IS_PLACED)) == 0;
}

/* A zero-byte message is the only DATA frame without payload. */
static bool is_valid_data(const struct wire_header *header) {
  return header->total <= WIRE_MAX_MESSAGE_BYTES && header->length <= WIRE_MAX_CHUNK_BYTES &&
         header->offset <= header->total && header->length <= header->total - header->offset &&
         (header->length > 0) == (header->total > 0) &&
         ((header->flags & WIRE_IS_LL) == 0 || header->length <= WIRE_MAX_LL_BYTES) &&
         ((header->flags & WIRE_IS_PLACED) == 0 ||
          (header->length > 0 && (header->flags & WIRE_IS_LL) == 0)) &&
         ((header->flags & WIRE_IS_CODED) == 0 || is_valid_coding(header));
}

/* How long a remote buffer is depends on the link, so the rest of the length is checked there. */
static bool is_valid_window(const struct wire_header *header) {
  return header->length >= WIRE_MIN_LANDED_BYTES && header->length <= WIRE_MAX_WINDOW_BYTES &&
         header->total <= WIRE_MAX_REMOTE_BUFFERS && header->total <= header->message;
}

static bool is_valid(const struct wire_header *header) {
  bool is_data = header->type == WIRE_DATA;
  bool is_window = header->type == WIRE_WINDOW;
  if (header->length > 0 && !is_data && !is_window && header->type != WIRE_ABORT) {
    return false;
  }
  unsigned of_data = WIRE_HAS_CRC | WIRE_WANTS_ACK | WIRE_IS_LL | WIRE_IS_PLACED | WIRE_IS_CODED;
  unsigned known = is_data ? of_data : is_window ? WIRE_HAS_CRC : 0;
  if ((header->flags & ~known) != 0) {
    return false;
  }
  if ((header->flags & WIRE_HAS_CRC) == 0 && header->payload_crc != 0) {
    return false;
  }
  if (header->number != 0 && !is_data && !is_window) {
    return false;
  }
  switch (header->type) {
  case WIRE_DATA:
    return is_valid_data(header);
  case WIRE_REQUEST:
  case WIRE_PING:
  case WIRE_PONG:
    return header->offset == 0 && header->total == 0;
  case WIRE_WINDOW:
    return is_valid_window(header);
  case WIRE_CLOSED:
    return header->message < WIRE_MAX_LANES && header->offset >= 1 &&
           header->offset <= UINT32_MAX && header->total == 0;
  case WIRE_BYE:
    return header->message == 0 && header->total == 0;
  case WIRE_ABORT:
    return header->message == 0 && header->total == 0 && header->offset >= 1 &&
           header->offset <= WIRE_MAX_ERRNO && header->length <= WIRE_MAX_REASON_BYTES;
  default:
    return false;
  }
}

int wire_header_decode(const uint8_t bytes[WIRE_HEADER_BYTES], struct wire_header *header) {
  if (bytes[AT_MAGIC] != WIRE_MAGIC ||
      bytes_get_le32(bytes + AT_HEADER_CRC) != hash_crc32c(0, bytes, AT_HEADER_CRC)) {
    return -EPROTO;
  }
  *header = (struct wire_header){
    .type = bytes[AT_TYPE],
    .flags = bytes_get_le16(bytes + AT_FLAGS),
    .length = bytes_get_le32(bytes + AT_LENGTH),
    .number = bytes_get_le64(bytes + AT_NUMBER),
    .message = bytes_get_le64(bytes + AT_MESSAGE),
    .offset = bytes_get_le64(bytes + AT_OFFSET),
    .total = bytes_get_le64(bytes + AT_TOTAL),
    .payload_crc = bytes_get_le32(bytes + AT_PAYLOAD_CRC),
  };
  if (header->type == WIRE_DATA && (header->flags & WIRE_IS_CODED) != 0) {
    header->coded = header->length;
    header->length = (uint32_t)(header->offset >> OFFSET_BITS);
    header->offset &= OFFSET_MASK;
  }
  return is_valid(header) ? 0 : -EPROTO;
}

void wire_header_place(uint8_t bytes[WIRE_HEADER_BYTES]) {
  bytes_put_le16(bytes + AT_FLAGS, bytes_get_le16(bytes + AT_FLAGS) | WIRE_IS_PLACED);
  bytes_put_le32(bytes + AT_HEADER_CRC, hash_crc32c(0, bytes, AT_HEADER_CRC));
}

/* Of the 32 bits. */
#define IMMEDIATE_WANTS_ACK (1u << 31)
#define IMMEDIATE_MESSAGE_BITS 15
#define IMMEDIATE_NUMBER_BITS 16
_Static_assert(2 * WIRE_MAX_FLIGHT < 1 << IMMEDIATE_NUMBER_BITS, "which chunk it is");

bool wire_header_to_immediate(const uint8_t bytes[WIRE_HEADER_BYTES], uint32_t *immediate) {
  uint16_t flags = bytes_get_le16(bytes + AT_FLAGS);
  bool is_whole = bytes_get_le64(bytes + AT_OFFSET) == 0 &&
                  bytes_get_le64(bytes + AT_TOTAL) == bytes_get_le32(bytes + AT_LENGTH);
  if (bytes[AT_TYPE] != WIRE_DATA || (flags & ~WIRE_WANTS_ACK) != 0 || !is_whole) {
    return false;
  }
  *immediate = bytes_get_le16(bytes + AT_NUMBER);
  *immediate |= (uint32_t)bytes_get_le16(bytes + AT_MESSAGE) << IMMEDIATE_NUMBER_BITS;
  *immediate &= ~IMMEDIATE_WANTS_ACK;
  *immediate |= (flags & WIRE_WANTS_ACK) != 0 ? IMMEDIATE_WANTS_ACK : 0;
  return true;
}

/* The count whose low bits these are, half of their range from `near` at most. */
static uint64_t made_whole(uint64_t low, unsigned bits, uint64_t near) {
  uint64_t range = UINT64_C(1) << bits, ahead = (low - near) & (range - 1);
  return near + ahead - (ahead >= range / 2 ? range : 0);
}

int wire_header_from_immediate(uint32_t immediate, uint32_t length, struct wire_near near,
                               struct wire_header *header) {
  *header = (struct wire_header){
    .type = WIRE_DATA,
    .flags = WIRE_IS_PLACED,
    .length = length,
    .number = made_whole(immediate, IMMEDIATE_NUMBER_BITS, near.number),
    .message = made_whole(immediate >> IMMEDIATE_NUMBER_BITS, IMMEDIATE_MESSAGE_BITS, near.message),
    .total = length,
  };
  header->flags |= (immediate & IMMEDIATE_WANTS_ACK) != 0 ? WIRE_WANTS_ACK : 0;
  return is_valid(header) ? 0 : -EPROTO;
}

uint32_t wire_landed_encode(const struct wire_landed *landed, uint8_t *bytes) {
  uint8_t *at = bytes + WIRE_MIN_LANDED_BYTES;
  bytes_put_le32(bytes, (uint32_t)__builtin_popcountll(landed->lanes));
  bytes_put_le32(bytes + 4, landed->words);
  for (uint64_t lanes = landed->lanes; lanes != 0; lanes &= lanes - 1) {
    unsigned lane = (unsigned)__builtin_ctzll(lanes);
    uint64_t held_us = landed->held_us[lane];
    held_us = held_us < WIRE_MAX_HELD_US ? held_us : WIRE_MAX_HELD_US;
    bytes_put_le32(at, lane | (uint32_t)held_us << 8);
    at += 4;
  }
  for (unsigned i = 0; i < landed->words; i++) {
    bytes_put_le64(at, landed->bits[i]);
    at += 8;
  }
  return (uint32_t)(at - bytes);
}

int wire_landed_decode(const uint8_t *bytes, uint32_t length, struct wire_landed *landed) {
  uint32_t lanes = length >= WIRE_MIN_LANDED_BYTES ? bytes_get_le32(bytes) : UINT32_MAX;
  landed->words = length >= WIRE_MIN_LANDED_BYTES ? bytes_get_le32(bytes + 4) : 0;
  landed->lanes = 0;
  if (lanes > WIRE_MAX_LANES || landed->words > WIRE_LANDED_WORDS ||
      length != WIRE_MIN_LANDED_BYTES + 4 * lanes + 8 * landed->words) {
    return -EPROTO;
  }
  const uint8_t *at = bytes + WIRE_MIN_LANDED_BYTES;
  for (; lanes > 0; lanes--, at += 4) {
    uint32_t lane_and_held = bytes_get_le32(at), lane = lane_and_held & 0xFF;
    if (lane >= WIRE_MAX_LANES) {
      return -EPROTO;
    }
    landed->lanes |= UINT64_C(1) << lane;
    landed->held_us[lane] = lane_and_held >> 8;
  }
  for (unsigned i = 0; i < landed->words; i++, at += 8) {
    landed->bits[i] = bytes_get_le64(at);
  }
  return 0;
}

void wire_remote_buffer_encode(const struct wire_remote_buffer *remote_buffer, unsigned keys,
                               uint8_t *bytes) {
  bytes_put_le64(bytes, remote_buffer->address);
  bytes_put_le64(bytes + 8, remote_buffer->bytes);
  for (unsigned i = 0; i < keys; i++) {
    bytes_put_le32(bytes + 16 + 4 * i, remote_buffer->keys[i]);
  }
}

void wire_remote_buffer_decode(const uint8_t *bytes, unsigned keys,
                               struct wire_remote_buffer *remote_buffer) {
  *remote_buffer = (struct wire_remote_buffer){
    .address = bytes_get_le64(bytes),
    .bytes = bytes_get_le64(bytes + 8),
  };
  for (unsigned i = 0; i < keys; i++) {
    remote_buffer->keys[i] = bytes_get_le32(bytes + 16 + 4 * i);
  }
}
