/* SPDX-License-Identifier: Apache-2.0 */
/* plain_way: the ways in which the kernel can be asked to move the bytes of a round: send and
 * recv, with epoll or MSG_ZEROCOPY where wanted, and io_uring.
 * Owns: what it opens, until it is closed; the memory of zero-copy sends is the struct plain's, as
 * the kernel may read it for longer.  Threads: the main thread.  Blocks: a pass that may wait, for
 * at most PLAIN_WAIT_MS.  Fails: with a message. */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAIN_WAY_H
#define NET_PLUGIN_TOOLS_PERF_PLAIN_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/tools/perf/gauge.h"
#include "net_plugin/tools/perf/plain.h"

enum { PLAIN_WAIT_MS = 2 };

/* One size, on all flows: plain_run.c. */
struct plain_round {
  struct plain *plain;
  struct gauge *gauge;
  uint64_t bytes, to_send, to_receive; /* of a message; left in this round */
  bool is_latency;
  uint64_t may_send, of_message; /* a ping-pong: bytes that may go now; that have come */
  uint64_t sent_ns;              /* when a ping went */
  uint64_t wrong, moved_ns, moved_bytes, polled_ns;
  uint64_t busy_ns;                            /* when last a flow could go on */
  bool is_over_told, is_over_there, has_ended; /* a ping-pong, by the client */
  void *way;                                   /* what the way keeps */
};

struct plain_way {
  int (*open)(struct plain_round *round);
  /* Moves what can be moved now; waits for that a while if it may. */
  int (*pass)(struct plain_round *round, bool may_wait, bool *has_moved);
  void (*close)(struct plain_round *round);
};

extern const struct plain_way plain_way_calls; /* send and recv */
extern const struct plain_way plain_way_uring;

/* Whether this host has io_uring; with a message if not. */
int plain_uring_check(void);

/* ---- for the ways ---- */

/* How many bytes this flow shall send next; they are taken from what the round has to send. */
size_t plain_round_take(struct plain_round *round);
/* Of these, so many have been sent; the others are there to be taken again. */
void plain_round_sent(struct plain_round *round, struct plain_flow *flow, size_t taken,
                      size_t sent);
void plain_round_received(struct plain_round *round, struct plain_flow *flow, const uint8_t *data,
                          size_t bytes);
/* What a flow has to carry from here on. */
const uint8_t *plain_round_contents(const struct plain_round *round, const struct plain_flow *flow);
/* A flow has failed, or with 0 was closed; that may be the end of a ping-pong. */
int plain_round_lost(struct plain_round *round, int error);

#endif
