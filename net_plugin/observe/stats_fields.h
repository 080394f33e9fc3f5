/* SPDX-License-Identifier: Apache-2.0 */
/* stats_fields: what is told of each connection and each flow. These tables are the only lists: the
 * process's JSON is made from them (stats_json.c), and of that `stratus stats` makes its tables and
 * the text of Prometheus. NICs have theirs in connection/nic_totals.h.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_OBSERVE_STATS_FIELDS_H
#define NET_PLUGIN_OBSERVE_STATS_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "net_plugin/connection/nic_totals.h"

#define STATS_SCHEMA 2 /* of the JSON; incremented when a field is renamed or removed */

/* X(name, COUNTER or GAUGE, unit: a value of 1 in this, value in stats_json.c, text). Names end in
 * their unit. */
#define STATS_CONNECTION_FIELDS(X)                                                                 \
  X(messages_posted, COUNTER, 1, seen->posted, "Messages that NCCL posted")                        \
  X(messages_completed, COUNTER, 1, seen->completed, "Messages that are complete for NCCL")        \
  X(bytes, COUNTER, 1, seen->bytes,                                                                \
    "Payload bytes acknowledged by the peer (send), arrived (receive)")                            \
  X(credit_waits, COUNTER, 1, seen->link.counts.stalls,                                            \
    "Times that the sender had no credit (no receive)")                                            \
  X(chunks_failed_over, COUNTER, 1, seen->link.chunks_requeued,                                    \
    "Chunks moved from a failed flow to another")                                                  \
  X(flow_failures, COUNTER, 1, seen->link.losses, "Flows that failed, for any reason")             \
  X(flow_reconnects, COUNTER, 1, seen->link.slow_reconnects, "Reconnects of flows that were slow") \
  X(flow_stalls, COUNTER, 1, seen->link.stalls_cut, "Flows closed because they stalled")           \
  X(checksum_errors, COUNTER, 1, seen->checksum_errors, "Chunks with a wrong checksum")            \
  X(chunks_compressed, COUNTER, 1, seen->link.counts.coding.coded,                                 \
    "Chunks sent, or received, in compressed form")                                                \
  X(chunks_incompressible, COUNTER, 1, seen->link.counts.coding.raw,                               \
    "Chunks sent as they are: shorter by too little")                                              \
  X(chunks_not_compressed, COUNTER, 1, seen->link.counts.coding.untried,                           \
    "Chunks sent as they are by decision, or unseen")                                              \
  X(compressed_bytes_before, COUNTER, 1, seen->link.counts.coding.bytes_before,                    \
    "Bytes of the compressed chunks before that")                                                  \
  X(compressed_bytes_after, COUNTER, 1, seen->link.counts.coding.bytes_after,                      \
    "Bytes of the compressed chunks as they were sent")                                            \
  X(compression_cpu_seconds, COUNTER, 1e-9, seen->link.counts.coding.took_ns,                      \
    "CPU time spent on compressing (send), on expanding (receive)")                                \
  X(pings, COUNTER, 1, seen->link.counts.pings_sent, "Keepalive requests sent to the peer")        \
  X(pings_behind_losses, COUNTER, 1, seen->link.counts.tail_pings,                                 \
    "Of these, behind packets that seemed lost")                                                   \
  X(repeats, COUNTER, 1, seen->link.counts.repeats,                                                \
    "Chunks sent again on another flow, as their own stood still")                                 \
  X(repeated_bytes, COUNTER, 1, seen->link.counts.repeated_bytes, "Bytes of these: sent twice")    \
  X(duplicates, COUNTER, 1, seen->link.counts.duplicates, "Chunks that came twice (receive)")      \
  X(flows, GAUGE, 1, seen->link.lanes_wanted,                                                      \
    "Flows that are wanted (send), that the peer opened (receive)")                                \
  X(flows_up, GAUGE, 1, seen->link.lanes_up, "Flows that are up")                                  \
  X(age_seconds, GAUGE, 1e-9, since(seen->created_ns, now_ns),                                     \
    "Time since the connection was made")                                                          \
  X(peer_silent_seconds, GAUGE, 1e-9, seen->silent_ns,                                             \
    "Time since anything was received from the peer")                                              \
  X(stalled_seconds, GAUGE, 1e-9, seen->stalled_ns, "Time since the oldest request made progress") \
  X(engine, GAUGE, 1, engine->index, "Index of the engine among those of its NIC, from 0")         \
  X(compresses, GAUGE, 1, engine->compression.is_on,                                               \
    "1 if STRATUS_COMPRESS=auto has compression on for its engine")                                \
  X(compression_turns, COUNTER, 1, engine->compression.turns, "Times that this changed")           \
  X(by_thread, GAUGE, 1, !engine->is_polled,                                                       \
    "1 if the engine's thread moves the data, 0 if NCCL's threads do")

