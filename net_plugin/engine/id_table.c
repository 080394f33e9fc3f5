/* SPDX-License-Identifier: Apache-2.0 */
/* See id_table.h. */
#include "net_plugin/engine/id_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "net_plugin/engine/limits.h"

static struct list *bucket_of(const struct id_table *table, uint64_t hash) {
  return &table->buckets[hash & (table->bucket_count - 1)];
}

/* Keeps the order of insertion: the nodes of a new bucket all come from one old bucket. */
static int use_buckets(struct id_table *table, size_t bucket_count) {
  struct id_table old = *table;
  struct list *buckets = calloc(bucket_count, sizeof *buckets);
  if (!buckets) {
    return -ENOMEM;
  }
  for (size_t i = 0; i < bucket_count; i++) {
    list_init(&buckets[i]);
  }
  table->buckets = buckets;
  table->bucket_count = bucket_count;
  for (size_t i = 0; i < old.bucket_count; i++) {
    struct list_node *node;
    while ((node = list_pop_front(&old.buckets[i]))) {
      list_push_back(bucket_of(table, LIST_ENTRY(node, struct id_node, node)->hash), node);
    }
  }
  free(old.buckets);
  return 0;
}

static int begin(struct id_table *table) {
  int error = random_secret(table->key, sizeof table->key);
  return error ? error : use_buckets(table, ID_TABLE_FIRST_BUCKETS);
}

int id_table_add(struct id_table *table, struct id_node *node,
                 const uint8_t id[ID_TABLE_ID_BYTES]) {
  int error = table->buckets ? 0 : begin(table);
  if (error) {
    return error;
  }
  if (table->count == table->bucket_count) {
    use_buckets(table, 2 * table->bucket_count); /* fails: buckets get longer */
  }
  memcpy(node->id, id, ID_TABLE_ID_BYTES);
  node->hash = hash_short(table->key, id, ID_TABLE_ID_BYTES);
  list_push_back(bucket_of(table, node->hash), &node->node);
  table->count++;
  return 0;
}

void id_table_remove(struct id_table *table, struct id_node *node) {
  list_remove(&node->node);
  if (--table->count == 0) {
    free(table->buckets);
    table->buckets = NULL;
    table->bucket_count = 0;
  }
}

struct id_node *id_table_find(struct id_table *table, const uint8_t id[ID_TABLE_ID_BYTES]) {
  if (!table->buckets) {
    return NULL;
  }
  LIST_FOR_EACH(it, bucket_of(table, hash_short(table->key, id, ID_TABLE_ID_BYTES))) {
    struct id_node *node = LIST_ENTRY(it, struct id_node, node);
    table->compared++;
    if (hash_is_equal(node->id, id, ID_TABLE_ID_BYTES)) {
      return node;
    }
  }
  return NULL;
}
