/* SPDX-License-Identifier: Apache-2.0 */
/* stats_document: the statistics of a process at one moment, as plain values.
 * Owns: two arrays, until stats_document_free.  Threads: the caller's.  Blocks: never.
 * Fails: stats_document_add_* returns NULL if there is no memory or the limit is reached, and the
 * document says that it is truncated.
 *
 * The tables below list all numbers once: the JSON is made from them, and by `stratus stats`
 * the text of Prometheus, with the same names. */
#ifndef NET_PLUGIN_OBSERVE_STATS_DOCUMENT_H
#define NET_PLUGIN_OBSERVE_STATS_DOCUMENT_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/connection/connection.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/observe/stall.h"
#include "net_plugin/observe/text.h"

#define STATS_SCHEMA 2 /* of the JSON document; incremented when a field is renamed or removed */

/* X(ID, name, COUNTER or GAUGE, unit: a value of 1 in this, text). Names end in their unit. */
#define STATS_CONNECTION_FIELDS(X)                                                                 \
  X(POSTED, messages_posted, COUNTER, 1, "Messages that NCCL posted")                              \
  X(COMPLETED, messages_completed, COUNTER, 1, "Messages that are complete for NCCL")              \
  X(BYTES, bytes, COUNTER, 1, "Payload bytes acknowledged by the peer (send), arrived (receive)")  \
  X(CREDIT_WAITS, credit_waits, COUNTER, 1, "Times that the sender had no credit (no receive)")    \
  X(REQUEUED, chunks_failed_over, COUNTER, 1, "Chunks moved from a failed flow to another")        \
  X(LOSSES, flow_failures, COUNTER, 1, "Flows that failed, for any reason")                        \
  X(SLOW_RECONNECTS, flow_reconnects, COUNTER, 1, "Reconnects of flows that were slow")            \
  X(STALLS, flow_stalls, COUNTER, 1, "Flows closed because they stalled")                          \
  X(CHECKSUM_ERRORS, checksum_errors, COUNTER, 1, "Chunks with a wrong checksum")                  \
  X(CODED, chunks_compressed, COUNTER, 1, "Chunks sent, or received, in compressed form")          \
  X(RAW, chunks_incompressible, COUNTER, 1, "Chunks sent as they are: shorter by too little")      \
  X(UNTRIED, chunks_not_compressed, COUNTER, 1, "Chunks sent as they are by decision, or unseen")  \
  X(BEFORE, compressed_bytes_before, COUNTER, 1, "Bytes of the compressed chunks before that")     \
  X(AFTER, compressed_bytes_after, COUNTER, 1, "Bytes of the compressed chunks as they were sent") \
  X(CODEC_TIME, compression_cpu_seconds, COUNTER, 1e-9,                                            \
    "CPU time spent on compressing (send), on expanding (receive)")                                \
  X(PINGS, pings, COUNTER, 1, "Keepalive requests sent to the peer")                               \
  X(TAIL_PINGS, pings_behind_losses, COUNTER, 1, "Of these, behind packets that seemed lost")      \
  X(REPEATS, repeats, COUNTER, 1, "Chunks sent again on another flow, as their own stood still")   \
  X(REPEATED_BYTES, repeated_bytes, COUNTER, 1, "Bytes of these: sent twice")                      \
  X(REPEATS_SAVED, repeats_saved_seconds, COUNTER, 1e-9,                                           \
    "Time by which repeats were acknowledged before their originals, together")                    \
  X(DUPLICATES, duplicates, COUNTER, 1, "Chunks that came twice (receive)")                        \
  X(FLOWS, flows, GAUGE, 1, "Flows that are wanted (send), that the peer opened (receive)")        \
  X(FLOWS_UP, flows_up, GAUGE, 1, "Flows that are up")                                             \
  X(AGE, age_seconds, GAUGE, 1e-9, "Time since the connection was made")                           \
  X(HEARD, peer_silent_seconds, GAUGE, 1e-9, "Time since anything was received from the peer")     \
  X(WAITING, stalled_seconds, GAUGE, 1e-9, "Time since the oldest request made progress")          \
  X(ENGINE, engine, GAUGE, 1, "Index of the engine among those of its NIC, from 0")                \
  X(COMPRESSES, compresses, GAUGE, 1,                                                              \
    "1 if STRATUS_COMPRESS=auto has compression on for its engine")                                \
  X(COMPRESSION_TURNS, compression_turns, COUNTER, 1, "Times that this changed")                   \
  X(BY_THREAD, by_thread, GAUGE, 1,                                                                \
    "1 if the engine's thread moves the data, 0 if NCCL's threads do")

