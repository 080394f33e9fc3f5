/* SPDX-License-Identifier: Apache-2.0 */
/* Which form this processor runs. It is asked for each chunk, as PURE code keeps nothing: that
 * reads a word of what the compiler's start-up code has found out. */
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"

static const struct codec_form *const forms[] = {
#if defined(__x86_64__)
  &codec_avx512,
  &codec_avx2,
#elif defined(__aarch64__)
  &codec_neon,
#endif
  &codec_portable,
};

const struct codec_form *codec_form(size_t i) {
  return i < sizeof forms / sizeof *forms ? forms[i] : NULL;
}

static const struct codec_form *fastest(void) {
  size_t i = 0;
  while (!forms[i]->is_usable()) {
    i++;
  }
  return forms[i];
}

struct codec_result codec_encode(int width, const void *chunk, size_t bytes, void *out) {
  return codec_encode_by(fastest(), width, chunk, bytes, out);
}

int codec_decode(const void *coded, size_t coded_bytes, void *out, size_t bytes) {
  return codec_decode_by(fastest(), coded, coded_bytes, out, bytes);
}
