/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_stats: what the kernel knows about a TCP flow.
 * Owns: nothing.  Threads: any.  Blocks: never; up to three system calls.  Fails: cannot; what the
 * kernel does not know is 0. */
#ifndef NET_PLUGIN_LANE_TCP_STATS_H
#define NET_PLUGIN_LANE_TCP_STATS_H

#include "net_plugin/lane/lane.h"

/* Fills in everything but the bytes that the lane counts itself. */
void tcp_stats_read(int fd, struct lane_stats *stats);

/* What limits the flow of a lane, as struct policy_transport has it. False: the kernel does not
 * count it (before Linux 4.10, whose answer is shorter), or the socket is of no use. */
bool tcp_stats_measure(const struct lane *lane, struct policy_transport *transport);

/* When the peer's kernel answered last: see lane_ops. It does so, for a process that is stopped, to
 * data, to probes of a full buffer, and to keepalives. */
uint64_t tcp_stats_answered_ns(int fd, uint64_t now_ns);

/* How long the acknowledgement of a message that was just sent may take, in a handshake. */
uint64_t tcp_stats_ack_wait_ns(int fd);
/* Something that was sent is not acknowledged: after this time either is lost. */
bool tcp_stats_has_unacked(int fd);

#endif
