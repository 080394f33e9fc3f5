/* SPDX-License-Identifier: Apache-2.0 */
/* plain_slots: memory for sends without a copy: a slot is given back when the kernel has said that
 * it needs it no more. The one that came back last is taken first, as its bytes may be in a cache.
 * Owns: its memory, until plain_slots_free.  Threads: the main thread.  Blocks: never.
 * Fails: without memory, with a message. */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAIN_SLOTS_H
#define NET_PLUGIN_TOOLS_PERF_PLAIN_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAIN_SLOTS_MAX = 256, PLAIN_SLOTS_NONE = -1 };

struct plain_slots {
  uint8_t *memory; /* NULL: none */
  uint64_t slot_bytes;
  int flow_count, per_flow;
  struct plain_slot_stack {
    int count;
    int16_t free[PLAIN_SLOTS_MAX];
  } * stacks; /* one for each flow */
};

/* With the contents in all of them. */
int plain_slots_make(struct plain_slots *slots, int flow_count, uint64_t slot_bytes,
                     const uint8_t *contents);
void plain_slots_free(struct plain_slots *slots);

/* PLAIN_SLOTS_NONE while the kernel has all of them. */
int plain_slots_take(struct plain_slots *slots, int flow);
void plain_slots_give_back(struct plain_slots *slots, int flow, int slot);
uint8_t *plain_slots_at(const struct plain_slots *slots, int flow, int slot);
uint64_t plain_slots_bytes_per_flow(const struct plain_slots *slots);
/* The kernel has none of them. */
bool plain_slots_are_free(const struct plain_slots *slots);

#endif
