/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_seal: what was sealed opens once, in order, undamaged; nothing else does. */
#include "net_plugin/lane/tcp/tcp_seal.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"

static const uint8_t key[LANE_KEY_BYTES] = { 1, 2, 3 };
static uint8_t text[TCP_SEAL_TEXT_BYTES], record[TCP_SEAL_RECORD_BYTES],
    copy[TCP_SEAL_RECORD_BYTES];

static const enum lane_cipher aes = LANE_AES256GCM, chacha = LANE_CHACHA20POLY1305;
static enum lane_cipher cipher;

static int take_cipher(void **state) {
  cipher = *(const enum lane_cipher *)*state;
  return 0;
}

#define CIPHER_TEST(name) UNIT_TEST_EACH(name, take_cipher, NULL, &aes, &chacha)

CIPHER_TEST(what_was_sealed_opens) {
  static const size_t sizes[] = { 1, 15, 16, 17, 40, 4136, TCP_SEAL_TEXT_BYTES };
  struct tcp_seal out, in;
  tcp_seal_start(&out, TCP_SEAL_CLOSES, cipher, key);
  tcp_seal_start(&in, TCP_SEAL_OPENS, cipher, key);
  for (size_t i = 0; i < sizeof text; i++) {
    text[i] = (uint8_t)(i * 7 + i / 256);
  }
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    size_t bytes = sizes[i / 2];
    const uint8_t *from = text;
    if (i % 2) { /* in place */
      memcpy(record + TCP_SEAL_LENGTH_BYTES, text, bytes);
      from = record + TCP_SEAL_LENGTH_BYTES;
    }
    size_t sealed = tcp_seal_close(&out, from, bytes, record);
    assert_int_equal(sealed, bytes + TCP_SEAL_OVERHEAD_BYTES);
    assert_int_equal(tcp_seal_record_bytes(record), sealed);
    if (bytes > 8) {
      assert_memory_not_equal(record + TCP_SEAL_LENGTH_BYTES, text, bytes);
    }
    assert_int_equal(tcp_seal_open(&in, record, sealed), 0);
    assert_memory_equal(record + TCP_SEAL_LENGTH_BYTES, text, bytes);
  }
  tcp_seal_end(&out);
  tcp_seal_end(&in);
  static const uint8_t zeros[sizeof out.key];
  assert_memory_equal(out.key, zeros, sizeof zeros);
}

static int open_with(const uint8_t *with_key, const uint8_t *sealed, size_t bytes) {
  struct tcp_seal in;
  tcp_seal_start(&in, TCP_SEAL_OPENS, cipher, with_key);
  memcpy(copy, sealed, bytes);
  int error = tcp_seal_open(&in, copy, bytes);
  tcp_seal_end(&in);
  return error;
}

CIPHER_TEST(a_changed_bit_or_end_does_not_open) {
  struct tcp_seal out;
  tcp_seal_start(&out, TCP_SEAL_CLOSES, cipher, key);
  size_t bytes = tcp_seal_close(&out, text, 100, record);
  assert_int_equal(open_with(key, record, bytes), 0);
  for (size_t bit = 0; bit < bytes * 8; bit++) {
    record[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_int_equal(open_with(key, record, bytes), -EBADMSG);
    record[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  for (size_t shorter = TCP_SEAL_OVERHEAD_BYTES; shorter < bytes; shorter++) {
    assert_int_equal(open_with(key, record, shorter), -EBADMSG);
  }
  tcp_seal_end(&out);
}

CIPHER_TEST(repeated_and_moved_records_do_not_open) {
  static uint8_t records[3][200];
  struct tcp_seal out, in;
  tcp_seal_start(&out, TCP_SEAL_CLOSES, cipher, key);
  size_t bytes = 0;
  for (int i = 0; i < 3; i++) {
    bytes = tcp_seal_close(&out, text, 100, records[i]);
  }
  /* Which record is opened after the first one was. */
  for (int second = 0; second < 3; second++) {
    tcp_seal_start(&in, TCP_SEAL_OPENS, cipher, key);
    memcpy(copy, records[0], bytes);
    assert_int_equal(tcp_seal_open(&in, copy, bytes), 0);
    memcpy(copy, records[second], bytes);
    assert_int_equal(tcp_seal_open(&in, copy, bytes), second == 1 ? 0 : -EBADMSG);
    tcp_seal_end(&in);
  }
  tcp_seal_end(&out);
  assert_int_equal(open_with(key, records[1], bytes), -EBADMSG);
  /* The other direction, or another lane. */
  uint8_t other[LANE_KEY_BYTES];
  for (size_t i = 0; i < LANE_KEY_BYTES; i++) {
    memcpy(other, key, sizeof other);
    other[i] ^= 1;
    assert_int_equal(open_with(other, records[0], bytes), -EBADMSG);
  }
}

CIPHER_TEST(keys_change_on_both_sides_at_once) {
  struct tcp_seal out, in;
  uint8_t first_key[LANE_KEY_BYTES];
  tcp_seal_start(&out, TCP_SEAL_CLOSES, cipher, key);
  tcp_seal_start(&in, TCP_SEAL_OPENS, cipher, key);
  memcpy(first_key, out.key, sizeof first_key);
  for (unsigned i = 0; i < TCP_SEAL_RECORDS_PER_KEY + 5; i++) {
    size_t bytes = tcp_seal_close(&out, text, 8, record);
    if (tcp_seal_open(&in, record, bytes) != 0) {
      fail_msg("record %u does not open", i);
    }
  }
  assert_memory_not_equal(out.key, first_key, sizeof first_key);
  assert_memory_equal(out.key, in.key, sizeof in.key);
  tcp_seal_end(&out);
  tcp_seal_end(&in);
}

UNIT_TEST(lengths_out_of_range_are_no_records) {
  uint8_t length[4] = { 0, 0, 0, 0 };
  assert_int_equal(tcp_seal_record_bytes(length), 0);
  length[1] = 0x80;
  assert_int_equal(tcp_seal_record_bytes(length), TCP_SEAL_RECORD_BYTES);
  length[0] = 1;
  assert_int_equal(tcp_seal_record_bytes(length), 0);
  memset(length, 0xff, 4);
  assert_int_equal(tcp_seal_record_bytes(length), 0);
}
