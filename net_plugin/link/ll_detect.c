/* SPDX-License-Identifier: Apache-2.0 */
/* See ll_detect.h. Both tests end at the first line that differs: another kind of message costs
 * one or two comparisons. */
#include "net_plugin/link/ll_detect.h"

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "net_plugin/link/limits.h"

#define LL_LINE_BYTES 16 /* data, flag, data, flag: 4 bytes each */
#define LL128_LINE_BYTES 128
#define LL128_FLAG_AT 120

static bool has_ll_form(const uint8_t *data, size_t bytes) {
  uint32_t flag = bytes_get_le32(data + 4);
  for (size_t at = 0; at < bytes && flag != 0; at += LL_LINE_BYTES) {
    if (bytes_get_le32(data + at + 4) != flag || bytes_get_le32(data + at + 12) != flag) {
      return false;
    }
  }
  return flag != 0;
}

static bool has_ll128_form(const uint8_t *data, size_t bytes) {
  uint64_t flag = bytes_get_le64(data + LL128_FLAG_AT);
  for (size_t at = LL128_FLAG_AT; at < bytes && flag != 0; at += LL128_LINE_BYTES) {
    if (bytes_get_le64(data + at) != flag) {
      return false;
    }
  }
  return flag != 0;
}

enum ll_form ll_detect(const void *data, size_t bytes) {
  if (bytes == 0) {
    return LL_NONE;
  }
  if (bytes % LL128_LINE_BYTES == 0 && has_ll128_form(data, bytes)) {
    return LL_LINES;
  }
  bool is_ll =
      bytes % LL_LINE_BYTES == 0 && bytes <= LL_DETECT_MAX_BYTES && has_ll_form(data, bytes);
  return is_ll ? LL_WORDS : LL_NONE;
}
