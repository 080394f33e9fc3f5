/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed chunks that were cut, changed or made up: all forms say the same of them, and none
 * reads or writes outside of what it was given. */
#include "net_plugin/codec/codec.h"

#include <errno.h>
#include <string.h>

#include "net_plugin/codec/format.h"
#include "tests/lib/guarded.h"
#include "tests/lib/tensors.h"
#include "tests/lib/unit.h"

enum { BYTES = 4096 + 5, MADE_UP = 5000, SAMPLE = 7, HEADER_BYTES = 8 };

static const struct {
  unsigned tensor;
  int width;
} chunks[] = {
  { TENSOR_BF16, 2 },     { TENSOR_F32, 4 },   { TENSOR_BF16_IN_F32, 4 }, { TENSOR_SPARSE_BF16, 2 },
  { TENSOR_ODD_BF16, 2 }, { TENSOR_BYTES, 1 }, { TENSOR_ONE_BYTE, 1 },    { TENSOR_INT32, 4 },
};

static struct guarded coded_room, out_room, other_room;

static int make_rooms(void **state) {
  (void)state;
  coded_room = guarded_make(codec_room(BYTES));
  out_room = guarded_make(BYTES);
  other_room = guarded_make(BYTES);
  return 0;
}

static int free_rooms(void **state) {
  (void)state;
  guarded_free(&coded_room);
  guarded_free(&out_room);
  guarded_free(&other_room);
  return 0;
}

/* What all forms say of it; what they decode is the same if it is right. */
static int decode(const uint8_t *coded, size_t coded_bytes, size_t bytes) {
  uint8_t *moved = guarded_end(&coded_room, coded_bytes), *out = guarded_end(&out_room, bytes);
  uint8_t *other = guarded_end(&other_room, bytes);
  memcpy(moved, coded, coded_bytes);
  int first = codec_decode_by(&codec_portable, moved, coded_bytes, out, bytes);
  assert_true(first == 0 || first == -EBADMSG);
  const struct codec_form *form;
  for (size_t i = 0; (form = codec_form(i)) != &codec_portable; i++) {
    if (form->is_usable()) {
      assert_int_equal(codec_decode_by(form, moved, coded_bytes, other, bytes), first);
      if (first == 0) {
        assert_memory_equal(out, other, bytes);
      }
    }
  }
  return first;
}

static size_t encode(size_t i, uint8_t *coded) {
  static uint8_t chunk[BYTES];
  tensor_fill(chunks[i].tensor, chunk, BYTES);
  struct codec_result result = codec_encode(chunks[i].width, chunk, BYTES, coded);
  assert_true(result.bytes > 0);
  return result.bytes;
}

UNIT_TEST(every_truncation) {
  static uint8_t coded[BYTES + CODEC_SLACK_BYTES];
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    size_t bytes = encode(i, coded);
    for (size_t left = 0; left < bytes; left++) {
      assert_int_equal(decode(coded, left, BYTES), -EBADMSG);
    }
    coded[bytes] = 0;
    assert_int_equal(decode(coded, bytes, BYTES), 0);
    assert_int_equal(decode(coded, bytes + 1, BYTES), -EBADMSG);
    assert_int_equal(decode(coded, bytes, BYTES - 1), -EBADMSG);
    assert_int_equal(decode(coded, bytes, 0), -EBADMSG);
  }
}

/* Payload that is changed may still be a chunk, of other numbers: checksums are the link's. */
UNIT_TEST(each_bit) {
  static uint8_t coded[BYTES + CODEC_SLACK_BYTES];
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    size_t bytes = encode(i, coded);
    for (size_t bit = 0; bit < bytes * 8; bit++) {
      coded[bit / 8] ^= (uint8_t)(1u << bit % 8);
      int status = decode(coded, bytes, BYTES);
      if (bit < (size_t)HEADER_BYTES * 8) {
        assert_int_equal(status, -EBADMSG);
      }
      coded[bit / 8] ^= (uint8_t)(1u << bit % 8);
      bit += unit_has_time() || bit < (size_t)HEADER_BYTES * 8 ? 0 : SAMPLE - 1;
    }
  }
}

/* A right header, of any planes, and noise: lengths that are about right. */
UNIT_TEST(made_up) {
  static uint8_t coded[BYTES + 5000];
  uint32_t random = 1;
  unsigned accepted = 0;
  for (unsigned round = 0; round < MADE_UP; round++) {
    random = random * 1664525u + 1013904223u;
    unsigned width = 1u << (random >> 30) % 3, bits = 1 + (random >> 20) % 5;
    size_t header = HEADER_BYTES + width * 4;
    encode(round % (sizeof chunks / sizeof *chunks), coded);
    coded[1] = (uint8_t)width;
    for (unsigned i = 0; i < width; i++) {
      bool is_plain = (bits + i) % 5 == 0;
      uint8_t *plane = coded + HEADER_BYTES + i * 4;
      plane[0] = (uint8_t)(is_plain ? 8 : (bits + i) % 5);
      plane[1] = is_plain ? 0 : (uint8_t)(random >> 8);
      plane[3] = is_plain ? 0 : random >> 4 & 15;
    }
    coded[header + random % 3000] ^= (uint8_t)(random >> 12);
    size_t bytes = header + (random >> 7) % 5000;
    accepted += decode(coded, bytes < sizeof coded ? bytes : sizeof coded, BYTES) == 0;
  }
  /* Few lengths are right by chance; what is accepted often is in each_bit. */
  assert_in_range(accepted, 1, MADE_UP - 1);
}

UNIT_TEST(headers_are_checked) {
  static uint8_t coded[BYTES + CODEC_SLACK_BYTES];
  static const struct {
    size_t at;
    uint8_t value;
  } wrong[] = {
    { 0, 0 }, { 0, 2 },  { 1, 0 },  { 1, 3 },  { 1, 5 },   { 1, 255 },  { 2, 1 },
    { 3, 1 }, { 4, 0 },  { 7, 1 },  { 8, 0 },  { 8, 5 },   { 8, 7 },    { 8, 9 },
    { 9, 1 }, { 11, 1 }, { 12, 0 }, { 12, 5 }, { 15, 16 }, { 15, 255 },
  };
  size_t bytes = encode(0, coded);
  assert_int_equal(coded[8], 8); /* the lower plane is noise, the upper is compressed */
  assert_true(coded[12] >= 1 && coded[12] <= 4);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    uint8_t before = coded[wrong[i].at];
    coded[wrong[i].at] = wrong[i].value;
    assert_int_equal(decode(coded, bytes, BYTES), -EBADMSG);
    coded[wrong[i].at] = before;
  }
  assert_int_equal(decode(coded, bytes, BYTES), 0);
}

UNIT_MAIN(make_rooms, free_rooms)
