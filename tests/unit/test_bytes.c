/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers at every alignment. */
#include "common/bytes.h"

#include "tests/lib/unit.h"

static void lowest_byte_comes_first(void **state) {
  (void)state;
  unsigned char wire[8];
  bytes_put_le16(wire, 0x0102);
  assert_memory_equal(wire, ((unsigned char[]){ 2, 1 }), 2);
  bytes_put_le32(wire, 0x01020304);
  assert_memory_equal(wire, ((unsigned char[]){ 4, 3, 2, 1 }), 4);
  bytes_put_le64(wire, UINT64_C(0x0102030405060708));
  assert_memory_equal(wire, ((unsigned char[]){ 8, 7, 6, 5, 4, 3, 2, 1 }), 8);
}

static void what_is_put_comes_back_at_every_alignment(void **state) {
  (void)state;
  static const uint64_t values[] = {
    0, 1, 0x80, 0xff80, 0xfedcba98, UINT64_MAX, UINT64_C(0x8000000000000001)
  };
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    for (size_t at = 0; at < 8; at++) {
      unsigned char wire[16 + 1];
      memset(wire, 0xa5, sizeof wire);
      bytes_put_le64(wire + at, values[i]);
      assert_true(bytes_get_le64(wire + at) == values[i]);
      assert_int_equal(wire[at + 8], 0xa5);
      bytes_put_le32(wire + at, (uint32_t)values[i]);
      assert_int_equal(bytes_get_le32(wire + at), (uint32_t)values[i]);
      bytes_put_le16(wire + at, (uint16_t)values[i]);
      assert_int_equal(bytes_get_le16(wire + at), (uint16_t)values[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lowest_byte_comes_first),
    cmocka_unit_test(what_is_put_comes_back_at_every_alignment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
