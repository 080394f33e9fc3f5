/* SPDX-License-Identifier: Apache-2.0 */
/* list: doubly linked list whose nodes are members of the listed structs (intrusive).
 * Owns: nothing; the caller owns the nodes.  Threads: the caller serialises.
 * Blocks: never.  Fails: cannot; nothing is allocated.
 *
 * A node that is in no list points to itself, so list_remove may be called twice. */
#ifndef COMMON_LIST_H
#define COMMON_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
  struct list_node *prev;
  struct list_node *next;
};

struct list {
  struct list_node head; /* head.next is the first node, head.prev the last */
};

/* The struct of `type` whose member `member` is the node. */
#define LIST_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* The body must not remove `node`. */
#define LIST_FOR_EACH(node, list)                                                                  \
  for (struct list_node *node = (list)->head.next; node != &(list)->head; node = node->next)

/* The body may remove `node` and nothing else. */
#define LIST_FOR_EACH_SAFE(node, list)                                                             \
  for (struct list_node *node = (list)->head.next, *node##_next = node->next;                      \
       node != &(list)->head; node = node##_next, node##_next = node->next)

static inline void list_node_init(struct list_node *node) {
  node->prev = node;
  node->next = node;
}

static inline void list_init(struct list *list) {
  list_node_init(&list->head);
}

static inline bool list_is_empty(const struct list *list) {
  return list->head.next == &list->head;
}

static inline void list_push_back(struct list *list, struct list_node *node) {
  node->prev = list->head.prev;
  node->next = &list->head;
  node->prev->next = node;
  node->next->prev = node;
}

static inline void list_remove(struct list_node *node) {
  node->prev->next = node->next;
  node->next->prev = node->prev;
  list_node_init(node);
}

/* NULL if the list is empty. */
static inline struct list_node *list_first(const struct list *list) {
  return list_is_empty(list) ? NULL : list->head.next;
}

static inline struct list_node *list_last(const struct list *list) {
  return list_is_empty(list) ? NULL : list->head.prev;
}

/* Removes and returns the first node; NULL if the list is empty. */
static inline struct list_node *list_pop_front(struct list *list) {
  struct list_node *node = list_first(list);
  if (node) {
    list_remove(node);
  }
  return node;
}

#endif
