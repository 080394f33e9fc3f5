/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_stats: what the kernel knows about a TCP flow.
 * Owns: nothing.  Threads: any.  Blocks: never; up to three system calls.  Fails: cannot; what the
 * kernel does not know is 0. */
#ifndef NET_PLUGIN_LANE_TCP_STATS_H
#define NET_PLUGIN_LANE_TCP_STATS_H

#include "net_plugin/lane/lane.h"

/* Fills in everything but the bytes that the lane counts itself. */
void tcp_stats_read(int fd, struct lane_stats *stats);

/* When the peer's kernel answered last: see lane_ops. It does so, for a process that is stopped, to
 * data, to probes of a full buffer, and to keepalives. */
uint64_t tcp_stats_answered_ns(int fd, uint64_t now_ns);

#endif
