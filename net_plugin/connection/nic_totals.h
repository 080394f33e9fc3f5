/* SPDX-License-Identifier: Apache-2.0 */
/* nic_totals: counters of each NIC over the life of the process; they outlive connections.
 * Owns: the table; entries are never removed.  Threads: any.  Blocks: nic_totals_of and
 * nic_totals_by_address for the table's lock, nanoseconds.  Fails: cannot; NICs beyond the table
 * share its last entry.
 *
 * A connection adds what is new since its last snapshot (connection_snapshot.c). So the counts only
 * grow, and are complete during its life and after. */
#ifndef NET_PLUGIN_CONNECTION_NIC_TOTALS_H
#define NET_PLUGIN_CONNECTION_NIC_TOTALS_H

#include <stdatomic.h>
#include <stdint.h>

#include "net_plugin/lane/nic.h"

#define NIC_TOTALS_MAX 64

/* X(ID, name for the outside, what is counted) */
#define NIC_COUNTERS(X)                                                                            \
  X(BYTES_SENT, bytes_sent, "Payload bytes sent, repeats included")                                \
  X(BYTES_RECEIVED, bytes_received, "Payload bytes received, repeats not included")                \
  X(WIRE_BYTES_SENT, wire_bytes_sent, "Bytes written to flows, headers included")                  \
  X(WIRE_BYTES_RECEIVED, wire_bytes_received, "Bytes read from flows, headers included")           \
  X(MESSAGES_SENT, messages_sent, "Messages of NCCL that were sent")                               \
  X(MESSAGES_RECEIVED, messages_received, "Messages of NCCL that were received")                   \
  X(RETRANSMITS, retransmits, "TCP segments retransmitted")                                        \
  X(LOSSES, flow_failures, "Flows that failed, for any reason")                                    \
  X(SLOW_RECONNECTS, flow_reconnects, "Reconnects of flows that were much slower than the others") \
  X(STALLS_CUT, flow_stalls, "Flows closed because they stalled")                                  \
  X(REQUEUED, chunks_failed_over, "Chunks moved from a failed flow to another")                    \
  X(CREDIT_WAITS, credit_waits, "Times that a sender had no credit (no receive posted)")           \
  X(CHECKSUM_ERRORS, checksum_errors, "Chunks with a wrong checksum")                              \
  X(CODED_BEFORE, compressed_bytes_before, "Bytes of chunks sent compressed, before that")         \
  X(CODED_AFTER, compressed_bytes_after, "Bytes of these chunks as they were sent")                \
  X(CODEC_NS, compression_cpu_nanoseconds, "CPU time spent on compressing and expanding")          \
  X(CONNECTIONS, connections, "Connections that were made")                                        \
  X(FAILED, connections_failed, "Connections that ended with an error")                            \
  X(COLLNET_CALLS, collnet_calls, "AllReduce calls that hosts reduced (STRATUS_COLLNET)")          \
  X(COLLNET_BYTES, collnet_bytes, "Bytes of these calls")                                          \
  X(COLLNET_ROUNDED, collnet_rounded, "Elements of these calls rounded to 16 bits here")           \
  X(COLLNET_OVERFLOWS, collnet_overflows, "Of these, finite before and infinite after")            \
  X(COLLNET_UNDERFLOWS, collnet_underflows, "Of these, zero or denormal after, but not before")

enum nic_counter {
#define NIC_COUNTER_ID(id, name, text) NIC_##id,
  NIC_COUNTERS(NIC_COUNTER_ID)
#undef NIC_COUNTER_ID
      NIC_COUNTER_COUNT
};

struct nic_totals {
  char nic[IF_NAMESIZE];
  struct sockaddr_storage address; /* guarded by the table's lock */
  _Atomic uint64_t counts[NIC_COUNTER_COUNT];
};

/* The entry of this NIC, made on first use; found by its name. */
struct nic_totals *nic_totals_of(const struct nic *nic);
/* The entry of the NIC that had this address when it was last seen, or NULL. Ports are ignored. */
struct nic_totals *nic_totals_by_address(const struct sockaddr_storage *address);
/* The index-th, NULL after the last. */
const struct nic_totals *nic_totals_at(unsigned index);

#endif
