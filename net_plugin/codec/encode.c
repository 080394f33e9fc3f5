/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk to header, blocks and what is left at the end. */
#include <string.h>

#include "common/bytes.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"

_Static_assert(CODEC_HEADER_BYTES + CODEC_MAX_WIDTH * CODEC_PLANE_BYTES + CODEC_PATIENCE_BYTES +
                       CODEC_MAX_BLOCK + CODEC_OVERRUN <=
                   CODEC_SLACK_BYTES,
               "the last block ends within codec_room");
_Static_assert(CODEC_MIN_BYTES >= CODEC_BLOCK * CODEC_MAX_WIDTH, "a chunk has a sample");

/* Whether so much for so much is at least the ratio of codec_max_coded_bytes. */
static bool pays(size_t coded, size_t bytes) {
  return coded * CODEC_RATIO_TENTHS <= bytes * 10;
}

static uint8_t *encode_header(const struct codec_layout *layout, size_t bytes, uint8_t *out) {
  out[0] = CODEC_VERSION;
  out[1] = (uint8_t)layout->width;
  bytes_put_le16(out + 2, 0);
  bytes_put_le32(out + 4, (uint32_t)bytes);
  out += CODEC_HEADER_BYTES;
  for (unsigned i = 0; i < layout->width; i++, out += CODEC_PLANE_BYTES) {
    const struct codec_plane *plane = &layout->planes[i];
    out[0] = plane->bits;
    out[1] = plane->base;
    out[2] = plane->special;
    out[3] = plane->below;
  }
  return out;
}

static uint8_t *encode_block(const struct codec_form *form, const struct codec_layout *layout,
                             const uint8_t *elements, uint8_t *out) {
  _Alignas(64) codec_block planes[CODEC_MAX_WIDTH];
  if (layout->width > 1) {
    form->split(layout->width, elements, planes);
  }
  uint8_t *same = out++;
  *same = 0;
  for (unsigned i = 0; i < layout->width; i++) {
    const struct codec_plane *plane = &layout->planes[i];
    const uint8_t *values = layout->width > 1 ? planes[i] : elements;
    if (form->is_all(values, plane->special)) {
      *same |= (uint8_t)(1u << i);
    } else if (plane->bits == CODEC_PLAIN_BITS) {
      codec_copy_block(out, values);
      out += CODEC_BLOCK;
    } else {
      out = form->pack(plane, values, out);
    }
  }
  return out;
}

/* The compressed bytes, or 0. */
static size_t encode(const struct codec_form *form, const struct codec_layout *layout,
                     const uint8_t *chunk, size_t bytes, uint8_t *out) {
  size_t block = (size_t)CODEC_BLOCK * layout->width, done = 0;
  uint8_t *at = encode_header(layout, bytes, out);
  for (; bytes - done >= block; done += block) {
    if (!pays((size_t)(at - out), done + CODEC_PATIENCE_BYTES)) {
      return 0;
    }
    at = encode_block(form, layout, chunk + done, at);
  }
  memcpy(at, chunk + done, bytes - done);
  size_t coded = (size_t)(at - out) + bytes - done;
  return coded <= codec_max_coded_bytes(bytes) ? coded : 0;
}

/* The width whose blocks are expected to be the smallest part of what they were; of several the
 * first. */
static size_t guess(const struct codec_form *form, const uint8_t *chunk, size_t bytes,
                    struct codec_layout *layout) {
  static const unsigned others[] = { 4, 1 };
  size_t best = codec_plan(form, 2, chunk, bytes, layout);
  for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
    struct codec_layout other;
    size_t coded = codec_plan(form, others[i], chunk, bytes, &other);
    if (coded * layout->width < best * other.width) {
      best = coded;
      *layout = other;
    }
  }
  return best;
}

struct codec_result codec_encode_by(const struct codec_form *form, int width, const void *chunk,
                                    size_t bytes, void *out) {
  struct codec_result result = { .chunk_bytes = (uint32_t)bytes,
                                 .width = width == CODEC_GUESS ? CODEC_RAW : width,
                                 .is_guess = width == CODEC_GUESS };
  struct codec_layout layout;
  if (width == CODEC_RAW || bytes < CODEC_MIN_BYTES || bytes > CODEC_MAX_BYTES) {
    return result;
  }
  size_t expected = result.is_guess ? guess(form, chunk, bytes, &layout)
                                    : codec_plan(form, (unsigned)width, chunk, bytes, &layout);
  if (pays(expected, (size_t)CODEC_BLOCK * layout.width)) {
    result.bytes = (uint32_t)encode(form, &layout, chunk, bytes, out);
  }
  if (result.is_guess && result.bytes > 0) {
    result.width = (int)layout.width;
  }
  return result;
}
