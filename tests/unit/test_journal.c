/* SPDX-License-Identifier: Apache-2.0 */
/* Counts over many epochs, and the order in which lost chunks come back. */
#include "net_plugin/link/journal.h"

#include <string.h>

#include "tests/lib/unit.h"

static struct chunk chunk_of(uint32_t message, uint64_t offset) {
  return (struct chunk){ .offset = offset, .length = 1, .message = message };
}

UNIT_TEST(journal_keeps_the_order) {
  struct journal journal = { 0 };
  for (uint32_t round = 0; round < 5; round++) {
    for (uint32_t i = 0; i < LINK_JOURNAL; i++) {
      assert_false(journal_is_full(&journal));
      journal_append(&journal, chunk_of(round, i));
    }
    assert_true(journal_is_full(&journal));
    assert_true(journal_at(&journal, journal.acked).offset == 0);
    for (uint32_t i = 0; i < LINK_JOURNAL; i++) {
      assert_true(journal_take_oldest(&journal).offset == i);
    }
    assert_int_equal(journal_count(&journal), 0);
  }
  assert_true(journal.sent == 5 * LINK_JOURNAL);
}

UNIT_TEST(what_was_not_received_is_taken_back) {
  struct journal journal = { 0 };
  for (uint32_t i = 0; i < 10; i++) {
    journal_append(&journal, chunk_of(0, i));
  }
  for (uint32_t i = 0; i < 4; i++) {
    journal_take_oldest(&journal);
  }
  for (uint32_t i = 9; i >= 4; i--) {
    assert_true(journal_take_newest(&journal).offset == i);
  }
  assert_true(journal.sent == 4 && journal.acked == 4);
}

UNIT_TEST(requeue_sorts) {
  struct chunk memory[8];
  struct requeue requeue = { .chunks = memory, .capacity = 8 };
  /* Numbers wrap at 32 bits: 0xFFFFFFFF comes before 0. */
  static const uint32_t messages[] = { 1, 0, 0xFFFFFFFF, 0, 1, 0xFFFFFFFE };
  static const uint64_t offsets[] = { 5, 9, 0, 2, 0, 7 };
  static const uint32_t expected[] = { 0xFFFFFFFE, 0xFFFFFFFF, 0, 0, 1, 1 };
  static const uint64_t expected_offsets[] = { 7, 0, 2, 9, 0, 5 };
  for (int round = 0; round < 3; round++) { /* the ring's head moves */
    for (int i = 0; i < 6; i++) {
      requeue_insert(&requeue, chunk_of(messages[i], offsets[i]));
    }
    for (uint32_t i = 0; i < 6; i++) {
      assert_int_equal(requeue_at(&requeue, i)->message, expected[i]);
    }
    for (int i = 0; i < 6; i++) {
      struct chunk chunk = requeue_take(&requeue);
      assert_int_equal(chunk.message, expected[i]);
      assert_true(chunk.offset == expected_offsets[i]);
    }
  }
}

UNIT_TEST(requeue_forgets_the_end) {
  struct chunk memory[4];
  struct requeue requeue = { .chunks = memory, .capacity = 4 };
  for (uint32_t i = 0; i < 4; i++) {
    requeue_insert(&requeue, chunk_of(0xFFFFFFFE + i, 0));
  }
  requeue_truncate(&requeue, 0x100000000); /* message number 2^32 */
  assert_int_equal(requeue.count, 2);
  assert_int_equal(requeue_at(&requeue, 1)->message, 0xFFFFFFFF);
}

UNIT_MAIN(NULL, NULL)
