/* SPDX-License-Identifier: Apache-2.0 */
/* link_init: how a link lies in the memory that it is given. */
#include <assert.h>

#include "net_plugin/link/link_state.h"

static_assert(WIRE_MAX_LANES == POLICY_MAX_LANES &&
                  WIRE_MAX_CHUNK_BYTES == POLICY_MAX_CHUNK_BYTES &&
                  WIRE_MAX_LL_BYTES % POLICY_GRAIN_BYTES == 0 && LINK_FLIGHT <= WIRE_MAX_FLIGHT,
              "policies know the limits of the wire");

/* Buffers start at cache lines, so that lanes do not share one. */
static size_t round_up(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

struct layout {
  size_t lanes, policy, flight, controls, remote_buffers, staging, nowhere, eager,
      end;                                             /* offsets */
  size_t control_stride, staging_stride, eager_stride; /* staging: 0 of a sender */
};

/* false: the configuration is impossible. */
static bool link_lay_out(const struct link_config *config, struct layout *layout) {
  if (config->policy.lanes < 1 || config->policy.lanes > WIRE_MAX_LANES ||
      config->policy.chunk_bytes < 4096 || config->policy.chunk_bytes > WIRE_MAX_CHUNK_BYTES ||
      config->eager_bytes > config->policy.chunk_bytes || config->eager_slots > LINK_WINDOW / 2 ||
      config->remote_keys > WIRE_REMOTE_KEYS ||
      (config->remote_keys > 0 && config->policy.compress != POLICY_COMPRESS_OFF)) {
    return false;
  }
  bool is_sender = config->role == LINK_SENDER;
  size_t flight_bytes = LINK_FLIGHT * sizeof(struct flight_chunk);
  size_t copies = !is_sender                ? config->eager_slots
                  : config->remote_keys > 0 ? OUTGOING_COPIES_REGISTERED
                                            : OUTGOING_COPIES;
  size_t remote_buffers_bytes = 0, told_bytes = 0; /* in memory, in a WINDOW */
  if (config->remote_keys > 0) {
    size_t remote_buffer =
        is_sender ? sizeof(struct known_remote_buffer) : sizeof(struct wire_remote_buffer);
    remote_buffers_bytes = round_up(LINK_WINDOW * remote_buffer);
    told_bytes = WIRE_MAX_REMOTE_BUFFERS * wire_remote_buffer_bytes(config->remote_keys);
  }
  layout->control_stride = round_up(WIRE_MAX_LANDED_BYTES + told_bytes);
  layout->staging_stride = is_sender ? 0 : WIRE_MAX_LL_BYTES;
  layout->eager_stride = round_up(config->eager_bytes);
  layout->lanes = round_up(sizeof(struct link));
  layout->policy = layout->lanes + round_up(config->policy.lanes * sizeof(struct link_lane));
  layout->flight = layout->policy + (is_sender ? round_up(policy_bytes()) : 0);
  layout->controls = layout->flight + (is_sender ? round_up(flight_bytes) : 0);
  layout->remote_buffers = layout->controls + config->policy.lanes * layout->control_stride;
  layout->eager = layout->remote_buffers + remote_buffers_bytes;
  layout->staging = layout->eager + copies * layout->eager_stride;
  layout->nowhere = layout->staging + config->policy.lanes * layout->staging_stride;
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
  uint64_t most_ns = LINK_NO_DEADLINE / 2; /* so that times and timeouts can be added */
  link->config = *config;
  config = &link->config;
  link->config.timeout_ns = config->timeout_ns < most_ns ? config->timeout_ns : most_ns;
  uint64_t stopped_ns = config->stopped_timeout_ns < most_ns ? config->stopped_timeout_ns : most_ns;
  link->config.stopped_timeout_ns =
      stopped_ns > config->timeout_ns ? stopped_ns : config->timeout_ns;
  link->lanes = (struct link_lane *)(void *)(bytes + layout.lanes);
  link->controls = bytes + layout.controls;
  link->control_stride = layout.control_stride;
  link->staging = bytes + layout.staging;
  link->now_ns = now_ns;
  link->wanted = link->least = 1;
  link->ceiling = WIRE_MAX_LANES;
  link->may_dial = config->role == LINK_SENDER;
  link->retry_ns = LINK_NO_DEADLINE;
  link->down_since_ns = now_ns;
  link->random = config->seed;
  link->liveness = (struct liveness){
    .spoke_ns = now_ns,
    .heard_ns = now_ns,
    .waiting_ns = now_ns,
    .revived_ns = now_ns,
    .rose_ns = now_ns,
    .quiet_ns = now_ns,
  };
  link->answer_ns = LINK_TAIL_ANSWER_NS;
  link->due_ns = link->watch_ns = link->tail_ns = link->partial_ns = LINK_NO_DEADLINE;
  link->rescued_ns = LINK_NO_DEADLINE;
  link->given.deadline_ns = link->given.opening_ns = LINK_NO_DEADLINE;
  void *remote_buffers = config->remote_keys > 0 ? bytes + layout.remote_buffers : NULL;
  if (config->role == LINK_SENDER) {
    link->known_remote_buffers = remote_buffers;
    link->flight.ring = (struct flight_chunk *)(void *)(bytes + layout.flight);
    link->policy = (struct policy *)(void *)(bytes + layout.policy);
    policy_init(link->policy, &(struct policy_lanes){
                                  .config = &config->policy,
                                  .up = &link->up,
                                  .rdma = &link->rdma,
                                  .first = &link->lanes->policy,
                                  .stride = sizeof *link->lanes,
                              });
    outgoing_init(&link->outgoing, config->eager_bytes, bytes + layout.eager,
                  layout.staging - layout.eager);
  } else {
    link->nowhere = bytes + layout.nowhere;
    link->remote_buffers = remote_buffers;
    incoming_init(&link->incoming, config->eager_bytes, config->eager_slots, bytes + layout.eager,
                  layout.eager_stride);
  }
  link->repeat_budget = REPEAT_BURST_BYTES;
  return link;
}

void link_end(struct link *link) {
  if (link->policy != NULL) {
    policy_end(link->policy);
  }
}
