/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection remembers of its chunks: when it guesses, what it does until the next guess,
 * how it notices that the traffic has changed. */
#include "net_plugin/codec/codec.h"

#include "tests/lib/unit.h"

enum { CHUNK = 131072, FIRST_INTERVAL = 16, LAST_INTERVAL = 256, MISSES = 4 };

/* A chunk as codec_encode would code it if elements of `width` bytes give coded : CHUNK, and
 * others nothing. Returns what was chosen for it. */
static int pass(struct codec_memory *memory, int width, uint32_t coded) {
  int chosen = codec_memory_choose(memory);
  bool is_guess = chosen == CODEC_GUESS;
  struct codec_result result = { CHUNK, 0, is_guess ? width : chosen, is_guess };
  if (width != CODEC_RAW && result.width == width) {
    result.bytes = coded;
  }
  if (chosen != CODEC_RAW) {
    codec_memory_note(memory, &result);
  }
  return chosen;
}

/* Chunks until the next guess. */
static unsigned until_guess(struct codec_memory *memory, int width, uint32_t coded) {
  for (unsigned chunks = 0; chunks < 2 * LAST_INTERVAL; chunks++) {
    int chosen = pass(memory, width, coded);
    if (chosen == CODEC_GUESS) {
      return chunks;
    }
    assert_int_equal(chosen, width);
  }
  return UINT32_MAX;
}

UNIT_TEST(guesses_become_rare) {
  static const int widths[] = { 1, 2, 4, CODEC_RAW };
  for (unsigned i = 0; i < 4; i++) {
    struct codec_memory memory = { 0 };
    assert_int_equal(pass(&memory, widths[i], CHUNK / 2), CODEC_GUESS);
    unsigned expected = FIRST_INTERVAL;
    for (unsigned guesses = 0; guesses < 8; guesses++) {
      assert_int_equal(until_guess(&memory, widths[i], CHUNK / 2), expected);
      expected = expected * 2 < LAST_INTERVAL ? expected * 2 : LAST_INTERVAL;
    }
  }
}

UNIT_TEST(one_guess_at_a_time) {
  struct codec_memory memory = { 0 };
  assert_int_equal(codec_memory_choose(&memory), CODEC_GUESS);
  for (unsigned i = 0; i < 10; i++) {
    assert_int_equal(codec_memory_choose(&memory), CODEC_RAW);
  }
  struct codec_result result = { CHUNK, CHUNK / 2, 2, true };
  codec_memory_note(&memory, &result);
  assert_int_equal(codec_memory_choose(&memory), 2);
}

static struct codec_memory settled(int width, uint32_t coded) {
  struct codec_memory memory = { 0 };
  for (unsigned guesses = 0; guesses < 8; guesses++) {
    until_guess(&memory, width, coded);
  }
  return memory;
}

UNIT_TEST(another_width_is_noticed) {
  struct codec_memory memory = settled(2, CHUNK / 4 * 3);
  for (unsigned i = 0; i < MISSES; i++) {
    assert_int_equal(pass(&memory, 4, CHUNK / 2), 2);
  }
  assert_int_equal(pass(&memory, 4, CHUNK / 2), CODEC_GUESS);
  assert_int_equal(until_guess(&memory, 4, CHUNK / 2), FIRST_INTERVAL);
}

UNIT_TEST(slow_changes_and_single_chunks_are_no_drift) {
  struct codec_memory memory = settled(2, CHUNK / 2);
  for (unsigned i = 0; i < LAST_INTERVAL; i++) {
    bool is_odd = i % MISSES == MISSES - 1;
    assert_int_equal(pass(&memory, is_odd ? 4 : 2, CHUNK / 2 + i * (CHUNK / 4 / LAST_INTERVAL)), 2);
  }
  assert_int_equal(pass(&memory, 2, CHUNK / 2), CODEC_GUESS);
}

UNIT_TEST(raw_traffic_is_given_up_and_found_again) {
  struct codec_memory memory = settled(2, CHUNK / 2);
  for (unsigned i = 0; i < MISSES; i++) {
    assert_int_equal(pass(&memory, CODEC_RAW, 0), 2);
  }
  for (unsigned i = 0; i < MISSES; i++) {
    assert_int_equal(pass(&memory, CODEC_RAW, 0), CODEC_GUESS);
  }
  assert_int_equal(until_guess(&memory, CODEC_RAW, 0), FIRST_INTERVAL);
  while (memory.until_guess > 0) {
    assert_int_equal(pass(&memory, 2, CHUNK / 2), CODEC_RAW);
  }
  assert_int_equal(pass(&memory, 2, CHUNK / 2), CODEC_GUESS);
  assert_int_equal(pass(&memory, 2, CHUNK / 2), 2);
}

/* Chunks that were chosen for before a guess, and come back after it. */
UNIT_TEST(late_results_change_nothing) {
  struct codec_memory memory = settled(2, CHUNK / 2);
  struct codec_result late = { CHUNK, 0, 4, false };
  for (unsigned i = 0; i < 2 * MISSES; i++) {
    codec_memory_note(&memory, &late);
  }
  assert_int_equal(pass(&memory, 2, CHUNK / 2), 2);
}
