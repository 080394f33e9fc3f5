/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks there and back, by every form: whatever they hold, of any length, at any alignment, and
 * the same compressed bytes from all forms. And compressed chunks that were cut or changed. */
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/guarded.h"
#include "tests/lib/tensors.h"
#include "tests/lib/unit.h"

enum { MIB = 1 << 20, BEFORE = 64 };

static const int widths[] = { CODEC_GUESS, 1, 2, 4 };

/* Chunk, compressed chunk and decoded chunk, each with a guard right behind it. */
static struct { struct guarded chunk, coded, out, reference; } buffers;

static int make_buffers(void **state) {
  buffers.chunk = guarded_make(MIB + 64);
  buffers.coded = guarded_make(codec_room(MIB) + 64);
  buffers.out = guarded_make(MIB + BEFORE);
  buffers.reference = guarded_make(codec_room(MIB) + 64);
  return 0;
}

static int free_buffers(void **state) {
  guarded_free(&buffers.chunk);
  guarded_free(&buffers.coded);
  guarded_free(&buffers.out);
  guarded_free(&buffers.reference);
  return 0;
}

static const struct codec_form *usable(size_t i) {
  const struct codec_form *form = codec_form(i);
  return form && form->is_usable() ? form : NULL;
}

static size_t forms(void) {
  size_t count = 0;
  while (codec_form(count)) {
    count++;
  }
  return count;
}

/* Codes the chunk, decodes it where neither may read or write a byte too many, and compares. */
static size_t round_trip(const struct codec_form *form, int width, const uint8_t *chunk,
                         size_t bytes) {
  uint8_t *coded = guarded_end(&buffers.coded, codec_room(bytes));
  uint8_t *out = guarded_end(&buffers.out, bytes);
  struct codec_result result = codec_encode_by(form, width, chunk, bytes, coded);
  assert_int_equal(result.chunk_bytes, bytes);
  assert_int_equal(result.is_guess, width == CODEC_GUESS);
  if (result.bytes == 0) {
    return 0;
  }
  assert_true(result.bytes <= codec_max_coded_bytes(bytes));
  assert_true(width == CODEC_GUESS ? result.width > 0 : result.width == width);
  uint8_t *moved = guarded_end(&buffers.coded, result.bytes);
  memmove(moved, coded, result.bytes);
  memset(out - BEFORE, 0xa5, BEFORE + bytes);
  assert_int_equal(codec_decode_by(form, moved, result.bytes, out, bytes), 0);
  assert_memory_equal(out, chunk, bytes);
  for (size_t i = 1; i <= BEFORE; i++) {
    assert_int_equal(out[-i], 0xa5);
  }
  return result.bytes;
}

/* The same by all forms, which agree in every byte. */
static size_t round_trips(int width, const uint8_t *chunk, size_t bytes) {
  size_t last = forms() - 1;
  size_t expected = round_trip(codec_form(last), width, chunk, bytes);
  memcpy(buffers.reference.begin, guarded_end(&buffers.coded, expected), expected);
  for (size_t i = 0; i < last; i++) {
    if (usable(i)) {
      assert_int_equal(round_trip(usable(i), width, chunk, bytes), expected);
      assert_memory_equal(guarded_end(&buffers.coded, expected), buffers.reference.begin, expected);
    }
  }
  return expected;
}

static void try_all_widths(unsigned tensor, size_t bytes) {
  uint8_t *chunk = guarded_end(&buffers.chunk, bytes);
  tensor_fill(tensor, chunk, bytes);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    round_trips(widths[i], chunk, bytes);
  }
}

UNIT_TEST(every_kind_comes_back) {
  static const size_t lengths[] = { 4096, 16384, 100003, 131072, 131071, MIB };
  for (unsigned tensor = 0; tensor < TENSORS; tensor++) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      try_all_widths(tensor, lengths[i]);
    }
  }
}

