/* SPDX-License-Identifier: Apache-2.0 */
/* Every frame type there and back, every bit of a header flipped, every field beyond its limit. */
#include "net_plugin/link/wire.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"

static const struct wire_header samples[] = {
  { WIRE_DATA, WIRE_HAS_CRC, 4096, 7, 8192, 1 << 20, 0x12345678, 0, 0 },
  { WIRE_DATA, 0, 0, UINT64_MAX, 0, 0, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_LL | WIRE_WANTS_ACK, WIRE_MAX_LL_BYTES, 0, 0, 1 << 20, 0, 0, 0 },
  { WIRE_DATA, 0, WIRE_MAX_CHUNK_BYTES, 1, WIRE_MAX_MESSAGE_BYTES - WIRE_MAX_CHUNK_BYTES,
    WIRE_MAX_MESSAGE_BYTES, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_CODED, 131072, 7, 8192, 1 << 20, 0, 100000, 0 },
  { WIRE_DATA, WIRE_IS_CODED | WIRE_HAS_CRC | WIRE_WANTS_ACK, 4096, 7, 0, 4096, 1, 5, 0 },
  { WIRE_DATA, WIRE_IS_CODED, WIRE_MAX_CHUNK_BYTES, 1,
    WIRE_MAX_MESSAGE_BYTES - WIRE_MAX_CHUNK_BYTES, WIRE_MAX_MESSAGE_BYTES, 0, 1, 0 },
  { WIRE_REQUEST, 0, 0, 99, 0, 0, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_CODED, 4096, 7, 0, 4096, 0, 5, UINT64_MAX },
  { WIRE_WINDOW, 0, WIRE_MIN_LANDED_BYTES, 3, 2, 0, 0, 0, 1ull << 40 },
  { WIRE_WINDOW, WIRE_HAS_CRC, WIRE_MAX_LANDED_BYTES, 3, 2, 0, 1, 0, 0 },
  { WIRE_CLOSED, 0, 0, 63, UINT32_MAX, 0, 0, 0, 0 },
  { WIRE_CLOSED, 0, 0, 0, 1, 0, 0, 0, 0 },
  { WIRE_BYE, 0, 0, 0, 17, 0, 0, 0, 0 },
  { WIRE_PING, 0, 0, 42, 0, 0, 0, 0, 0 },
  { WIRE_PONG, 0, 0, 42, 0, 0, 0, 0, 0 },
  { WIRE_ABORT, 0, 0, 0, WIRE_MAX_ERRNO, 0, 0, 0, 0 },
};

