/* SPDX-License-Identifier: Apache-2.0 */
/* connection_snapshot: how a connection is doing, for statistics and reports. No allocation.
 * Owns: nothing.  Threads: holder of the engine lock.  Blocks: never; a lane costs three system
 * calls.  Fails: cannot. */
#ifndef NET_PLUGIN_CONNECTION_CONNECTION_SNAPSHOT_H
#define NET_PLUGIN_CONNECTION_CONNECTION_SNAPSHOT_H

#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/lane.h"

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

  bool has_oldest; /* a request is waiting: */
  struct link_message_view oldest;
  uint64_t still_ns;     /* since when nothing of it has moved, exact to the observer's period */
  unsigned reports;      /* how often that was reported */
  uint64_t still_losses; /* flows that were lost since then */
};

struct lane_snapshot {
  unsigned index;
  char nic[IF_NAMESIZE]; /* of its lane, or of the last one it had */
  struct link_lane_view link;
  /* The counts are over all epochs; what is measured is 0 while none is open. */
  struct lane_stats transport;
};

uint64_t connection_number(const struct connection *connection);
void connection_snapshot(struct connection *connection, uint64_t now_ns,
                         struct connection_snapshot *snapshot);
/* Also brings the totals of the lane's NIC up to date (nic_totals.h). */
void connection_snapshot_lane(struct connection *connection, unsigned lane,
                              struct lane_snapshot *snapshot);

#endif
