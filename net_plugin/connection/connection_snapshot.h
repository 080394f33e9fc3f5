/* SPDX-License-Identifier: Apache-2.0 */
/* connection_snapshot: how a connection is doing, for statistics and reports. No allocation.
 * Owns: nothing.  Threads: holder of the engine lock.  Blocks: never; a lane costs three system
 * calls.  Fails: cannot. */
#ifndef NET_PLUGIN_CONNECTION_CONNECTION_SNAPSHOT_H
#define NET_PLUGIN_CONNECTION_CONNECTION_SNAPSHOT_H

#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/lane.h"

/* Why the oldest request does not move. */
enum stall_kind {
  STALL_NONE,           /* no request waits, or it makes progress */
  STALL_AWAITS_RECEIVE, /* the peer has not posted the receive for this send */
  STALL_AWAITS_SEND,    /* the peer has not begun to send what this receive is for */
  /* faults: */
  STALL_NO_FLOW,     /* no flow is up */
  STALL_PEER_SILENT, /* flows are up, and the peer sends nothing, not even keepalives */
  STALL_SEND_STUCK,  /* the peer has posted the receive, and does not acknowledge the data */
  STALL_HALF_ARRIVED /* the rest of a message is missing */
};

struct connection_snapshot {
  uint64_t number; /* counts the process's connections, from 1 */
  bool is_sender;
  bool is_detached; /* NCCL has closed it; what was posted is still being delivered */
  char peer[CONNECTION_NAME_BYTES], nic[CONNECTION_NAME_BYTES];
  uint64_t created_ns;
  int error; /* negative errno that ended it, or 0 */
  unsigned lanes;
  struct link_view link;
  unsigned limited[POLICY_LIMIT_NETWORK + 1]; /* flows that are up, by what holds them up */
  uint64_t posted, completed; /* requests; link.posted may lag while its window is full */
  uint64_t bytes;             /* payload that was acknowledged (sender) or arrived (receiver) */
  uint64_t checksum_errors;
  uint64_t silent_ns; /* since anything was received from the peer */

  bool is_waiting; /* for a request, and NCCL with it: */
  struct link_message_view oldest;
  uint64_t stalled_ns;     /* for so long nothing has moved */
  uint64_t stalled_losses; /* flows that were lost meanwhile, exact to a check of the watch */
};

struct lane_snapshot {
  unsigned index;
  char nic[IF_NAMESIZE]; /* of its lane, or of the last one it had */
  struct link_lane_view link;
  /* The counts are over all epochs; what is measured is 0 while none is open. */
  struct lane_stats transport;
};

enum stall_kind stall_classify(const struct connection_snapshot *seen);
static inline bool stall_is_fault(enum stall_kind kind) {
  return kind >= STALL_NO_FLOW;
}
/* For people: "the peer has not posted its receive". */
const char *stall_reason(enum stall_kind kind);
/* One log line: which request is stalled, for how long, by whom and why, and what limits the flows.
 * Returns text. */
enum { STALL_TEXT_MAX = 768 };
const char *stall_describe(const struct connection_snapshot *seen, char text[STALL_TEXT_MAX]);

uint64_t connection_number(const struct connection *connection);
void connection_snapshot(struct connection *connection, uint64_t now_ns,
                         struct connection_snapshot *snapshot);
/* Also brings the totals of the lane's NIC up to date (nic_totals.h). */
void connection_snapshot_lane(struct connection *connection, unsigned lane,
                              struct lane_snapshot *snapshot);

#endif
