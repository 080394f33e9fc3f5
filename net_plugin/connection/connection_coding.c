/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_state.h. Memory for compressed chunks: mapped lane by lane when a chunk needs it,
 * so that a connection on which nothing is compressed, as on most, takes no address space for it.
 * Where memory is not to be had a lane does without; the connection never ends for it. */
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/connection/limits.h"

static void unmap(struct lane_slot *slot) {
  if (slot->coding) {
    munmap(slot->coding, slot->coding_bytes);
  }
  slot->coding = NULL;
  slot->coding_bytes = 0;
}

static void *map(size_t bytes) {
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* As much as this chunk needs, not the longest possible: of 64 lanes 9 MiB with chunks of 128 KiB,
 * which is usual, and 33 with 512 KiB. */
void *connection_coding_memory(void *owner, unsigned lane, size_t bytes) {
  struct connection *connection = owner;
  struct lane_slot *slot = &connection->slots[lane];
  if (slot->coding_bytes < bytes && !slot->has_no_coding) {
    size_t grown = (bytes + CODING_GRAIN_BYTES - 1) & ~(CODING_GRAIN_BYTES - 1);
    unmap(slot);
    slot->coding = map(grown);
    slot->coding_bytes = slot->coding ? grown : 0;
    slot->has_no_coding = !slot->coding;
  }
  if (!slot->coding) {
    LOG_WARN_EVERY(
        CODING_WARN_INTERVAL_NS,
        "no memory to compress, expand or copy chunks of flow %u to %s on %s: they go as they "
        "are. Raise ulimit -v or vm.overcommit_ratio, or set STRATUS_COMPRESS=off",
        lane, connection->peer, connection->nic);
  }
  return slot->coding;
}

void connection_free_coding(struct connection *connection) {
  for (unsigned i = 0; i < connection->lanes; i++) {
    unmap(&connection->slots[i]);
  }
}

bool connection_takes_codec(const struct connection *connection, unsigned lane) {
  return connection->has_codec && !connection->slots[lane].has_no_coding;
}

void connection_lane_is_raw(struct connection *connection, unsigned lane) {
  link_lane_is_raw(connection->link, lane);
}