static const struct wire_header beyond_limits[] = {
  { 0, 0, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_TYPE_END, 0, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_DATA, 32, 1, 0, 0, 1, 0, 0, 0 },
  { WIRE_PING, 0, 0, 0, 0, 0, 0, 0, 1 },
  { WIRE_CLOSED, 0, 0, 0, 1, 0, 0, 0, 1 },
  { WIRE_DATA, WIRE_IS_PLACED, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_PLACED | WIRE_IS_LL, 1, 0, 0, 1, 0, 0, 0 },
  { WIRE_WINDOW, WIRE_IS_PLACED, 8, 0, 0, 0, 0, 0, 0 },
  { WIRE_WINDOW, 0, 24, 100, 0, WIRE_MAX_REMOTE_BUFFERS + 1, 0, 0, 0 },
  { WIRE_WINDOW, 0, 48, 1, 0, 2, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_LL, WIRE_MAX_LL_BYTES + 1, 0, 0, 1 << 20, 0, 0, 0 },
  { WIRE_DATA, 0, 1, 0, 0, 1, 5, 0, 0 },
  { WIRE_DATA, 0, 0, 0, 0, 1, 0, 0, 0 },
  { WIRE_DATA, 0, 2, 0, 0, 1, 0, 0, 0 },
  { WIRE_DATA, 0, 1, 0, 1, 1, 0, 0, 0 },
  { WIRE_DATA, 0, 1, 0, UINT64_MAX, 1, 0, 0, 0 },
  { WIRE_DATA, 0, WIRE_MAX_CHUNK_BYTES + 1, 0, 0, 1ull << 30, 0, 0, 0 },
  { WIRE_DATA, 0, 1, 0, 0, WIRE_MAX_MESSAGE_BYTES + 1, 0, 0, 0 },
  /* compressed: too short, no bytes, none but the checksum, too many, a chunk beyond its message,
   * LL, placed, not DATA */
  { WIRE_DATA, WIRE_IS_CODED, 4095, 0, 0, 1 << 20, 0, 100, 0 },
  { WIRE_DATA, WIRE_IS_CODED, 4096, 0, 0, 1 << 20, 0, 0, 0 },
  { WIRE_DATA, WIRE_IS_CODED | WIRE_HAS_CRC, 4096, 0, 0, 1 << 20, 9, 4, 0 },
  { WIRE_DATA, WIRE_IS_CODED, 4096, 0, 0, 1 << 20, 0, 3721, 0 },
  { WIRE_DATA, WIRE_IS_CODED, 8192, 0, 4096, 8192, 0, 100, 0 },
  { WIRE_DATA, WIRE_IS_CODED, WIRE_MAX_CHUNK_BYTES + 1, 0, 0, 1 << 30, 0, 100, 0 },
  { WIRE_DATA, WIRE_IS_CODED | WIRE_IS_LL, 4096, 0, 0, 1 << 20, 0, 100, 0 },
  { WIRE_DATA, WIRE_IS_CODED | WIRE_IS_PLACED, 4096, 0, 0, 1 << 20, 0, 100, 0 },
  { WIRE_WINDOW, WIRE_IS_CODED, 8, 0, 0, 0, 0, 0, 0 },
  { WIRE_REQUEST, 0, 0, 0, 1, 0, 0, 0, 0 },
  { WIRE_WINDOW, WIRE_WANTS_ACK, 8, 0, 0, 0, 0, 0, 0 },
  { WIRE_WINDOW, WIRE_IS_LL, 8, 0, 0, 0, 0, 0, 0 },
  { WIRE_REQUEST, WIRE_HAS_CRC, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_REQUEST, 0, 16, 0, 0, 0, 0, 0, 0 },
  { WIRE_WINDOW, 0, WIRE_MIN_LANDED_BYTES - 1, 0, 0, 0, 0, 0, 0 },
  { WIRE_WINDOW, 0, WIRE_MAX_WINDOW_BYTES + 1, 0, 0, 0, 0, 0, 0 },
  { WIRE_WINDOW, 0, WIRE_MIN_LANDED_BYTES, 0, 0, 1, 0, 0, 0 },
  { WIRE_CLOSED, 0, 0, 64, 1, 0, 0, 0, 0 },
  { WIRE_CLOSED, 0, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_CLOSED, 0, 0, 0, 1ull << 32, 0, 0, 0, 0 },
  { WIRE_CLOSED, 0, 0, 0, 1, 1, 0, 0, 0 },
  { WIRE_BYE, 0, 0, 1, 0, 0, 0, 0, 0 },
  { WIRE_BYE, 0, 0, 0, 0, 1, 0, 0, 0 },
  { WIRE_PING, 0, 0, 0, 0, 1, 0, 0, 0 },
  { WIRE_PING, 0, 1, 0, 0, 0, 0, 0, 0 },
  { WIRE_PING, WIRE_HAS_CRC, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_PONG, 0, 1, 0, 0, 0, 0, 0, 0 },
  { WIRE_ABORT, 0, 0, 0, 0, 0, 0, 0, 0 },
  { WIRE_ABORT, 0, 0, 0, WIRE_MAX_ERRNO + 1, 0, 0, 0, 0 },
  { WIRE_ABORT, 0, 0, 1, 1, 0, 0, 0, 0 },
};

