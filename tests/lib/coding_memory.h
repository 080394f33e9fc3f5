/* SPDX-License-Identifier: Apache-2.0 */
/* coding_memory: what a link asks its owner for, in link_config.coding_memory; the owner of the
 * test is a struct coding_memory. Each piece has exactly the bytes that were asked for, so that a
 * sanitizer sees who goes beyond. Owns: these.  Threads: the link's.  Blocks: never.  Fails: where
 * told to. */
#ifndef TESTS_LIB_CODING_MEMORY_H
#define TESTS_LIB_CODING_MEMORY_H

#include <stdlib.h>

#include "net_plugin/link/link.h"

struct coding_memory {
  void *lanes[WIRE_MAX_LANES];
  uint64_t refused; /* lanes for which there is none */
};

static inline void *coding_memory_get(void *owner, unsigned lane, size_t bytes) {
  struct coding_memory *memory = owner;
  free(memory->lanes[lane]);
  memory->lanes[lane] = (memory->refused >> lane & 1) != 0 ? NULL : malloc(bytes);
  return memory->lanes[lane];
}

/* It is as new after that. */
static inline void coding_memory_free(struct coding_memory *memory) {
  for (unsigned lane = 0; lane < WIRE_MAX_LANES; lane++) {
    free(memory->lanes[lane]);
  }
  *memory = (struct coding_memory){ .refused = 0 };
}

#endif
