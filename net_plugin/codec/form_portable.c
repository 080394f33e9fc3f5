/* SPDX-License-Identifier: Apache-2.0 */
/* The form for any processor: the format, one element at a time. */
#include <string.h>

#include "common/bytes.h"
#include "net_plugin/codec/format.h"

static bool always(void) {
  return true;
}

/* All bits or none: the loops below have no branch that depends on data, which would be predicted
 * wrongly at most escapes. */
static inline uint8_t mask(bool is_set) {
  return (uint8_t)-is_set;
}

/* The sign goes below the lowest bit that is left of the upper 16: the exponent is then a byte. */
static inline uint16_t sign_down(uint16_t upper) {
  return (uint16_t)(upper << 1 | upper >> 15);
}

static inline uint16_t sign_up(uint16_t upper) {
  return (uint16_t)(upper >> 1 | upper << 15);
}

static void split(unsigned width, const uint8_t *elements, codec_block *planes) {
  for (unsigned i = 0; i < CODEC_BLOCK; i++, elements += width) {
    uint16_t upper = sign_down(bytes_get_le16(elements + width - 2));
    if (width == 4) {
      planes[0][i] = elements[0];
      planes[1][i] = elements[1];
    }
    planes[width - 2][i] = (uint8_t)upper;
    planes[width - 1][i] = (uint8_t)(upper >> 8);
  }
}

static void join(unsigned width, const codec_block *planes, uint8_t *elements) {
  for (unsigned i = 0; i < CODEC_BLOCK; i++, elements += width) {
    if (width == 4) {
      elements[0] = planes[0][i];
      elements[1] = planes[1][i];
    }
    uint16_t upper = (uint16_t)(planes[width - 2][i] | planes[width - 1][i] << 8);
    bytes_put_le16(elements + width - 2, sign_up(upper));
  }
}

static bool is_all(const uint8_t *values, uint8_t value) {
  return values[0] == value && memcmp(values, values + 1, CODEC_BLOCK - 1) == 0;
}

/* A field of 1, 2 or 4 of the codes' bits, from `shift` on, of 8, 4 or 2 rows in each byte. */
static uint8_t *pack_field(unsigned field, unsigned shift, const uint8_t *codes, uint8_t *coded) {
  uint8_t low = (uint8_t)((1u << field) - 1);
  for (unsigned i = 0; i < field; i++, coded += CODEC_ROW) {
    memset(coded, 0, CODEC_ROW);
    for (unsigned at = 0; at < 8; at += field, codes += CODEC_ROW) {
      for (unsigned j = 0; j < CODEC_ROW; j++) {
        coded[j] |= (uint8_t)((codes[j] >> shift & low) << at);
      }
    }
  }
  return coded;
}

static const uint8_t *unpack_field(unsigned field, unsigned shift, const uint8_t *coded,
                                   uint8_t *codes) {
  uint8_t low = (uint8_t)((1u << field) - 1);
  for (unsigned i = 0; i < field; i++, coded += CODEC_ROW) {
    for (unsigned at = 0; at < 8; at += field, codes += CODEC_ROW) {
      for (unsigned j = 0; j < CODEC_ROW; j++) {
        codes[j] |= (uint8_t)((coded[j] >> at & low) << shift);
      }
    }
  }
  return coded;
}

static uint8_t *pack_escapes(const struct codec_plane *plane, const uint8_t *escapes,
                             unsigned count, uint8_t *coded) {
  uint8_t *far = coded + (count + 1) / 2;
  uint8_t window = codec_window(plane->bits);
  for (unsigned i = 0; i < count; i++) {
    uint8_t near = (uint8_t)(escapes[i] - plane->base + plane->below);
    near = (uint8_t)(near < plane->below ? near : near - window);
    uint8_t half = near < CODEC_FAR ? near : CODEC_FAR;
    coded[i / 2] = (uint8_t)(i % 2 ? coded[i / 2] | half << 4 : half);
    *far = escapes[i];
    far += half == CODEC_FAR;
  }
  return far;
}

static const uint8_t *unpack_escapes(const struct codec_plane *plane, const uint8_t *coded,
                                     unsigned count, uint8_t *escapes) {
  const uint8_t *far = coded + (count + 1) / 2;
  uint8_t window = codec_window(plane->bits);
  for (unsigned i = 0; i < count; i++) {
    uint8_t half = coded[i / 2] >> (i % 2 ? 4 : 0) & 15;
    uint8_t near = (uint8_t)(plane->base - plane->below + half);
    near = (uint8_t)(half < plane->below ? near : near + window);
    escapes[i] = half == CODEC_FAR ? *far : near;
    far += half == CODEC_FAR;
  }
  return far;
}

static uint8_t *pack(const struct codec_plane *plane, const uint8_t *values, uint8_t *coded) {
  uint8_t codes[CODEC_BLOCK], escapes[CODEC_BLOCK + 1];
  uint8_t window = codec_window(plane->bits), base = plane->base, special = plane->special;
  uint8_t beyond = (uint8_t)(window + 1);
  unsigned count = 0;
  for (unsigned i = 0; i < CODEC_BLOCK; i++) {
    uint8_t offset = (uint8_t)(values[i] - base);
    uint8_t is_special = mask(values[i] == special), is_inside = mask(offset < window);
    uint8_t other = (uint8_t)(beyond + is_special);
    is_inside &= (uint8_t)~is_special;
    codes[i] = (uint8_t)((offset & is_inside) | (other & ~is_inside));
  }
  for (unsigned i = 0; i < CODEC_BLOCK; i++) {
    escapes[count] = values[i];
    count += codes[i] == beyond;
  }
  if (plane->bits == 3) {
    coded = pack_field(2, 0, codes, coded);
    coded = pack_field(1, 2, codes, coded);
  } else {
    coded = pack_field(plane->bits, 0, codes, coded);
  }
  return pack_escapes(plane, escapes, count, coded);
}

static const uint8_t *unpack(const struct codec_plane *plane, const uint8_t *coded,
                             uint8_t *values) {
  uint8_t codes[CODEC_BLOCK] = { 0 }, escapes[CODEC_BLOCK + 1], bytes[1 << CODEC_MAX_BITS];
  uint8_t window = codec_window(plane->bits), beyond = (uint8_t)(window + 1);
  if (plane->bits == 3) {
    coded = unpack_field(2, 0, coded, codes);
    coded = unpack_field(1, 2, coded, codes);
  } else {
    coded = unpack_field(plane->bits, 0, coded, codes);
  }
  unsigned count = 0;
  for (unsigned i = 0; i < CODEC_BLOCK; i++) {
    count += codes[i] == beyond;
  }
  escapes[count] = 0; /* read below, not used */
  coded = unpack_escapes(plane, coded, count, escapes);
  for (unsigned i = 0; i < sizeof bytes; i++) {
    bytes[i] = (uint8_t)(i == window ? plane->special : plane->base + i);
  }
  const uint8_t *escape = escapes;
  for (unsigned i = 0; i < CODEC_BLOCK; i++) {
    uint8_t is_escape = mask(codes[i] == beyond);
    values[i] = (uint8_t)((bytes[codes[i]] & ~is_escape) | (*escape & is_escape));
    escape += is_escape & 1;
  }
  return coded;
}

const struct codec_form codec_portable = { "portable", always, split, join, is_all, pack, unpack };
