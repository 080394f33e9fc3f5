/* SPDX-License-Identifier: Apache-2.0 */
/* flows: the TCP connections of this process, whoever in it opened them, as the kernel sees them
 * (sock_diag(7)).
 * Owns: nothing between calls.  Threads: the main thread.  Blocks: never for long.
 * Fails: with no flows, where the kernel has no sock_diag. */
#ifndef NET_PLUGIN_TOOLS_PERF_FLOWS_H
#define NET_PLUGIN_TOOLS_PERF_FLOWS_H

#include <jansson.h>
#include <stdint.h>

enum { FLOWS_MAX = 4096 };

struct flow {
  uint32_t inode;
  char local[64], remote[64]; /* address:port */
  uint64_t bytes_acked, bytes_received;
  uint32_t rtt_us, retransmits, window_packets;
};

struct flows {
  int count;
  uint64_t taken_ns;
  struct flow flows[FLOWS_MAX];
};

/* `except`: a socket that is not of interest. */
void flows_take(struct flows *flows, int except);

/* What went over each between two looks; an array, NULL without memory. */
json_t *flows_to_json(const struct flows *before, const struct flows *after);

#endif