/* Each ends at a guard, so that chunks begin at every alignment, too. */
UNIT_TEST(every_length_comes_back) {
  static const unsigned tensors[] = { TENSOR_BF16, TENSOR_BF16_IN_F32, TENSOR_ZEROS, TENSOR_BYTES };
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
    for (size_t bytes = 0; bytes <= 600; bytes++) {
      try_all_widths(tensors[i], bytes);
      try_all_widths(tensors[i], CODEC_MIN_BYTES - 1 + bytes);
    }
    for (size_t bytes = CODEC_MIN_BYTES; bytes <= 16384; bytes += 127) {
      try_all_widths(tensors[i], bytes);
    }
  }
}

UNIT_TEST(short_chunks_are_not_coded) {
  memset(buffers.chunk.begin, 0, CODEC_MIN_BYTES);
  struct codec_result result =
      codec_encode(2, buffers.chunk.begin, CODEC_MIN_BYTES - 1, buffers.coded.begin);
  assert_int_equal(result.bytes, 0);
  result = codec_encode(2, buffers.chunk.begin, CODEC_MIN_BYTES, buffers.coded.begin);
  assert_true(result.bytes > 0);
}

UNIT_TEST(raw_is_not_looked_at) {
  struct codec_result result = codec_encode(CODEC_RAW, NULL, MIB, NULL);
  assert_int_equal(result.bytes, 0);
  assert_int_equal(result.width, CODEC_RAW);
  assert_int_equal(result.chunk_bytes, MIB);
}

/* Every byte as an element's upper byte, with every window: all symbols, codes and escapes. */
UNIT_TEST(every_symbol) {
  enum { BYTES = 16384 };
  uint8_t *chunk = guarded_end(&buffers.chunk, BYTES);
  size_t coded = 0;
  for (unsigned peak = 0; peak < 256; peak++) {
    for (unsigned i = 0; i < BYTES; i++) {
      /* One in 16 is any byte, the others lie around the peak, more and more closely. */
      unsigned spread = i * 2654435761u >> 16;
      unsigned near = spread % (2 + peak % 16);
      chunk[i] = (uint8_t)(spread % 16 == 0 ? i / 16 : peak + near * (spread >> 8 & 3) / 2);
    }
    coded += round_trips(1, chunk, BYTES) > 0;
  }
  assert_true(coded > 128);
}

static double ratio_of(int width, unsigned tensor, size_t bytes) {
  uint8_t *chunk = guarded_end(&buffers.chunk, bytes);
  tensor_fill(tensor, chunk, bytes);
  size_t coded = round_trips(width, chunk, bytes);
  return coded == 0 ? 1 : (double)bytes / (double)coded;
}

/* What the samples gain. They have pieces of four tensors each, so a little less than whole files
 * (net_plugin/codec/README.md), and 1.13 and 1.32 of a transformer's gradients. A guess finds their
 * width. */
UNIT_TEST(samples_gain) {
  static const struct {
    const char *ends;
    double least;
    int width;
  } kinds[] = { { "-gradient.f32", 1.13, 4 },
                { "-gradient.bf16", 1.32, 2 },
                { "-weights.bf16", 1.42, 2 },
                { "-gradient.bf16-in-f32", 2.2, 4 } };
  for (unsigned tensor = TENSOR_INVENTED; tensor < TENSORS; tensor++) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      const char *name = tensor_name(tensor);
      if (strcmp(strchr(name, '-'), kinds[i].ends) == 0) {
        double ratio = ratio_of(kinds[i].width, tensor, 48 * 1024);
        print_message("# %s: %.3f\n", name, ratio);
        assert_true(ratio >= kinds[i].least);
        assert_true(ratio_of(CODEC_GUESS, tensor, 48 * 1024) >= ratio * 0.999);
      }
    }
  }
}

UNIT_TEST(what_does_not_pay_is_not_coded) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    assert_true(ratio_of(widths[i], TENSOR_RANDOM, 131072) == 1);
  }
  assert_true(ratio_of(CODEC_GUESS, TENSOR_ZEROS, 131072) > 500);
  assert_true(ratio_of(CODEC_GUESS, TENSOR_ONE_BYTE, 131072) > 200);
  assert_true(ratio_of(CODEC_GUESS, TENSOR_INT32, 131072) > 1.5);
  assert_true(ratio_of(CODEC_GUESS, TENSOR_LINES, 131072) > 1.25);
  assert_true(ratio_of(CODEC_GUESS, TENSOR_SPARSE_BF16, 131072) > 1.4);
}

