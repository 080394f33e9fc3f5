/* SPDX-License-Identifier: Apache-2.0 */
/* Order, and removal while walking. */
#include "common/list.h"

#include <string.h>

#include "tests/lib/unit.h"

struct item {
  char name;
  struct list_node node;
};

/* The names in the list, forwards; checks that the backward links say the same. */
static const char *names_of(const struct list *list) {
  static char forward[16];
  size_t count = 0;
  LIST_FOR_EACH(node, list) {
    forward[count++] = LIST_ENTRY(node, struct item, node)->name;
    assert_ptr_equal(node->next->prev, node);
    assert_ptr_equal(node->prev->next, node);
  }
  forward[count] = '\0';
  return forward;
}

UNIT_TEST(nodes_keep_their_order) {
  struct item items[] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'd' } };
  struct list list;
  list_init(&list);
  assert_true(list_is_empty(&list));
  assert_null(list_first(&list));
  assert_null(list_last(&list));
  for (size_t i = 0; i < 4; i++) {
    list_push_back(&list, &items[i].node);
  }
  assert_string_equal(names_of(&list), "abcd");
  assert_ptr_equal(list_first(&list), &items[0].node);
  assert_ptr_equal(list_last(&list), &items[3].node);
}

UNIT_TEST(removed_node_is_alone) {
  struct item items[] = { { .name = 'a' }, { .name = 'b' } };
  struct list list;
  list_init(&list);
  list_push_back(&list, &items[0].node);
  list_push_back(&list, &items[1].node);
  list_remove(&items[0].node);
  list_remove(&items[0].node); /* again: does nothing */
  assert_string_equal(names_of(&list), "b");
  assert_ptr_equal(list_pop_front(&list), &items[1].node);
  assert_null(list_pop_front(&list));
  assert_true(list_is_empty(&list));
}

UNIT_TEST(walk_survives_removal) {
  struct item items[] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'd' } };
  struct list list;
  list_init(&list);
  for (size_t i = 0; i < 4; i++) {
    list_push_back(&list, &items[i].node);
  }
  LIST_FOR_EACH_SAFE(node, &list) {
    if (LIST_ENTRY(node, struct item, node)->name % 2 == 0) {
      list_remove(node);
    }
  }
  assert_string_equal(names_of(&list), "ac");
}

UNIT_MAIN(NULL, NULL)
