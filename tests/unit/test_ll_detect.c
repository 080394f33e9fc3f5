/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the form of LL and LL128 are known whatever their size; others are not taken for
 * them. */
#include "net_plugin/link/message.h"

#include <stdint.h>
#include <string.h>

#include "net_plugin/link/limits.h"
#include "tests/lib/unit.h"

#define LARGEST (256u << 10)

static uint8_t data[LARGEST], noise[LARGEST];

/* Drawn once: under a sanitizer, drawing takes longer than all that is tested. */
static int draw_noise(void **state) {
  uint32_t word = 1;
  for (size_t at = 0; at < LARGEST; at++) {
    word = word * 1664525u + 1013904223u;
    noise[at] = (uint8_t)(word >> 24);
  }
  return 0;
}

static void fill_noise(void) {
  memcpy(data, noise, LARGEST);
}

static void make_ll(size_t bytes, uint32_t flag) {
  fill_noise();
  for (size_t at = 4; at < bytes; at += 8) {
    memcpy(data + at, &flag, sizeof flag);
  }
}

static void make_ll128(size_t bytes, uint64_t flag) {
  fill_noise();
  for (size_t at = 120; at < bytes; at += 128) {
    memcpy(data + at, &flag, sizeof flag);
  }
}

UNIT_TEST(ll_is_known) {
  for (size_t bytes = 16; bytes <= LL_DETECT_MAX_BYTES; bytes += bytes < 4096 ? 16 : 4096 - 16) {
    enum ll_form form = bytes == 128 ? LL_LINES : LL_WORDS; /* may be a line of LL128 */
    make_ll(bytes, 1);
    assert_int_equal(ll_detect(data, bytes), form);
    make_ll(bytes, 0x80000000u);
    assert_int_equal(ll_detect(data, bytes), form);
  }
}

UNIT_TEST(ll128_is_known) {
  for (size_t bytes = 128; bytes <= LARGEST; bytes += bytes < 8192 ? 128 : 2048) {
    make_ll128(bytes, 1);
    assert_int_equal(ll_detect(data, bytes), LL_LINES);
    make_ll128(bytes, UINT64_MAX);
    assert_int_equal(ll_detect(data, bytes), LL_LINES);
  }
}

/* Each single flag counts, the last like the first. */
UNIT_TEST(one_other_flag_is_enough) {
  for (size_t at = 0; at < 8192; at += 16) {
    make_ll(8192, 7);
    data[at + 12] = 8;
    assert_int_equal(ll_detect(data, 8192), LL_NONE);
  }
  for (size_t at = 0; at < 8192; at += 128) {
    make_ll128(8192, 7);
    data[at + 120] = 8;
    assert_int_equal(ll_detect(data, 8192), LL_NONE);
  }
}

/* LL whose data looks like LL128's flags: the safer of the two. */
UNIT_TEST(both_forms_are_lines) {
  make_ll(8192, 7);
  for (size_t at = 120; at < 8192; at += 128) {
    memset(data + at, 1, 4);
  }
  assert_int_equal(ll_detect(data, 8192), LL_LINES);
}

UNIT_TEST(others_are_not_taken_for_them) {
  fill_noise();
  for (size_t bytes = 0; bytes <= 4096; bytes++) {
    /* A single line: who knows. */
    assert_int_equal(ll_detect(data, bytes), bytes == 128 ? LL_LINES : LL_NONE);
  }
  memset(data, 0, LARGEST); /* a flag is never 0 */
  for (size_t bytes = 0; bytes <= 4096; bytes++) {
    assert_int_equal(ll_detect(data, bytes), LL_NONE);
  }
  make_ll(LARGEST, 7);
  assert_int_equal(ll_detect(data, LL_DETECT_MAX_BYTES - 8), LL_NONE);
  assert_int_equal(ll_detect(data, LL_DETECT_MAX_BYTES + 16), LL_NONE);
  make_ll128(LARGEST, 7);
  assert_int_equal(ll_detect(data, LARGEST - 64), LL_NONE);
}

UNIT_MAIN(draw_noise, NULL)