#define STATS_FLOW_FIELDS(X)                                                                       \
  X(SENT, bytes_sent, COUNTER, 1, "Payload bytes sent, repeats included")                          \
  X(ACKED, bytes_acked, COUNTER, 1, "Payload bytes acknowledged by the peer")                      \
  X(RECEIVED, bytes_received, COUNTER, 1, "Payload bytes received, repeats not included")          \
  X(WIRE_SENT, wire_bytes_sent, COUNTER, 1, "Bytes written, headers included")                     \
  X(WIRE_RECEIVED, wire_bytes_received, COUNTER, 1, "Bytes read, headers included")                \
  X(RETRANSMITS, retransmits, COUNTER, 1, "TCP segments retransmitted")                            \
  X(LOSSES, failures, COUNTER, 1, "Times that the flow failed, for any reason")                    \
  X(SLOW_RECONNECTS, reconnects, COUNTER, 1, "Reconnects because the flow was slow")               \
  X(STALLS, stalls, COUNTER, 1, "Times that the flow was closed because it stalled")               \
  X(REQUEUED, chunks_failed_over, COUNTER, 1, "Chunks moved to other flows when it failed")        \
  X(UP, up, GAUGE, 1, "1 if the flow is up")                                                       \
  X(OUTSTANDING, in_flight_bytes, GAUGE, 1, "Payload bytes sent and not yet acknowledged")         \
  X(RATE, estimated_rate_bytes_per_second, GAUGE, 1, "Rate that striping assumes; 0: unknown")     \
  X(RTT, rtt_seconds, GAUGE, 1e-6, "Round trip time, smoothed")                                    \
  X(RTT_MIN, rtt_min_seconds, GAUGE, 1e-6, "Round trip time, minimum")                             \
  X(DELIVERY, delivery_rate_bytes_per_second, GAUGE, 1, "Delivery rate measured by TCP")           \
  X(WINDOW, congestion_window_bytes, GAUGE, 1, "Congestion window")                                \
  X(LIMIT, limit, GAUGE, 1,                                                                        \
    "What limits it (send): 0 unknown, 1 application, 2 CPU, 3 peer, 4 network")

#define STATS_ID(id, name, type, unit, text) STATS_CONNECTION_##id,
enum stats_connection_field { STATS_CONNECTION_FIELDS(STATS_ID) STATS_CONNECTION_FIELD_COUNT };
#undef STATS_ID
#define STATS_ID(id, name, type, unit, text) STATS_FLOW_##id,
enum stats_flow_field { STATS_FLOW_FIELDS(STATS_ID) STATS_FLOW_FIELD_COUNT };
#undef STATS_ID

struct stats_field {
  const char *name;
  double unit;
};
extern const struct stats_field stats_connection_fields[STATS_CONNECTION_FIELD_COUNT];
extern const struct stats_field stats_flow_fields[STATS_FLOW_FIELD_COUNT];

/* An IPv4 or IPv6 address; sockaddr_storage is four times as large. */
union stats_address {
  sa_family_t family;
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
};

struct stats_flow {
  uint32_t connection; /* index of it */
  uint32_t index;      /* within the connection */
  uint32_t epoch;
  enum link_lane_state state;
  char nic[IF_NAMESIZE];
  union stats_address local, remote;
  uint64_t values[STATS_FLOW_FIELD_COUNT];
};

struct stats_connection {
  uint64_t number;
  bool is_sender, is_detached;
  int error; /* negative errno or 0 */
  char peer[CONNECTION_NAME_BYTES], nic[CONNECTION_NAME_BYTES];
  uint64_t values[STATS_CONNECTION_FIELD_COUNT];
  /* the oldest request, unless stall is STALL_NONE */
  enum stall_kind stall;
  uint64_t request, request_bytes, request_moved;
};

struct stats_nic {
  char name[IF_NAMESIZE];
  uint64_t values[NIC_COUNTER_COUNT];
};

/* Room for what tells two processes of one number apart, as those of two containers: when they
 * began, in hexadecimal digits. */
enum { STATS_ID_MAX = 17 };

struct stats_document {
  int pid;
  char id[STATS_ID_MAX];
  char host[65], rank[16]; /* rank: from the launcher's environment; empty: unknown */
  uint64_t uptime_ns;      /* since the first NIC was used */
  bool is_truncated;
  size_t nic_count, connection_count, flow_count;
  struct stats_nic nics[NIC_TOTALS_MAX];
  struct stats_connection *connections;
  struct stats_flow *flows; /* by connection */
  size_t connection_room, flow_room;
};

/* A zeroed entry at the end; NULL: truncated. */
struct stats_connection *stats_document_add_connection(struct stats_document *document);
struct stats_flow *stats_document_add_flow(struct stats_document *document);
/* Frees the arrays, not the struct. */
void stats_document_free(struct stats_document *document);

/* Position of a writer. Starts zeroed. */
struct stats_cursor {
  unsigned part;
  size_t index, inner;
};

/* Each call adds the next piece, of less than STATS_PIECE_MAX bytes. False: the text was complete,
 * nothing was added. */
enum { STATS_PIECE_MAX = 4096 };
bool stats_json_next(const struct stats_document *document, struct stats_cursor *cursor,
                     struct text *text);

#endif
