/* SPDX-License-Identifier: Apache-2.0 */
/* link_init: how a link lies in the memory that it is given. */
#include <assert.h>

#include "common/ablation.h"
#include "net_plugin/link/link_state.h"

/* Buffers start at cache lines, so that lanes do not share one. */
static size_t round_up(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

struct layout {
  size_t lanes, requeue, controls, targets, staging, nowhere, eager, end; /* offsets */
  size_t control_stride, eager_stride;
};

/* false: the configuration is impossible. */
static bool link_lay_out(const struct link_config *config, struct layout *layout) {
  if (config->lanes < 1 || config->lanes > WIRE_MAX_LANES || config->chunk_bytes < 4096 ||
      config->chunk_bytes > WIRE_MAX_CHUNK_BYTES || config->eager_bytes > config->chunk_bytes ||
      config->eager_slots > LINK_WINDOW / 2 || config->target_keys > WIRE_TARGET_KEYS) {
    return false;
  }
  bool is_sender = config->role == LINK_SENDER;
  size_t requeue_bytes = config->lanes * LINK_JOURNAL * sizeof(struct chunk);
  size_t copies = !is_sender                ? config->eager_slots
                  : config->target_keys > 0 ? OUTGOING_COPIES_REGISTERED
                                            : OUTGOING_COPIES;
  size_t targets_bytes = 0, told_bytes = 0; /* in memory, in a WINDOW */
  if (config->target_keys > 0) {
    size_t target = is_sender ? sizeof(struct told_target) : sizeof(struct wire_target);
    targets_bytes = round_up(LINK_WINDOW * target);
    told_bytes = WIRE_MAX_TARGETS * wire_target_bytes(config->target_keys);
  }
  layout->control_stride = round_up(config->lanes * WIRE_ACK_BYTES + told_bytes);
  layout->eager_stride = round_up(config->eager_bytes);
  layout->lanes = round_up(sizeof(struct link));
  layout->requeue = layout->lanes + round_up(config->lanes * sizeof(struct lane));
  layout->controls = layout->requeue + (is_sender ? round_up(requeue_bytes) : 0);
  layout->targets = layout->controls + config->lanes * layout->control_stride;
  layout->eager = layout->targets + targets_bytes;
  layout->staging = layout->eager + copies * layout->eager_stride;
  layout->nowhere = layout->staging + (is_sender ? 0 : config->lanes * WIRE_MAX_POLLED_BYTES);
  layout->end = layout->nowhere + (is_sender ? 0 : WIRE_MAX_CHUNK_BYTES);
  return true;
}

size_t link_memory_bytes(const struct link_config *config) {
  struct layout layout;
  return link_lay_out(config, &layout) ? layout.end : 0;
}

struct link *link_init(void *memory, const struct link_config *config, uint64_t now_ns) {
  struct layout layout;
  bool is_possible = link_lay_out(config, &layout);
  assert(is_possible);
  (void)is_possible;
  uint8_t *bytes = memory;
  struct link *link = memory;
  link->config = *config;
  if (ablation_has(config->ablated, ABLATION_NARROW)) {
    link->config.width = NULL;
  }
  if (ablation_has(config->ablated, ABLATION_METER)) {
    link->config.meter = NULL;
  }
  if (ablation_has(config->ablated, ABLATION_SPREAD)) {
    link->config.redials_slow_lanes = false;
  }
  link->lanes = (struct lane *)(void *)(bytes + layout.lanes);
  for (unsigned lane = 0; lane < config->lanes; lane++) {
    link->lanes[lane].control = bytes + layout.controls + lane * layout.control_stride;
  }
  failover_init(&link->failover, config, now_ns);
  liveness_init(&link->liveness, config->timeout_ns, config->stopped_timeout_ns, now_ns);
  link->due_ns = link->watch_ns = LINK_NO_DEADLINE;
  link->rescued_ns = LINK_NO_DEADLINE;
  void *targets = config->target_keys > 0 ? bytes + layout.targets : NULL;
  if (config->role == LINK_SENDER) {
    link->told_targets = targets;
    link->taken.eager_slots = config->eager_slots;
    requeue_init(&link->requeue, (struct chunk *)(void *)(bytes + layout.requeue),
                 config->lanes * LINK_JOURNAL);
    stripe_init(&link->stripe, config->chunk_bytes);
    link->stripe.ablated = config->ablated;
    spread_init(&link->spread, config->lanes, config->paths);
    outgoing_init(&link->outgoing, config->eager_bytes, bytes + layout.eager,
                  layout.staging - layout.eager);
  } else {
    link->nowhere = bytes + layout.nowhere;
    link->targets = targets;
    for (unsigned lane = 0; lane < config->lanes; lane++) {
      link->lanes[lane].staging = bytes + layout.staging + lane * WIRE_MAX_POLLED_BYTES;
    }
    credit_init(&link->given, config->eager_slots);
    incoming_init(&link->incoming, config->eager_bytes, config->eager_slots, bytes + layout.eager,
                  layout.eager_stride);
  }
  return link;
}

void link_end(struct link *link) {
  meter_drop(link->config.meter, link, UINT64_MAX);
}
