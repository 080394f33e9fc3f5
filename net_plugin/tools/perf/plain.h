/* SPDX-License-Identifier: Apache-2.0 */
/* plain: the bound. TCP flows without any protocol, moved by one thread: whichever flow has room
 * takes the next bytes, whichever has bytes is read. Nothing that stripes messages over the same
 * flows can be faster. A latency test is a ping-pong on one flow with calls that never wait.
 *
 * Owns: its sockets and memory, between plain_open and plain_close.  Threads: the main thread.
 * Blocks: while flows are opened, and a round, until both sides are done.
 * Fails: with a message. */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAIN_H
#define NET_PLUGIN_TOOLS_PERF_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/tools/perf/gauge.h"
#include "net_plugin/tools/perf/plain_slots.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/talk.h"

struct plain_flow {
  int fd;
  bool is_sender;
  uint64_t position; /* bytes of this round */
};

struct plain {
  const struct plan *plan;
  struct talk *talk;
  bool is_client;
  int listen_fd;        /* the server's */
  unsigned port, token; /* where the server listens; what a flow shows it */
  struct plain_flow flows[2 * PLAN_PLAIN_FLOWS_MAX];
  int flow_count;       /* both directions */
  uint8_t *contents;    /* what flows carry, longer than its period */
  uint8_t *buffer;      /* what they bring */
  uint64_t piece_bytes; /* of the buffer */
  /* What flows carry without a copy, until they are closed. */
  struct plain_slots slots;
};

/* With the other side, which does the same. */
int plain_open(struct plain *plain, const struct plan *plan, bool is_client, struct talk *talk);
void plain_close(struct plain *plain);

/* The flows of a round are new ones. */
int plain_connect(struct plain *plain);
void plain_disconnect(struct plain *plain);
/* *wrong counts reads with wrong contents. */
int plain_run(struct plain *plain, uint64_t bytes, struct gauge *gauge, uint64_t *wrong);

#endif
