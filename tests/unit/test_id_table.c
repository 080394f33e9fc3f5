/* SPDX-License-Identifier: Apache-2.0 */
/* What is found, and how many entries a search looks at, also when somebody chooses identities that
 * would meet in one bucket. */
#include "net_plugin/engine/id_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fault.h"
#include "tests/lib/unit.h"

enum { MANY = 4000 };

static struct id_node nodes[MANY];

static const uint8_t *id_of(unsigned number) {
  static uint8_t id[ID_TABLE_ID_BYTES];
  memset(id, 0, sizeof id);
  memcpy(id, &number, sizeof number);
  return id;
}

static void fill(struct id_table *table, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) {
    assert_int_equal(id_table_add(table, &nodes[i], id_of(i)), 0);
  }
}

static void empty(struct id_table *table, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) {
    id_table_remove(table, &nodes[i]);
  }
}

UNIT_TEST(what_is_in_it_is_found) {
  struct id_table table = { 0 };
  assert_null(id_table_find(&table, id_of(0)));
  fill(&table, 0, MANY);
  assert_int_equal(table.count, MANY);
  empty(&table, MANY / 2, MANY - 1);
  for (unsigned i = 0; i < MANY; i++) {
    bool is_there = i < MANY / 2 || i == MANY - 1;
    assert_ptr_equal(id_table_find(&table, id_of(i)), is_there ? &nodes[i] : NULL);
  }
  empty(&table, 0, MANY / 2);
  empty(&table, MANY - 1, MANY);
  assert_null(table.buckets);
  fill(&table, 0, 1);
  assert_ptr_equal(id_table_find(&table, id_of(0)), &nodes[0]);
  empty(&table, 0, 1);
}

UNIT_TEST(the_first_of_two_is_found) {
  struct id_table table = { 0 };
  assert_int_equal(id_table_add(&table, &nodes[0], id_of(7)), 0);
  assert_int_equal(id_table_add(&table, &nodes[1], id_of(7)), 0);
  for (unsigned i = 100; i < 200; i++) { /* it grows meanwhile */
    assert_int_equal(id_table_add(&table, &nodes[i], id_of(i)), 0);
  }
  assert_ptr_equal(id_table_find(&table, id_of(7)), &nodes[0]);
  id_table_remove(&table, &nodes[0]);
  assert_ptr_equal(id_table_find(&table, id_of(7)), &nodes[1]);
  id_table_remove(&table, &nodes[1]);
  empty(&table, 100, 200);
}

/* Of those that are there, and of those that are not: a stranger asks for these. */
UNIT_TEST(a_search_looks_at_few) {
  struct id_table table = { 0 };
  for (unsigned count = 500, from = 0; count <= MANY; from = count, count *= 2) {
    fill(&table, from, count);
    table.compared = 0;
    for (unsigned i = 0; i < 2 * count; i++) {
      id_table_find(&table, id_of(i));
    }
    /* 1.5 of those that are there, 1 of the others, on average and where a table is full. */
    assert_true(table.compared < 4 * count);
  }
  empty(&table, 0, MANY);
}

/* Identities that meet in one bucket of one table are spread in the next. */
UNIT_TEST(nobody_can_choose_a_bucket) {
  struct id_table one = { 0 }, other = { 0 };
  unsigned chosen[MANY / 16], count = 0;
  fill(&one, 0, MANY / 2);
  for (unsigned i = MANY; count < MANY / 16; i++) {
    if ((hash_short(one.key, id_of(i), ID_TABLE_ID_BYTES) & (one.bucket_count - 1)) == 0) {
      chosen[count++] = i;
    }
  }
  empty(&one, 0, MANY / 2);
  for (unsigned i = 0; i < count; i++) {
    assert_int_equal(id_table_add(&other, &nodes[i], id_of(chosen[i])), 0);
  }
  for (unsigned i = 0; i < count; i++) {
    assert_ptr_equal(id_table_find(&other, id_of(chosen[i])), &nodes[i]);
  }
  assert_true(other.compared < 4 * count); /* all in one bucket: count / 2 each */
  empty(&other, 0, count);
}

UNIT_TEST(it_goes_on_without_memory) {
  struct id_table table = { 0 };
  fault_fail_allocation(1);
  assert_int_equal(id_table_add(&table, &nodes[0], id_of(0)), -ENOMEM);
  assert_true(fault_clear());
  fault_fail(FAULT_RANDOM, 1, EAGAIN);
  assert_int_equal(id_table_add(&table, &nodes[0], id_of(0)), -EAGAIN);
  assert_true(fault_clear());
  assert_null(id_table_find(&table, id_of(0)));
  fill(&table, 0, 16);
  fault_fail_allocation(1);
  fill(&table, 16, 17);
  assert_true(fault_clear());
  for (unsigned i = 0; i < 17; i++) {
    assert_ptr_equal(id_table_find(&table, id_of(i)), &nodes[i]);
  }
  assert_int_equal(table.bucket_count, 16);
  empty(&table, 0, 17);
}

UNIT_MAIN(NULL, NULL)
