/* SPDX-License-Identifier: Apache-2.0 */
/* form_bits: pack and unpack of a form, from its pack_bits and unpack_bits: the number of bits is a
 * constant in each of their copies. For the one file that includes it, which defines these, and
 * TARGET. */
#ifndef CODEC_FORM_BITS_H
#define CODEC_FORM_BITS_H

TARGET static uint8_t *pack(const struct codec_plane *plane, const uint8_t *values,
                            uint8_t *coded) {
  switch (plane->bits) {
  case 1:
    return pack_bits(1, plane, values, coded);
  case 2:
    return pack_bits(2, plane, values, coded);
  case 3:
    return pack_bits(3, plane, values, coded);
  default:
    return pack_bits(4, plane, values, coded);
  }
}

TARGET static const uint8_t *unpack(const struct codec_plane *plane, const uint8_t *coded,
                                    uint8_t *values) {
  switch (plane->bits) {
  case 1:
    return unpack_bits(1, plane, coded, values);
  case 2:
    return unpack_bits(2, plane, coded, values);
  case 3:
    return unpack_bits(3, plane, coded, values);
  default:
    return unpack_bits(4, plane, coded, values);
  }
}

#endif
