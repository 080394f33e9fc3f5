/* SPDX-License-Identifier: Apache-2.0 */
/* id_table: an intrusive hash table with identities of 16 bytes as keys.
 *
 * Lookups may come from unauthenticated peers, and peers choose identities. So the hash is
 * SipHash-2-4 with a random key per table: nobody can choose identities that collide in one bucket.
 * Identities are compared in constant time.
 *
 * Owns: its buckets; all zeros is an empty table, which has none and needs no cleanup.
 * Threads: the caller serialises.  Blocks: never.  Fails: id_table_add, for the first entry:
 * -ENOMEM, what getrandom fails with. Without memory for more buckets it continues with those it
 * has.
 */
#ifndef NET_PLUGIN_ENGINE_ID_TABLE_H
#define NET_PLUGIN_ENGINE_ID_TABLE_H

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
  uint64_t compared; /* nodes visited by lookups, for tests */
  uint8_t key[HASH_SHORT_KEY_BYTES];
};

int id_table_add(struct id_table *table, struct id_node *node, const uint8_t id[ID_TABLE_ID_BYTES]);
void id_table_remove(struct id_table *table, struct id_node *node);
/* NULL: not found. Of several with the same identity, the first added. */
struct id_node *id_table_find(struct id_table *table, const uint8_t id[ID_TABLE_ID_BYTES]);

#endif