/* A sample of all parts that is not like the rest: the encoder gives up in time, within its room.
 */
UNIT_TEST(samples_may_mislead) {
  enum { BYTES = 131072 };
  uint8_t *chunk = guarded_end(&buffers.chunk, BYTES);
  for (int width = 1; width <= 4; width *= 2) {
    tensor_fill(TENSOR_RANDOM, chunk, BYTES);
    for (size_t i = 0; i < 8; i++) {
      size_t part = BYTES / 8, around = part / 2;
      memset(chunk + i * part + around - 256, 0x41, 512);
    }
    assert_int_equal(round_trips(width, chunk, BYTES), 0);
  }
}

/* ---- compressed chunks that were cut or changed; any bytes: tests/fuzz/fuzz_codec.c ---- */

enum { DAMAGED = 4096 + 5 };

static const struct {
  unsigned tensor;
  int width;
} damaged[] = {
  { TENSOR_BF16, 2 },     { TENSOR_F32, 4 },   { TENSOR_BF16_IN_F32, 4 }, { TENSOR_SPARSE_BF16, 2 },
  { TENSOR_ODD_BF16, 2 }, { TENSOR_BYTES, 1 }, { TENSOR_ONE_BYTE, 1 },    { TENSOR_INT32, 4 },
};

/* What all forms say of it; none reads or writes outside of what it was given. */
static int decode(const uint8_t *coded, size_t coded_bytes, size_t bytes) {
  uint8_t *moved = guarded_end(&buffers.coded, coded_bytes);
  uint8_t *out = guarded_end(&buffers.out, bytes);
  memcpy(moved, coded, coded_bytes);
  int first = codec_decode_by(&codec_portable, moved, coded_bytes, out, bytes);
  for (size_t i = 0; i < forms(); i++) {
    if (usable(i)) {
      assert_int_equal(codec_decode_by(usable(i), moved, coded_bytes, out, bytes), first);
    }
  }
  return first;
}

static size_t encode(size_t i, uint8_t *coded) {
  static uint8_t chunk[DAMAGED];
  tensor_fill(damaged[i].tensor, chunk, DAMAGED);
  struct codec_result result = codec_encode(damaged[i].width, chunk, DAMAGED, coded);
  assert_true(result.bytes > 0);
  return result.bytes;
}

UNIT_TEST(every_truncation) {
  static uint8_t coded[DAMAGED + CODEC_SLACK_BYTES];
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    size_t bytes = encode(i, coded);
    for (size_t left = 0; left < bytes; left++) {
      assert_int_equal(decode(coded, left, DAMAGED), -EBADMSG);
    }
    coded[bytes] = 0;
    assert_int_equal(decode(coded, bytes, DAMAGED), 0);
    assert_int_equal(decode(coded, bytes + 1, DAMAGED), -EBADMSG);
    assert_int_equal(decode(coded, bytes, DAMAGED - 1), -EBADMSG);
    assert_int_equal(decode(coded, bytes, 0), -EBADMSG);
  }
}

/* Payload that is changed may still be a chunk, of other numbers: checksums are the link's. */
UNIT_TEST(each_bit) {
  enum { HEADER_BITS = 8 * 8, SAMPLE = 7 };
  static uint8_t coded[DAMAGED + CODEC_SLACK_BYTES];
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    size_t bytes = encode(i, coded);
    for (size_t bit = 0; bit < bytes * 8;
         bit += unit_has_time() || bit < HEADER_BITS ? 1 : SAMPLE) {
      coded[bit / 8] ^= (uint8_t)(1u << bit % 8);
      int status = decode(coded, bytes, DAMAGED);
      assert_true(status == -EBADMSG || (status == 0 && bit >= HEADER_BITS));
      coded[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
  }
}

UNIT_TEST(headers_are_checked) {
  static uint8_t coded[DAMAGED + CODEC_SLACK_BYTES];
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
    assert_int_equal(decode(coded, bytes, DAMAGED), -EBADMSG);
    coded[wrong[i].at] = before;
  }
  assert_int_equal(decode(coded, bytes, DAMAGED), 0);
}

UNIT_MAIN(make_buffers, free_buffers)
