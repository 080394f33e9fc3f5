/* SPDX-License-Identifier: Apache-2.0 */
/* plain: an upper bound for a plugin with N flows: N bare TCP flows moved by one thread, without a
 * protocol. The client sends; a latency test is a ping-pong on one flow.
 *
 * Owns: its sockets and memory, between plain_open and plain_close.  Threads: the main thread.
 * Blocks: while flows are opened; plain_run until the round is over.
 * Fails: with a message and an exit status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAIN_H
#define NET_PLUGIN_TOOLS_PERF_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/tools/rendezvous.h"
#include "net_plugin/tools/perf/window.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/control_channel.h"

struct plain_flow {
  int fd;                  /* -1: not connected, or at its end */
  uint64_t sent, received; /* bytes in this round */
};

struct plain {
  const struct plan *plan;
  struct control_channel *channel;
  bool is_client;
  int listen_fd;                    /* of the server */
  struct peer_gate *gate;           /* of the server: lets in flows of this client only */
  struct peer_key key;              /* of the flows, from a token of this run */
  struct rendezvous_address server; /* where the client connects */
  struct plain_flow flows[PLAN_PLAIN_FLOWS_MAX];
  int flow_count;
  uint64_t buffer_bytes;
  uint8_t *buffer;   /* received bytes */
  uint8_t *contents; /* bytes to send: a pattern, by one period longer than the buffer */
};

/* Both sides call the same functions in the same order. */
int plain_open(struct plain *plain, const struct plan *plan, bool is_client,
               struct control_channel *channel);
void plain_close(struct plain *plain);

/* Each round has new flows. */
int plain_connect(struct plain *plain);
void plain_disconnect(struct plain *plain);

/* One round with messages of `bytes`. Adds the number of reads with wrong contents to *wrong. */
int plain_run(struct plain *plain, uint64_t bytes, struct window *window, uint64_t *wrong);

#endif
