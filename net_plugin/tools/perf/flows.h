/* SPDX-License-Identifier: Apache-2.0 */
/* flows: the TCP connections of this process, whichever library opened them, from the kernel.
 * Owns: nothing between calls.  Threads: the main thread.  Blocks: never.
 * Fails: without /proc there are no flows. */
#ifndef NET_PLUGIN_TOOLS_PERF_FLOWS_H
#define NET_PLUGIN_TOOLS_PERF_FLOWS_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "net_plugin/lane/tcp_socket.h"

enum { FLOWS_MAX = 4096 };

struct flow {
  ino_t inode;
  char local[TCP_ADDRESS_TEXT], remote[TCP_ADDRESS_TEXT]; /* address:port */
  uint64_t bytes_acked, bytes_received;
  uint32_t rtt_us, retransmits, window_packets;
};

struct flows {
  int count;
  uint64_t taken_ns;
  struct flow flows[FLOWS_MAX];
};

/* `except`: a socket to leave out. */
void flows_take(struct flows *flows, int except);

/* The difference between two snapshots, an array; NULL without memory. */
json_t *flows_to_json(const struct flows *before, const struct flows *after);

#endif
