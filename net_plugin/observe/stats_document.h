/* SPDX-License-Identifier: Apache-2.0 */
/* stats_document: everything that is told about a process at one moment, as plain values.
 * Owns: two arrays, until stats_document_free.  Threads: the caller's.  Blocks: never.
 * Fails: stats_document_add_* returns NULL if there is no memory or the limit is reached, and the
 * document says that it is truncated.
 *
 * The tables below are the only list of what is told: JSON and Prometheus text are made from them,
 * under the same names. */
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

#define STATS_SCHEMA 1 /* of the JSON document; grows when something is renamed or goes */
#define STATS_FLOWS_MAX 16384
#define STATS_CONNECTIONS_MAX 8192

/* X(ID, name, COUNTER or GAUGE, unit: a value of 1 in this, text). Names end in their unit. */
#define STATS_CONNECTION_FIELDS(X)                                                                 \
  X(POSTED, messages_posted, COUNTER, 1, "Messages that NCCL posted")                              \
  X(COMPLETED, messages_completed, COUNTER, 1, "Messages that are complete for NCCL")              \
  X(BYTES, bytes, COUNTER, 1, "Payload bytes acknowledged by the peer (send), arrived (receive)")  \
  X(CREDIT_WAITS, credit_waits, COUNTER, 1, "Times that the sender waited for a receive")          \
  X(REQUEUED, chunks_failed_over, COUNTER, 1, "Chunks moved from a lost flow to another")          \
  X(LOSSES, flow_losses, COUNTER, 1, "Flows lost, for whatever reason")                            \
  X(REDIALS, flow_redials, COUNTER, 1, "Flows dialled anew because they were slow")                \
  X(STALLS, flow_stalls, COUNTER, 1, "Flows given up because they stood still")                    \
  X(CHECKSUM_ERRORS, checksum_errors, COUNTER, 1, "Chunks that arrived damaged")                   \
  X(PINGS, pings, COUNTER, 1, "Signs of life that the peer was asked for")                         \
  X(FLOWS, flows, GAUGE, 1, "Flows that are wanted (send), that the peer opened (receive)")        \
  X(FLOWS_UP, flows_up, GAUGE, 1, "Flows that are up")                                             \
  X(AGE, age_seconds, GAUGE, 1e-9, "Time since it was made")                                       \
  X(HEARD, heard_seconds, GAUGE, 1e-9, "Time since the peer was heard last")                       \
  X(WAITING, waiting_seconds, GAUGE, 1e-9, "Time since its oldest request has not moved")          \
  X(NARROW, narrow, GAUGE, 1,                                                                      \
    "1 if bulk data goes over one flow of each path, as faster than all")                          \
  X(ENGINE, engine, GAUGE, 1, "Which of its NIC's engines it belongs to, from 0")                  \
  X(BY_THREAD, by_thread, GAUGE, 1, "1 if that engine's thread moves its bytes, 0 if NCCL's do")

#define STATS_FLOW_FIELDS(X)                                                                       \
  X(SENT, bytes_sent, COUNTER, 1, "Payload bytes given to the flow, repeats included")             \
  X(ACKED, bytes_acked, COUNTER, 1, "Payload bytes that the peer acknowledged")                    \
  X(RECEIVED, bytes_received, COUNTER, 1, "Payload bytes that arrived and counted")                \
  X(WIRE_SENT, wire_bytes_sent, COUNTER, 1, "Bytes written, headers included")                     \
  X(WIRE_RECEIVED, wire_bytes_received, COUNTER, 1, "Bytes read, headers included")                \
  X(RETRANSMITS, retransmits, COUNTER, 1, "TCP segments sent again")                               \
  X(LOSSES, losses, COUNTER, 1, "Times that it was lost")                                          \
  X(REDIALS, redials, COUNTER, 1, "Times that it was dialled anew because it was slow")            \
  X(STALLS, stalls, COUNTER, 1, "Times that it was given up because it stood still")               \
  X(REQUEUED, chunks_failed_over, COUNTER, 1, "Chunks that it left to other flows")                \
  X(UP, up, GAUGE, 1, "1 if it is up")                                                             \
  X(OUTSTANDING, outstanding_bytes, GAUGE, 1, "Payload bytes sent and not acknowledged")           \
  X(RATE, learned_rate_bytes_per_second, GAUGE, 1, "Rate that striping counts on; 0: unknown")     \
  X(RTT, rtt_seconds, GAUGE, 1e-6, "Round trip time, smoothed")                                    \
  X(RTT_MIN, rtt_min_seconds, GAUGE, 1e-6, "Round trip time, least")                               \
  X(DELIVERY, delivery_rate_bytes_per_second, GAUGE, 1, "Rate that TCP measured last")             \
  X(WINDOW, congestion_window_bytes, GAUGE, 1, "Congestion window")

#define STATS_ID(id, name, type, unit, text) STATS_CONNECTION_##id,
enum stats_connection_field { STATS_CONNECTION_FIELDS(STATS_ID) STATS_CONNECTION_FIELD_COUNT };
#undef STATS_ID
#define STATS_ID(id, name, type, unit, text) STATS_FLOW_##id,
enum stats_flow_field { STATS_FLOW_FIELDS(STATS_ID) STATS_FLOW_FIELD_COUNT };
#undef STATS_ID

struct stats_field {
  const char *name; /* without stratus_connection_ or the like, and _total */
  bool is_counter;
  double unit;
  const char *help;
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
  /* what waits longest, unless wait is STALL_NONE */
  enum stall_kind wait;
  uint64_t request, request_bytes, request_moved;
};

struct stats_nic {
  char name[IF_NAMESIZE];
  uint64_t values[NIC_COUNTER_COUNT];
};

struct stats_document {
  int pid;
  char host[65], rank[16]; /* rank: as launchers tell it; empty: unknown */
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

/* Where a writer is. Starts zeroed. */
struct stats_cursor {
  unsigned part;
  size_t index, inner; /* what they count is the writer's business */
};

/* Each call adds the next piece, of less than STATS_PIECE_MAX bytes, until it returns false: then
 * nothing was left to add. */
enum { STATS_PIECE_MAX = 4096 };
bool stats_json_next(const struct stats_document *document, struct stats_cursor *cursor,
                     struct text *text);
bool stats_prometheus_next(const struct stats_document *document, struct stats_cursor *cursor,
                           struct text *text);

const char *stats_flow_state(enum link_lane_state state);
/* "10.0.0.1:4321", "-" if unknown. */
enum { STATS_ADDRESS_TEXT_MAX = 64 };
const char *stats_address_text(const union stats_address *address,
                               char text[STATS_ADDRESS_TEXT_MAX]);

#endif
