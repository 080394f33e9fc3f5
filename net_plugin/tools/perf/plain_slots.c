/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of free slots for each flow, so that a slow flow leaves the others theirs. */
#include "net_plugin/tools/perf/plain_slots.h"

#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "net_plugin/tools/perf/failure.h"

/* As much as a flow's socket buffer holds as it comes, so that slots are no limit. */
#define FLOW_BYTES (UINT64_C(4) << 20)
enum { SLOTS_MIN = 16 };

int plain_slots_make(struct plain_slots *slots, int flow_count, uint64_t slot_bytes,
                     const uint8_t *contents) {
  uint64_t wanted = FLOW_BYTES / slot_bytes;
  *slots = (struct plain_slots){ .flow_count = flow_count };
  slots->slot_bytes = (slot_bytes + 4095) & ~UINT64_C(4095);
  slots->per_flow = wanted < SLOTS_MIN         ? SLOTS_MIN
                    : wanted > PLAIN_SLOTS_MAX ? PLAIN_SLOTS_MAX
                                               : (int)wanted;
  slots->memory = aligned_alloc(4096, (size_t)flow_count * plain_slots_bytes_per_flow(slots));
  slots->stacks = calloc((size_t)flow_count, sizeof *slots->stacks);
  if (!slots->memory || !slots->stacks) {
    plain_slots_free(slots);
    return failure("out of memory: %d flows with %d messages of %llu bytes each", flow_count,
                   slots->per_flow, (unsigned long long)slot_bytes);
  }
  for (int flow = 0; flow < flow_count; flow++) {
    for (int slot = slots->per_flow; slot-- > 0;) {
      memcpy(plain_slots_at(slots, flow, slot), contents, slot_bytes);
      plain_slots_give_back(slots, flow, slot);
    }
  }
  return CLI_OK;
}

void plain_slots_free(struct plain_slots *slots) {
  free(slots->memory);
  free(slots->stacks);
  slots->memory = NULL;
  slots->stacks = NULL;
}

int plain_slots_take(struct plain_slots *slots, int flow) {
  struct plain_slot_stack *stack = &slots->stacks[flow];
  return stack->count > 0 ? stack->free[--stack->count] : PLAIN_SLOTS_NONE;
}

void plain_slots_give_back(struct plain_slots *slots, int flow, int slot) {
  struct plain_slot_stack *stack = &slots->stacks[flow];
  stack->free[stack->count++] = (int16_t)slot;
}

uint8_t *plain_slots_at(const struct plain_slots *slots, int flow, int slot) {
  uint64_t number = (uint64_t)flow * (uint64_t)slots->per_flow + (uint64_t)slot;
  return slots->memory + number * slots->slot_bytes;
}

uint64_t plain_slots_bytes_per_flow(const struct plain_slots *slots) {
  return (uint64_t)slots->per_flow * slots->slot_bytes;
}

bool plain_slots_are_free(const struct plain_slots *slots) {
  for (int flow = 0; flow < slots->flow_count && slots->memory; flow++) {
    if (slots->stacks[flow].count < slots->per_flow) {
      return false;
    }
  }
  return true;
}
