/* SPDX-License-Identifier: Apache-2.0 */
/* id_tree: finds what has an identity of 16 bytes: the C library's balanced tree, whose root is
 * NULL while it is empty. Lookups may come from unauthenticated peers, and peers choose identities:
 * whatever they are, a search looks at few.
 * Owns: its nodes; the identities stay where they are, in the things that have them.  Threads: the
 * caller serialises.  Blocks: never.  Fails: id_tree_add: -ENOMEM; -EEXIST: another has it. */
#ifndef NET_PLUGIN_ENGINE_ID_TREE_H
#define NET_PLUGIN_ENGINE_ID_TREE_H

#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <string.h>

#define ID_TREE_BYTES 16

static inline int id_tree_compare(const void *id, const void *other) {
  return memcmp(id, other, ID_TREE_BYTES);
}

static inline int id_tree_add(void **tree, uint8_t id[ID_TREE_BYTES]) {
  uint8_t **found = (uint8_t **)tsearch(id, tree, id_tree_compare);
  return !found ? -ENOMEM : *found != id ? -EEXIST : 0;
}

static inline void id_tree_remove(void **tree, const uint8_t id[ID_TREE_BYTES]) {
  tdelete(id, tree, id_tree_compare);
}

/* The identity that was added, for LIST_ENTRY; NULL: not found. */
static inline uint8_t *id_tree_find(void *const *tree, const uint8_t id[ID_TREE_BYTES]) {
  uint8_t **found = (uint8_t **)tfind(id, tree, id_tree_compare);
  return found ? *found : NULL;
}

#endif
