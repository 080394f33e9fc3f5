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
  AT_MESSAGE = 8,
  AT_OFFSET = 16,
  AT_TOTAL = 24,
  AT_PAYLOAD_CRC = 32,
  AT_HEADER_CRC = 36,
};

/* Of a compressed frame, the bits of its offset; above them is the chunk's length. Likewise of a
 * repeat, whose origin is above its offset and its total. */
#define OFFSET_BITS 40
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)
_Static_assert(WIRE_MAX_MESSAGE_BYTES <= OFFSET_MASK + 1 &&
                   WIRE_MAX_CHUNK_BYTES < 1u << (64 - OFFSET_BITS),
               "where a chunk begins, and its length, share 64 bits");

/* What is above the offset (true), above the total (false) of a repeat. */
static uint64_t origin_bits(const struct wire_origin *origin, bool is_offset) {
  uint64_t epoch = origin->epoch % WIRE_ORIGIN_EPOCHS;
  uint64_t of_total = origin->lane | epoch << 6 | (uint64_t)(origin->count >> 24) << 16;
  uint64_t of_offset = origin->count & 0xFFFFFFu;
  return (is_offset ? of_offset : of_total) << OFFSET_BITS;
}

static void origin_take(struct wire_header *header) {
  uint32_t of_offset = (uint32_t)(header->offset >> OFFSET_BITS);
  uint32_t of_total = (uint32_t)(header->total >> OFFSET_BITS);
  header->origin = (struct wire_origin){
    .lane = (uint8_t)(of_total % WIRE_MAX_LANES),
    .epoch = (uint16_t)(of_total >> 6 & (WIRE_ORIGIN_EPOCHS - 1)),
    .count = of_offset | of_total >> 16 << 24,
  };
  header->offset &= OFFSET_MASK;
  header->total &= OFFSET_MASK;
  if (header->total == 0 && header->length > 0) { /* the longest one takes one bit more */
    header->total = WIRE_MAX_MESSAGE_BYTES;
  }
}

void wire_header_encode(const struct wire_header *header, uint8_t bytes[WIRE_HEADER_BYTES]) {
  bytes[AT_MAGIC] = WIRE_MAGIC;
  bytes[AT_TYPE] = header->type;
  bytes_put_le16(bytes + AT_FLAGS, header->flags);
  bool is_coded = (header->flags & WIRE_IS_CODED) != 0;
  bool is_repeat = (header->flags & WIRE_IS_REPEAT) != 0;
  uint64_t above = is_coded    ? (uint64_t)header->length << OFFSET_BITS
                   : is_repeat ? origin_bits(&header->origin, true)
                               : 0;
  uint64_t total = is_repeat ? (header->total & OFFSET_MASK) | origin_bits(&header->origin, false)
                             : header->total;
  bytes_put_le32(bytes + AT_LENGTH, is_coded ? header->coded : header->length);
  bytes_put_le64(bytes + AT_MESSAGE, header->message);
  bytes_put_le64(bytes + AT_OFFSET, header->offset | above);
  bytes_put_le64(bytes + AT_TOTAL, total);
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
         ((header->flags & WIRE_IS_REPEAT) == 0 ||
          (header->flags & (WIRE_IS_CODED | WIRE_IS_PLACED)) == 0) &&
         ((header->flags & WIRE_IS_CODED) == 0 || is_valid_coding(header));
}

/* How long a remote buffer is depends on the link, so the rest of the length is checked there. */
static bool is_valid_window(const struct wire_header *header) {
  if (header->total == 0) {
    return header->length <= WIRE_MAX_LANES * WIRE_ACK_BYTES &&
           header->length % WIRE_ACK_BYTES == 0;
  }
  return header->total <= WIRE_MAX_REMOTE_BUFFERS && header->total <= header->message &&
         header->length <= WIRE_MAX_WINDOW_BYTES;
}

static bool is_valid_lane_epoch(const struct wire_header *header) {
  return header->message < WIRE_MAX_LANES && header->offset >= 1 && header->offset <= UINT32_MAX;
}

