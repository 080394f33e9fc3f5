/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed chunk that was damaged on its way, DAMAGES times for each input: bytes changed, bits
 * flipped, cut off, longer. Each is refused, or gives some chunk of the right length; one form
 * after the other. libFuzzer's own changes seldom get so far, and are a hundred times as slow;
 * fuzz_codec has what never was a compressed chunk, and compares the forms. */
#include "common/random.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"
#include "tests/fuzz/fuzz.h"

enum { DAMAGES = 1000, MAX_CHUNK = 4 << 10, MAX_FORMS = 8, FEW_BYTES = 4, REPORTED = 1000000 };

struct undo {
  size_t at[FEW_BYTES];
  uint8_t was[FEW_BYTES];
  unsigned count;
};

static const struct codec_form *forms[MAX_FORMS];
static size_t form_count;
static uint64_t damages; /* so far */

static void count_damage(void) {
  damages++;
  if (damages % REPORTED == 0) {
    dprintf(2, "damaged chunks: %llu\n", (unsigned long long)damages);
  }
}

static void find_forms(void) {
  const struct codec_form *form;
  form_count = 0;
  for (size_t i = 0; form_count < MAX_FORMS && (form = codec_form(i)); i++) {
    forms[form_count] = form;
    form_count += form->is_usable();
  }
}

/* Numbers as gradients have them, more or less: the rest of the input over and over, with noise. */
static void make_chunk(struct fuzz_input *input, uint8_t *chunk, size_t bytes, uint64_t *random) {
  uint64_t noise_mask = (uint64_t)fuzz_u8(input) * 0x0001000100010001ull;
  const uint8_t *pattern = input->left > 0 ? input->at : (const uint8_t *)"\x3f";
  size_t length = input->left > 0 ? input->left : 1;
  for (size_t i = 0; i < bytes; i++) {
    chunk[i] = (uint8_t)(pattern[i % length] ^ ((random_next(random) & noise_mask) >> i % 8 * 8));
  }
}

static void change(uint8_t *coded, size_t bytes, uint64_t *random, struct undo *undo) {
  uint64_t draw = random_next(random);
  undo->count = (unsigned)(draw % FEW_BYTES) + 1;
  bool is_near = (draw >> 8 & 3) == 0, is_flip = (draw >> 10 & 1) == 0;
  size_t range = is_near && bytes > 32 ? 32 : bytes; /* headers, more often than by chance */
  for (unsigned i = 0; i < undo->count; i++) {
    uint64_t each = random_next(random);
    size_t at = (each >> 16) % range;
    undo->at[i] = at;
    undo->was[i] = coded[at];
    coded[at] = (uint8_t)(is_flip ? coded[at] ^ 1u << (each & 7) : each);
  }
}

static void change_back(uint8_t *coded, const struct undo *undo) {
  for (unsigned i = undo->count; i-- > 0;) {
    coded[undo->at[i]] = undo->was[i];
  }
}

/* A tenth is also cut off, or longer by what follows it: then in a buffer of its own length. */
static void decode(const uint8_t *coded, size_t bytes, uint8_t *out, size_t out_bytes,
                   const struct codec_form *form, uint64_t draw) {
  if (draw % 10 != 0) {
    codec_decode_by(form, coded, bytes, out, out_bytes);
    return;
  }
  size_t wanted = (draw >> 8) % (bytes + bytes / 8 + 2);
  uint8_t *other = calloc(1, wanted > 0 ? wanted : 1);
  FUZZ_CHECK(other != NULL);
  memcpy(other, coded, wanted < bytes ? wanted : bytes);
  codec_decode_by(form, other, wanted, out, out_bytes);
  free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static const int widths[] = { 1, 2, 4, CODEC_GUESS };
  struct fuzz_input input = { data, bytes };
  find_forms();
  uint64_t random = fuzz_u64(&input) | 1;
  int width = widths[fuzz_u8(&input) % 4];
  size_t chunk_bytes = fuzz_u16(&input) % MAX_CHUNK + 1;
  uint8_t *chunk = malloc(chunk_bytes), *out = malloc(chunk_bytes),
          *room = malloc(codec_room(chunk_bytes));
  FUZZ_CHECK(chunk != NULL && out != NULL && room != NULL);
  make_chunk(&input, chunk, chunk_bytes, &random);
  size_t coded_bytes = codec_encode_by(forms[0], width, chunk, chunk_bytes, room).bytes;
  if (coded_bytes == 0) { /* noise: half of it is made even */
    for (size_t i = 1; i < chunk_bytes; i += 2) {
      chunk[i] = 0x3F;
    }
    coded_bytes = codec_encode_by(forms[0], 2, chunk, chunk_bytes, room).bytes;
  }
  uint8_t *coded = malloc(coded_bytes > 0 ? coded_bytes : 1);
  FUZZ_CHECK(coded != NULL);
  memcpy(coded, room, coded_bytes);
  for (unsigned i = 0; i < DAMAGES && coded_bytes > 0; i++) {
    struct undo undo;
    change(coded, coded_bytes, &random, &undo);
    /* The last form, the portable one, is ten times as slow. */
    size_t form = i % 16 == 0 ? form_count - 1 : i % form_count * (form_count - 1) / form_count;
    decode(coded, coded_bytes, out, chunk_bytes, forms[form], random_next(&random));
    change_back(coded, &undo);
    count_damage();
  }
  /* All is as it was: the chunk comes back. */
  FUZZ_CHECK(coded_bytes == 0 || (codec_decode_by(forms[bytes % form_count], coded, coded_bytes,
                                                  out, chunk_bytes) == 0 &&
                                  memcmp(out, chunk, chunk_bytes) == 0));
  free(chunk);
  free(out);
  free(room);
  free(coded);
  return 0;
}