UNIT_TEST(headers_come_back) {
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    uint8_t bytes[WIRE_HEADER_BYTES];
    struct wire_header back;
    wire_header_encode(&samples[i], bytes);
    assert_int_equal(wire_header_decode(bytes, &back), 0);
    assert_int_equal(back.type, samples[i].type);
    assert_int_equal(back.flags, samples[i].flags);
    assert_int_equal(back.length, samples[i].length);
    assert_true(back.message == samples[i].message);
    assert_true(back.number == samples[i].number);
    assert_true(back.offset == samples[i].offset);
    assert_true(back.total == samples[i].total);
    assert_int_equal(back.payload_crc, samples[i].payload_crc);
    assert_int_equal(back.coded, samples[i].coded);
  }
}

UNIT_TEST(bytes_are_where_the_protocol_says) {
  uint8_t bytes[WIRE_HEADER_BYTES];
  struct wire_header header = { WIRE_DATA, 1, 0x01020304,        0x0506, 0, 0x0A0B0C0D,
                                0xF0,      0, 0x1122334455667788 };
  wire_header_encode(&header, bytes);
  static const uint8_t begin[] = { 0xA7, 1, 1, 0, 4, 3, 2, 1, 0x88, 0x77, 0x66, 0x55 };
  assert_memory_equal(bytes, begin, sizeof begin);
  assert_int_equal(bytes[16], 0x06);
  assert_int_equal(bytes[32], 0x0D);
  assert_int_equal(bytes[40], 0xF0);
}

UNIT_TEST(a_flipped_bit_is_seen) {
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    for (unsigned bit = 0; bit < 8 * WIRE_HEADER_BYTES; bit++) {
      uint8_t bytes[WIRE_HEADER_BYTES];
      struct wire_header back;
      wire_header_encode(&samples[i], bytes);
      bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
      assert_int_equal(wire_header_decode(bytes, &back), -EPROTO);
    }
  }
}

UNIT_TEST(limits_are_kept) {
  for (size_t i = 0; i < sizeof beyond_limits / sizeof *beyond_limits; i++) {
    uint8_t bytes[WIRE_HEADER_BYTES];
    struct wire_header back;
    wire_header_encode(&beyond_limits[i], bytes);
    if (wire_header_decode(bytes, &back) != -EPROTO) {
      fail_msg("header %zu passes", i);
    }
  }
}

UNIT_TEST(what_has_landed_comes_back) {
  struct wire_landed landed = { .lanes = 1ull << 63 | 2, .words = 2, .bits = { 6, UINT64_MAX } },
                     back;
  uint8_t bytes[WIRE_MAX_LANDED_BYTES];
  landed.held_us[1] = 7;
  landed.held_us[63] = WIRE_MAX_HELD_US + 1;
  uint32_t length = wire_landed_encode(&landed, bytes);
  assert_int_equal(length, WIRE_MIN_LANDED_BYTES + 2 * 4 + 2 * 8);
  assert_int_equal(wire_landed_decode(bytes, length, &back), 0);
  assert_true(back.lanes == landed.lanes && back.words == 2);
  assert_int_equal(back.held_us[1], 7);
  assert_int_equal(back.held_us[63], WIRE_MAX_HELD_US);
  assert_memory_equal(back.bits, landed.bits, 2 * sizeof *back.bits);
  for (uint32_t other = 0; other <= WIRE_MAX_LANDED_BYTES; other++) {
    assert_int_equal(wire_landed_decode(bytes, other, &back), other == length ? 0 : -EPROTO);
  }
  bytes[WIRE_MIN_LANDED_BYTES] = 64; /* a lane */
  assert_int_equal(wire_landed_decode(bytes, length, &back), -EPROTO);
  landed.lanes = UINT64_MAX;
  landed.words = WIRE_LANDED_WORDS;
  assert_int_equal(wire_landed_encode(&landed, bytes), WIRE_MAX_LANDED_BYTES);
  assert_int_equal(wire_landed_decode(bytes, WIRE_MAX_LANDED_BYTES, &back), 0);
  bytes[4]++; /* words */
  assert_int_equal(wire_landed_decode(bytes, WIRE_MAX_LANDED_BYTES, &back), -EPROTO);
}

