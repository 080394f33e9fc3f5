/* SPDX-License-Identifier: Apache-2.0 */
/* See limit.h. */
#include "net_plugin/policy/limit.h"

void limit_add(struct limit_sum *sum, const struct limit_sum *added) {
  sum->ns += added->ns;
  sum->in_flight_ns += added->in_flight_ns;
  sum->network_ns += added->network_ns;
  sum->peer_ns += added->peer_ns;
  sum->acked_bytes += added->acked_bytes;
  sum->retransmits += added->retransmits;
}

void limit_lane_up(struct limit_lane *lane, uint64_t now_ns) {
  *lane = (struct limit_lane){ .since_ns = now_ns, .measured_ns = now_ns };
}

/* Of a counter of the kernel, which may begin again. */
static uint64_t limit_counted(uint64_t before, uint64_t after) {
  return after > before ? after - before : 0;
}

void limit_lane_idle(struct limit_lane *lane, uint64_t now_ns) {
  lane->now.in_flight_ns += now_ns - lane->since_ns;
}

static uint64_t limit_least(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

/* The largest part of the time of `past`. */
static enum policy_limit limit_judge(const struct limit_sum *past) {
  if (past->in_flight_ns * 2 < past->ns) {
    return POLICY_LIMIT_APPLICATION;
  }
  if (past->network_ns * 2 >= past->in_flight_ns) {
    return POLICY_LIMIT_NETWORK;
  }
  return past->peer_ns * 2 >= past->in_flight_ns ? POLICY_LIMIT_PEER : POLICY_LIMIT_CPU;
}

/* Older measurements count half after LIMIT_WINDOW_IN_FLIGHT_NS of time. */
static void limit_remember(struct limit_lane *lane) {
  struct limit_sum *past = &lane->past;
  limit_add(past, &lane->now);
  lane->limit = limit_judge(past);
  if (past->ns >= 2 * LIMIT_WINDOW_IN_FLIGHT_NS) {
    *past = (struct limit_sum){ .ns = past->ns / 2,
                                .in_flight_ns = past->in_flight_ns / 2,
                                .network_ns = past->network_ns / 2,
                                .peer_ns = past->peer_ns / 2 };
  }
}

struct limit_sum limit_lane_measured(struct limit_lane *lane,
                                     const struct policy_transport *transport, bool is_idle,
                                     uint64_t now_ns) {
  struct limit_sum *sum = &lane->now;
  if (!is_idle) {
    sum->in_flight_ns += now_ns - lane->since_ns;
    lane->since_ns = now_ns;
  }
  sum->ns = now_ns - lane->measured_ns;
  uint64_t busy_ns = limit_counted(lane->measured.busy_us, transport->busy_us) * 1000;
  uint64_t peer_ns = limit_counted(lane->measured.peer_us, transport->peer_us) * 1000;
  sum->peer_ns = limit_least(peer_ns, busy_ns);
  sum->acked_bytes = limit_counted(lane->measured.acked_bytes, transport->acked_bytes);
  sum->retransmits = limit_counted(lane->measured.retransmits, transport->retransmits);
  sum->network_ns = transport->is_app_limited ? 0 : busy_ns - sum->peer_ns;
  limit_remember(lane);
  struct limit_sum passed = *sum;
  lane->now = (struct limit_sum){ .ns = 0 };
  lane->measured = *transport;
  lane->measured_ns = now_ns;
  return passed;
}
