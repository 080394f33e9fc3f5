/* SPDX-License-Identifier: Apache-2.0 */
/* limit: what holds a lane up, from what its transport reports.
 * Owns: only its own structs.  Threads: the link's.  Blocks: never.  Fails: cannot.
 *
 * A lane is in flight while it has bytes that the peer's process has not acknowledged. In the part
 * of that time in which the peer's kernel had not acknowledged them either, TCP was busy
 * (tcpi_busy_time). Of that part the network is the limit where the flow had always more to send
 * than the network took (not tcpi_delivery_rate_app_limited), and the peer where its window was
 * closed (tcpi_rwnd_limited). In the rest of the time in flight it was threads that did not run or
 * did not keep up, ours or the peer's; and while nothing is in flight the application is the limit.
 * Linux counts tcpi_busy_time in jiffies of 1 to 10 ms, so short windows are not exact, and only
 * sums over LIMIT_WINDOW_IN_FLIGHT_NS of lanes are judged.
 *
 * Evidence, by kind of congestion control, with and without caps: docs/measurements.md. */
#ifndef NET_PLUGIN_POLICY_LIMIT_H
#define NET_PLUGIN_POLICY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/policy/policy_lane.h"

/* What passed on lanes and their connections in some time. */
struct limit_window {
  uint64_t in_flight_ns; /* of each lane, with bytes in flight */
  uint64_t network_ns;   /* of these, network-limited */
  uint64_t acked_bytes;  /* by the peer's kernel */
  uint64_t retransmits;  /* packets that were sent again */
  uint64_t loaded_ns;    /* of each connection, with anything in flight */
  uint64_t bytes;        /* acknowledged, before coding */
};

void limit_add(struct limit_window *sum, const struct limit_window *added);

/* Something is in flight, and nothing was before. */
static inline void limit_lane_busy(struct policy_lane *lane, uint64_t now_ns) {
  lane->since_ns = now_ns;
}
/* Nothing is in flight any more. The time may be before the last measurement. */
static inline void limit_lane_idle(struct policy_lane *lane, uint64_t now_ns) {
  lane->in_flight_ns += now_ns > lane->since_ns ? now_ns - lane->since_ns : 0;
}
/* What passed since the last measurement, or since the lane came up. */
struct limit_window limit_lane_measured(struct policy_lane *lane,
                                        const struct policy_transport *transport, bool is_idle,
                                        uint64_t now_ns);
/* What held the lane up for the largest part of its time. */
enum policy_limit limit_of_lane(const struct policy_lane *lane);

/* The network was the limit for most of the time in flight. */
static inline bool limit_is_network(const struct limit_window *window) {
  return window->network_ns * 100 >= window->in_flight_ns * LIMIT_NETWORK_PERCENT;
}
/* What a connection delivers while it has anything in flight, in KB/s: what the network, the peer
 * and threads allow, whatever pauses the application and other hosts make. */
static inline uint64_t limit_speed(const struct limit_window *window) {
  return window->bytes * 1000 / (window->loaded_ns / 1000 + 1);
}

/* The same in bytes on the wire, by the kernel's count: a window has few chunks, as they are large,
 * and one more or less is noise. */
static inline uint64_t limit_wire_speed(const struct limit_window *window) {
  return window->acked_bytes * 1000 / (window->loaded_ns / 1000 + 1);
}

#endif
