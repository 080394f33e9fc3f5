/* SPDX-License-Identifier: Apache-2.0 */
/* id_table: finds things by an identity of 16 bytes, in a time that does not grow with their
 * number. The nodes live inside the things.
 *
 * Whoever asks for an identity may have proved nothing, and connections have identities that their
 * peers chose. So the hash is SipHash-2-4 with a key that is drawn by lot for each table: nobody
 * outside can choose identities that meet in one bucket and make it a long list. Identities
 * themselves are compared in a time that tells nothing about them.
 *
 * Owns: its buckets; an empty table has none, so it needs no end, and all zeros is an empty table.
 * Threads: the caller serialises.  Blocks: never.  Fails: id_table_add, for the first entry:
 * -ENOMEM, -EIO without randomness. Without memory for more buckets it goes on with those it has.
 */
#ifndef COMMON_ID_TABLE_H
#define COMMON_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/list.h"

#define ID_TABLE_ID_BYTES 16

struct id_node {
  uint8_t id[ID_TABLE_ID_BYTES];
  uint64_t hash;
  struct list_node node;
};

struct id_table {
  struct list *buckets;
  size_t bucket_count; /* a power of two */
  size_t count;
  uint64_t compared; /* nodes that searches have looked at, for tests */
  uint8_t key[HASH_SHORT_KEY_BYTES];
};

int id_table_add(struct id_table *table, struct id_node *node, const uint8_t id[ID_TABLE_ID_BYTES]);
void id_table_remove(struct id_table *table, struct id_node *node);
/* NULL: there is none. Of several with the same identity, the first that was added. */
struct id_node *id_table_find(struct id_table *table, const uint8_t id[ID_TABLE_ID_BYTES]);

#endif
