/* SPDX-License-Identifier: Apache-2.0 */
/* First in, first out; full and empty; counters that wrap; two threads. */
#include "common/ring.h"

#include <pthread.h>
#include <sched.h>

#include "tests/lib/unit.h"

static void items_come_out_in_order(void **state) {
  (void)state;
  int slots[4];
  struct ring ring;
  ring_init(&ring, slots, 4, sizeof slots[0]);
  assert_true(ring_is_empty(&ring));
  for (int i = 0; i < 4; i++) {
    assert_true(ring_push(&ring, &i));
  }
  int extra = 99;
  assert_false(ring_push(&ring, &extra));
  assert_null(ring_claim(&ring));
  assert_int_equal(ring_count(&ring), 4);
  for (int i = 0; i < 4; i++) {
    int out = -1;
    assert_true(ring_pop(&ring, &out));
    assert_int_equal(out, i);
  }
  int out = -1;
  assert_false(ring_pop(&ring, &out));
  assert_null(ring_peek(&ring));
  assert_int_equal(out, -1);
}

static void counters_wrap(void **state) {
  (void)state;
  int slots[2];
  struct ring ring;
  ring_init(&ring, slots, 2, sizeof slots[0]);
  ring.head = UINT32_MAX - 2;
  ring.tail = UINT32_MAX - 2;
  for (int i = 0; i < 10; i++) {
    int out;
    assert_true(ring_push(&ring, &i));
    assert_true(ring_push(&ring, &i));
    assert_false(ring_push(&ring, &i));
    assert_int_equal(ring_count(&ring), 2);
    assert_true(ring_pop(&ring, &out));
    assert_true(ring_pop(&ring, &out));
    assert_false(ring_pop(&ring, &out));
    assert_int_equal(out, i);
  }
}

static void slots_are_filled_in_place(void **state) {
  (void)state;
  struct {
    char name[24];
  } slots[2];
  struct ring ring;
  ring_init(&ring, slots, 2, sizeof slots[0]);
  strcpy(ring_claim(&ring), "first");
  assert_true(ring_is_empty(&ring)); /* not handed over yet */
  ring_publish(&ring);
  assert_string_equal(ring_peek(&ring), "first");
  assert_int_equal(ring_count(&ring), 1); /* a look takes nothing out */
  ring_release(&ring);
  assert_true(ring_is_empty(&ring));
}

enum { ITEMS = 100000 };

struct pair {
  uint64_t number;
  uint64_t inverse; /* ~number: shows a torn or early read */
};

static void *produce(void *ring) {
  for (uint64_t i = 0; i < ITEMS; i++) {
    struct pair pair = { i, ~i };
    while (!ring_push(ring, &pair)) {
      sched_yield();
    }
  }
  return NULL;
}

static void two_threads_lose_nothing(void **state) {
  (void)state;
  static struct pair slots[64];
  static struct ring ring;
  pthread_t producer;
  ring_init(&ring, slots, 64, sizeof slots[0]);
  assert_int_equal(pthread_create(&producer, NULL, produce, &ring), 0);
  for (uint64_t i = 0; i < ITEMS; i++) {
    struct pair pair;
    while (!ring_pop(&ring, &pair)) {
      sched_yield();
    }
    assert_true(pair.number == i);
    assert_true(pair.inverse == ~i);
  }
  pthread_join(producer, NULL);
  assert_true(ring_is_empty(&ring));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(items_come_out_in_order),
    cmocka_unit_test(counters_wrap),
    cmocka_unit_test(slots_are_filled_in_place),
    cmocka_unit_test(two_threads_lose_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
