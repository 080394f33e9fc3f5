/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks send: invented numbers compress like those of training, files are taken as they
 * are, and a name that is neither is refused. */
#include "tests/lib/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net_plugin/codec/codec.h"
#include "tests/lib/unit.h"

#define CHUNK_BYTES ((size_t)128 << 10)

static struct contents contents;
static char error[CONTENTS_ERROR_MAX];

/* By the codec, in per mille of what it becomes. */
static size_t ratio_per_mille(const char *what) {
  static uint8_t chunk[CHUNK_BYTES], out[CHUNK_BYTES + CODEC_SLACK_BYTES];
  size_t before = 0, after = 0;
  assert_int_equal(contents_load(&contents, what, error), 0);
  for (uint64_t offset = 0; offset < contents.size; offset += CHUNK_BYTES) {
    contents_copy(&contents, offset, chunk, CHUNK_BYTES);
    struct codec_result result = codec_encode(CODEC_GUESS, chunk, CHUNK_BYTES, out);
    before += CHUNK_BYTES;
    after += result.bytes > 0 ? result.bytes : CHUNK_BYTES;
  }
  contents_free(&contents);
  return before * 1000 / after;
}

UNIT_TEST(invented_numbers_compress_like_gradients) {
  assert_in_range(ratio_per_mille("bf16"), 1350, 1380); /* ResNet-18: 1.364 */
  assert_in_range(ratio_per_mille("f32"), 1145, 1165);  /* 1.156 */
  assert_int_equal(ratio_per_mille("random"), 1000);
  assert_true(ratio_per_mille("zeros") > 1000000);
}

UNIT_TEST(a_file_repeats) {
  char path[] = "/tmp/stratus-contents-XXXXXX", bytes[10];
  int fd = mkstemp(path);
  assert_int_equal(write(fd, "abc", 3), 3);
  close(fd);
  assert_int_equal(contents_load(&contents, path, error), 0);
  contents_copy(&contents, 1, bytes, 9);
  bytes[9] = '\0';
  assert_string_equal(bytes, "bcabcabca");
  contents_free(&contents);
  assert_int_equal(truncate(path, 0), 0);
  assert_int_equal(contents_load(&contents, path, error), -EINVAL);
  assert_non_null(strstr(error, "is no file of 1 byte to 1 GiB"));
  unlink(path);
}

UNIT_TEST(what_is_neither_is_refused) {
  assert_int_equal(contents_load(&contents, "bf61", error), -ENOENT);
  assert_string_equal(error, "bf61, neither one of bf16|f32|random|zeros nor a file: No such file "
                             "or directory");
  assert_int_equal(contents_load(&contents, "/", error), -EINVAL);
  assert_null(contents.bytes);
}
