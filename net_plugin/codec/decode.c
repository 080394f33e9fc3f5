/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed chunk back to what it was. Nothing in it is trusted: the header has to be right,
 * each block has to end before the input does, and a block writes as many elements whatever it
 * holds. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"

/* What is left to read. A form may read a whole block of the largest size and CODEC_OVERRUN from
 * `at`: towards the end, `at` is in `copy`. */
struct input {
  const uint8_t *at, *end;
  bool is_copy;
  uint8_t copy[2 * (CODEC_MAX_BLOCK + CODEC_OVERRUN)];
};

static int decode_plane(const uint8_t *in, struct codec_plane *plane) {
  *plane = (struct codec_plane){ in[0], in[1], in[2], in[3] };
  bool is_coded = plane->bits >= 1 && plane->bits <= CODEC_MAX_BITS;
  bool is_plain = plane->bits == CODEC_PLAIN_BITS && plane->base == 0 && plane->below == 0;
  return (is_coded && plane->below <= CODEC_FAR) || is_plain ? 0 : -EBADMSG;
}

/* Bytes of the header, or -EBADMSG. */
static int decode_header(const uint8_t *in, size_t left, size_t bytes,
                         struct codec_layout *layout) {
  if (left < CODEC_HEADER_BYTES || in[0] != CODEC_VERSION || bytes_get_le16(in + 2) != 0 ||
      bytes_get_le32(in + 4) != bytes) {
    return -EBADMSG;
  }
  layout->width = in[1];
  bool is_known = layout->width == 1 || layout->width == 2 || layout->width == 4;
  int length = CODEC_HEADER_BYTES + in[1] * CODEC_PLANE_BYTES;
  if (!is_known || left < (size_t)length) {
    return -EBADMSG;
  }
  for (unsigned i = 0; i < layout->width; i++) {
    if (decode_plane(in + CODEC_HEADER_BYTES + i * CODEC_PLANE_BYTES, &layout->planes[i]) != 0) {
      return -EBADMSG;
    }
  }
  return length;
}

/* Makes sure that the next block can be read whatever it holds. */
static void approach_end(struct input *input) {
  size_t left = (size_t)(input->end - input->at);
  if (left >= CODEC_MAX_BLOCK + CODEC_OVERRUN || input->is_copy) {
    return;
  }
  memcpy(input->copy, input->at, left);
  memset(input->copy + left, 0, sizeof input->copy - left);
  input->at = input->copy;
  input->end = input->copy + left;
  input->is_copy = true;
}

/* The end of the block, which may be behind the input's. */
static const uint8_t *decode_block(const struct codec_form *form, const struct codec_layout *layout,
                                   const uint8_t *in, uint8_t *elements) {
  _Alignas(64) codec_block planes[CODEC_MAX_WIDTH];
  uint8_t same = *in++;
  for (unsigned i = 0; i < layout->width; i++) {
    const struct codec_plane *plane = &layout->planes[i];
    uint8_t *values = layout->width > 1 ? planes[i] : elements;
    if (same >> i & 1) {
      memset(values, plane->special, CODEC_BLOCK);
    } else if (plane->bits == CODEC_PLAIN_BITS) {
      codec_copy_block(values, in);
      in += CODEC_BLOCK;
    } else {
      in = form->unpack(plane, in, values);
    }
  }
  if (layout->width > 1) {
    form->join(layout->width, (const codec_block *)planes, elements);
  }
  return in;
}

int codec_decode_by(const struct codec_form *form, const void *coded, size_t coded_bytes, void *out,
                    size_t bytes) {
  struct codec_layout layout;
  int header = decode_header(coded, coded_bytes, bytes, &layout);
  if (header < 0) {
    return header;
  }
  struct input input;
  input.at = (const uint8_t *)coded + header;
  input.end = (const uint8_t *)coded + coded_bytes;
  input.is_copy = false;
  uint8_t *elements = out;
  size_t block = (size_t)CODEC_BLOCK * layout.width, left = bytes;
  for (; left >= block; left -= block, elements += block) {
    if (input.at == input.end) {
      return -EBADMSG;
    }
    approach_end(&input);
    input.at = decode_block(form, &layout, input.at, elements);
    if (input.at > input.end) {
      return -EBADMSG;
    }
  }
  if ((size_t)(input.end - input.at) != left) {
    return -EBADMSG;
  }
  memcpy(elements, input.at, left);
  return 0;
}
