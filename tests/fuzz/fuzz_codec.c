/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a compressed chunk: all forms refuse it, or give the same. Any bytes as a chunk: all
 * forms code it alike, and it comes back. Each buffer is of the right size, so that a byte behind
 * it shows. */
#include "common/bytes.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_CHUNK = 10 << 10, HEADER = 8, PLANE = 4 };

/* What all usable forms say of it, and give. */
static int decode(const uint8_t *coded, size_t coded_bytes, uint8_t *out, size_t bytes) {
  int first = codec_decode_by(&codec_portable, coded, coded_bytes, out, bytes);
  const struct codec_form *form;
  for (size_t i = 0; (form = codec_form(i)) != &codec_portable; i++) {
    if (form->is_usable()) {
      uint8_t *other = malloc(bytes);
      FUZZ_CHECK(other != NULL);
      FUZZ_CHECK(codec_decode_by(form, coded, coded_bytes, other, bytes) == first);
      FUZZ_CHECK(first != 0 || memcmp(out, other, bytes) == 0);
      free(other);
    }
  }
  return first;
}

/* What chance would not find: a header that is right, but for what its planes are like. */
static void correct_header(uint8_t *coded, unsigned width, size_t bytes) {
  coded[0] = 1;
  coded[1] = (uint8_t)width;
  coded[2] = coded[3] = 0;
  bytes_put_le32(coded + 4, (uint32_t)bytes);
  for (unsigned i = 0; i < width; i++) {
    uint8_t *plane = coded + HEADER + i * PLANE;
    bool is_plain = plane[0] % 5 == 0;
    plane[0] = is_plain ? 8 : plane[0] % 5;
    plane[1] = is_plain ? 0 : plane[1];
    plane[3] = is_plain ? 0 : plane[3] % 16;
  }
}

/* The rest of the input is the compressed chunk. */
static void try_decode(struct fuzz_input *input, unsigned choice) {
  size_t bytes = fuzz_u16(input) % MAX_CHUNK + 1, coded_bytes = input->left;
  uint8_t *coded = malloc(coded_bytes > 0 ? coded_bytes : 1), *out = malloc(bytes);
  FUZZ_CHECK(coded != NULL && out != NULL);
  fuzz_bytes(input, coded, coded_bytes);
  if (choice % 8 != 0 && coded_bytes >= HEADER + 4 * PLANE) {
    correct_header(coded, 1u << choice / 8 % 3, bytes);
  }
  if (decode(coded, coded_bytes, out, bytes) == 0) {
    fuzz_read_all(out, bytes);
  }
  free(coded);
  free(out);
}

/* The rest of the input over and over, with a number more added each time. */
static uint8_t *make_chunk(struct fuzz_input *input, size_t bytes) {
  uint8_t *chunk = malloc(bytes), step = fuzz_u8(input), none = 0;
  FUZZ_CHECK(chunk != NULL);
  const uint8_t *pattern = input->left > 0 ? input->at : &none;
  size_t length = input->left > 0 ? input->left : 1;
  for (size_t i = 0; i < bytes; i++) {
    chunk[i] = (uint8_t)(pattern[i % length] + i / length * step);
  }
  return chunk;
}

static void try_round_trip(struct fuzz_input *input, unsigned choice) {
  static const int widths[] = { 1, 2, 4, CODEC_GUESS };
  int width = widths[choice % 4];
  size_t bytes = fuzz_u16(input) % MAX_CHUNK + 1;
  uint8_t *chunk = make_chunk(input, bytes), *out = malloc(bytes);
  uint8_t *coded = malloc(codec_room(bytes)), *other = malloc(codec_room(bytes));
  FUZZ_CHECK(out != NULL && coded != NULL && other != NULL);
  struct codec_result result = codec_encode_by(&codec_portable, width, chunk, bytes, coded);
  const struct codec_form *form;
  for (size_t i = 0; (form = codec_form(i)) != &codec_portable; i++) {
    if (form->is_usable()) {
      struct codec_result same = codec_encode_by(form, width, chunk, bytes, other);
      FUZZ_CHECK(same.bytes == result.bytes && same.width == result.width);
      FUZZ_CHECK(memcmp(coded, other, result.bytes) == 0);
    }
  }
  FUZZ_CHECK(result.bytes <= codec_max_coded_bytes(bytes));
  if (result.bytes > 0) {
    uint8_t *exact = malloc(result.bytes);
    FUZZ_CHECK(exact != NULL);
    memcpy(exact, coded, result.bytes);
    FUZZ_CHECK(decode(exact, result.bytes, out, bytes) == 0);
    FUZZ_CHECK(memcmp(out, chunk, bytes) == 0);
    free(exact);
  }
  free(chunk);
  free(out);
  free(coded);
  free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  struct fuzz_input input = { data, bytes };
  unsigned choice = fuzz_u8(&input);
  if (choice % 2 == 0) {
    try_decode(&input, choice / 2);
  } else {
    try_round_trip(&input, choice / 2);
  }
  return 0;
}