UNIT_TEST(targets_come_back) {
  struct wire_remote_buffer remote_buffer = { 0x1122334455667788, 99, { 1, 2, 0xFFFFFFFF } }, back;
  uint8_t bytes[WIRE_MAX_REMOTE_BUFFER_BYTES];
  wire_remote_buffer_encode(&remote_buffer, 3, bytes);
  wire_remote_buffer_decode(bytes, 3, &back);
  assert_memory_equal(&back, &remote_buffer, sizeof back);
  assert_int_equal(bytes[0], 0x88);
  assert_int_equal(bytes[20], 2);
  wire_remote_buffer_decode(bytes, 1, &back);
  assert_int_equal(back.keys[1], 0);
}

/* What comes back from 32 bits, seen by somebody whose oldest live message is `near`, and whose
 * oldest chunk as much ahead of it as the message's. */
static void expect_immediate(uint64_t message, uint64_t near, uint16_t flags) {
  uint64_t behind = message / 3;
  struct wire_header header = { WIRE_DATA, flags, 8192, message, 0, 8192, 0, 0, message - behind };
  struct wire_header back;
  struct wire_near both = { .message = near, .number = near - behind };
  uint8_t bytes[WIRE_HEADER_BYTES], made_up[WIRE_HEADER_BYTES];
  uint32_t immediate;
  wire_header_encode(&header, bytes);
  assert_true(wire_header_to_immediate(bytes, &immediate));
  assert_int_equal(wire_header_from_immediate(immediate, 8192, both, &back), 0);
  assert_int_equal(wire_stream_bytes(&header), 8192);
  assert_int_equal(wire_stream_bytes(&back), 0); /* it is placed: nothing is behind it */
  wire_header_encode(&back, made_up);
  wire_header_place(bytes);
  assert_memory_equal(made_up, bytes, sizeof(bytes));
}

UNIT_TEST(a_whole_placed_message_fits_into_32_bits) {
  const uint64_t numbers[] = {
    0, 1, 63, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40
  };
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    expect_immediate(numbers[i], numbers[i], 0);
    expect_immediate(numbers[i] + 63, numbers[i], WIRE_WANTS_ACK);
    expect_immediate(numbers[i], numbers[i] + 63, WIRE_WANTS_ACK); /* late */
  }
}

UNIT_TEST(a_length_that_no_frame_has_is_refused) {
  struct wire_header header;
  struct wire_near near = { 0, 0 };
  assert_int_equal(wire_header_from_immediate(7, WIRE_MAX_CHUNK_BYTES, near, &header), 0);
  assert_int_equal(wire_header_from_immediate(7, WIRE_MAX_CHUNK_BYTES + 1, near, &header), -EPROTO);
  assert_int_equal(wire_header_from_immediate(7, 0, near, &header), -EPROTO);
}

UNIT_TEST(what_says_more_does_not) {
  const struct wire_header others[] = {
    { WIRE_DATA, WIRE_HAS_CRC, 8192, 1, 0, 8192, 5, 0, 0 },
    { WIRE_DATA, WIRE_IS_LL, 8192, 1, 0, 8192, 0, 0, 0 },
    { WIRE_DATA, 0, 4096, 1, 0, 8192, 0, 0, 0 },
    { WIRE_DATA, 0, 4096, 1, 4096, 8192, 0, 0, 0 },
    { WIRE_PING, 0, 0, 1, 0, 0, 0, 0, 0 },
  };
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
    uint8_t bytes[WIRE_HEADER_BYTES];
    uint32_t immediate;
    wire_header_encode(&others[i], bytes);
    assert_false(wire_header_to_immediate(bytes, &immediate));
  }
}