#define STATS_FLOW_FIELDS(X)                                                                       \
  X(bytes_sent, COUNTER, 1, seen->link.counts.bytes_sent, "Payload bytes sent, repeats included")  \
  X(bytes_acked, COUNTER, 1, seen->link.bytes_acked, "Payload bytes acknowledged by the peer")     \
  X(bytes_received, COUNTER, 1, seen->link.counts.bytes_received,                                  \
    "Payload bytes received, repeats not included")                                                \
  X(wire_bytes_sent, COUNTER, 1, seen->transport.bytes_written, "Bytes written, headers included") \
  X(wire_bytes_received, COUNTER, 1, seen->transport.bytes_read, "Bytes read, headers included")   \
  X(retransmits, COUNTER, 1, seen->transport.retransmits, "TCP segments retransmitted")            \
  X(failures, COUNTER, 1, seen->link.counts.losses, "Times that the flow failed, for any reason")  \
  X(reconnects, COUNTER, 1, seen->link.counts.slow_reconnects,                                     \
    "Reconnects because the flow was slow")                                                        \
  X(stalls, COUNTER, 1, seen->link.counts.stalls_cut,                                              \
    "Times that the flow was closed because it stalled")                                           \
  X(chunks_failed_over, COUNTER, 1, seen->link.counts.requeued,                                    \
    "Chunks moved to other flows when it failed")                                                  \
  X(up, GAUGE, 1, (seen->link.state == LINK_LANE_UP), "1 if the flow is up")                       \
  X(in_flight_bytes, GAUGE, 1, seen->link.outstanding_bytes,                                       \
    "Payload bytes sent and not yet acknowledged")                                                 \
  X(estimated_rate_bytes_per_second, GAUGE, 1, rate_of(&seen->link),                               \
    "Rate that striping assumes; 0: unknown")                                                      \
  X(rtt_seconds, GAUGE, 1e-6, seen->transport.rtt_us, "Round trip time, smoothed")                 \
  X(rtt_min_seconds, GAUGE, 1e-6, seen->transport.rtt_min_us, "Round trip time, minimum")          \
  X(delivery_rate_bytes_per_second, GAUGE, 1, seen->transport.delivery_rate_bytes,                 \
    "Delivery rate measured by TCP")                                                               \
  X(congestion_window_bytes, GAUGE, 1, seen->transport.congestion_window_bytes,                    \
    "Congestion window")                                                                           \
  X(limit, GAUGE, 1, limit_of(&seen->link),                                                        \
    "What limits it (send): 0 unknown, 1 application, 2 CPU, 3 peer, 4 network")

struct stats_field {
  const char *name;
  bool is_counter;
  double unit;
  const char *help;
};
struct stats_fields {
  const struct stats_field *list;
  size_t count;
};
/* The order is that of their X. */
extern const struct stats_fields stats_nic_fields, stats_connection_fields, stats_flow_fields;

#endif
