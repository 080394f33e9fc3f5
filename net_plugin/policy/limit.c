/* SPDX-License-Identifier: Apache-2.0 */
/* See limit.h. */
#include "net_plugin/policy/limit.h"

void limit_add(struct limit_window *sum, const struct limit_window *added) {
  sum->in_flight_ns += added->in_flight_ns;
  sum->network_ns += added->network_ns;
  sum->acked_bytes += added->acked_bytes;
  sum->retransmits += added->retransmits;
  sum->loaded_ns += added->loaded_ns;
  sum->bytes += added->bytes;
}

/* Of a counter of the kernel, which may begin again. */
static uint64_t limit_counted(uint64_t before, uint64_t after) {
  return after > before ? after - before : 0;
}

enum policy_limit limit_of_lane(const struct policy_lane *lane) {
  if (lane->past_ns == 0) {
    return POLICY_LIMIT_UNKNOWN;
  }
  if (lane->past_in_flight_ns * 2 < lane->past_ns) {
    return POLICY_LIMIT_APPLICATION;
  }
  if (lane->past_network_ns * 2 >= lane->past_in_flight_ns) {
    return POLICY_LIMIT_NETWORK;
  }
  return lane->past_peer_ns * 2 >= lane->past_in_flight_ns ? POLICY_LIMIT_PEER : POLICY_LIMIT_CPU;
}

/* Older measurements count half after LIMIT_WINDOW_IN_FLIGHT_NS of time. */
static void limit_remember(struct policy_lane *lane, uint64_t ns, uint64_t peer_ns,
                           const struct limit_window *passed) {
  unsigned halved = lane->past_ns >= 2 * LIMIT_WINDOW_IN_FLIGHT_NS ? 1 : 0;
  lane->past_ns = (lane->past_ns >> halved) + ns;
  lane->past_in_flight_ns = (lane->past_in_flight_ns >> halved) + passed->in_flight_ns;
  lane->past_network_ns = (lane->past_network_ns >> halved) + passed->network_ns;
  lane->past_peer_ns = (lane->past_peer_ns >> halved) + peer_ns;
}

struct limit_window limit_lane_measured(struct policy_lane *lane,
                                        const struct policy_transport *transport, bool is_idle,
                                        uint64_t now_ns) {
  const struct policy_transport *before = &lane->measured;
  if (!is_idle) {
    limit_lane_idle(lane, now_ns);
    limit_lane_busy(lane, now_ns);
  }
  uint64_t busy_ns = limit_counted(before->busy_us, transport->busy_us) * 1000;
  uint64_t peer_ns = limit_counted(before->peer_us, transport->peer_us) * 1000;
  peer_ns = peer_ns < busy_ns ? peer_ns : busy_ns;
  struct limit_window passed = {
    .in_flight_ns = lane->in_flight_ns,
    .network_ns = transport->is_app_limited ? 0 : busy_ns - peer_ns,
    .acked_bytes = limit_counted(before->acked_bytes, transport->acked_bytes),
    .retransmits = limit_counted(before->retransmits, transport->retransmits),
  };
  limit_remember(lane, now_ns - lane->measured_ns, peer_ns, &passed);
  lane->in_flight_ns = 0;
  lane->measured = *transport;
  lane->measured_ns = now_ns;
  return passed;
}