static bool is_valid(const struct wire_header *header) {
  bool is_data = header->type == WIRE_DATA;
  bool is_window = header->type == WIRE_WINDOW;
  if (header->length > 0 && !is_data && !is_window && header->type != WIRE_ABORT) {
    return false;
  }
  unsigned of_data =
      WIRE_HAS_CRC | WIRE_WANTS_ACK | WIRE_IS_LL | WIRE_IS_PLACED | WIRE_IS_CODED | WIRE_IS_REPEAT;
  unsigned known = is_data ? of_data : is_window ? WIRE_HAS_CRC : 0;
  if ((header->flags & ~known) != 0) {
    return false;
  }
  if ((header->flags & WIRE_HAS_CRC) == 0 && header->payload_crc != 0) {
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
  case WIRE_FENCE:
    return is_valid_lane_epoch(header) && header->total == 0;
  case WIRE_FENCED:
    return is_valid_lane_epoch(header);
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
    .message = bytes_get_le64(bytes + AT_MESSAGE),
    .offset = bytes_get_le64(bytes + AT_OFFSET),
    .total = bytes_get_le64(bytes + AT_TOTAL),
    .payload_crc = bytes_get_le32(bytes + AT_PAYLOAD_CRC),
  };
  if (header->type == WIRE_DATA && (header->flags & WIRE_IS_CODED) != 0) {
    header->coded = header->length;
    header->length = (uint32_t)(header->offset >> OFFSET_BITS);
    header->offset &= OFFSET_MASK;
  } else if (header->type == WIRE_DATA && (header->flags & WIRE_IS_REPEAT) != 0) {
    origin_take(header);
  }
  return is_valid(header) ? 0 : -EPROTO;
}

void wire_header_place(uint8_t bytes[WIRE_HEADER_BYTES]) {
  bytes_put_le16(bytes + AT_FLAGS, bytes_get_le16(bytes + AT_FLAGS) | WIRE_IS_PLACED);
  bytes_put_le32(bytes + AT_HEADER_CRC, hash_crc32c(0, bytes, AT_HEADER_CRC));
}

#define IMMEDIATE_WANTS_ACK (1u << 31)

bool wire_header_to_immediate(const uint8_t bytes[WIRE_HEADER_BYTES], uint32_t *immediate) {
  uint16_t flags = bytes_get_le16(bytes + AT_FLAGS);
  bool is_whole = bytes_get_le64(bytes + AT_OFFSET) == 0 &&
                  bytes_get_le64(bytes + AT_TOTAL) == bytes_get_le32(bytes + AT_LENGTH);
  if (bytes[AT_TYPE] != WIRE_DATA || (flags & ~WIRE_WANTS_ACK) != 0 || !is_whole) {
    return false;
  }
  *immediate = (uint32_t)bytes_get_le64(bytes + AT_MESSAGE) & ~IMMEDIATE_WANTS_ACK;
  *immediate |= (flags & WIRE_WANTS_ACK) != 0 ? IMMEDIATE_WANTS_ACK : 0;
  return true;
}

int wire_header_from_immediate(uint32_t immediate, uint32_t length, uint64_t near,
                               struct wire_header *header) {
  /* How far it is ahead, 31 bits with a sign. */
  uint32_t ahead = (immediate - (uint32_t)near) & ~IMMEDIATE_WANTS_ACK;
  uint64_t message = near + ahead - ((ahead & IMMEDIATE_WANTS_ACK >> 1) != 0 ? 1ull << 31 : 0);
  *header = (struct wire_header){
    .type = WIRE_DATA,
    .flags = WIRE_IS_PLACED,
    .length = length,
    .message = message,
    .total = length,
  };
  header->flags |= (immediate & IMMEDIATE_WANTS_ACK) != 0 ? WIRE_WANTS_ACK : 0;
  return is_valid(header) ? 0 : -EPROTO;
}

void wire_ack_encode(const struct wire_ack *ack, uint8_t bytes[WIRE_ACK_BYTES]) {
  uint64_t held_us = ack->held_us < WIRE_MAX_HELD_US ? ack->held_us : WIRE_MAX_HELD_US;
  bytes_put_le32(bytes, ack->lane | (uint32_t)held_us << 8);
  bytes_put_le32(bytes + 4, ack->epoch);
  bytes_put_le64(bytes + 8, ack->frames);
}

int wire_ack_decode(const uint8_t bytes[WIRE_ACK_BYTES], struct wire_ack *ack) {
  uint32_t lane_and_held = bytes_get_le32(bytes);
  ack->lane = (uint8_t)lane_and_held;
  ack->held_us = lane_and_held >> 8;
  ack->epoch = bytes_get_le32(bytes + 4);
  ack->frames = bytes_get_le64(bytes + 8);
  return ack->lane < WIRE_MAX_LANES && ack->epoch >= 1 ? 0 : -EPROTO;
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
