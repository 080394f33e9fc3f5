/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: stands between a dialling and a listening side, over loopback, and sees or damages what
 * passes.
 * Owns: a thread, a listening socket and the connections through it, until proxy_stop.
 * Threads: the test's.  Blocks: proxy_stop, for the thread.  Fails: the test.
 *
 * Of each connection the handshake passes untouched. A flip changes one bit of what the dialling
 * side sends; it counts as found when the listening side then ends that connection. */
#ifndef TESTS_LIB_PROXY_H
#define TESTS_LIB_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct proxy;

struct proxy_plan {
  size_t flip_every_bytes; /* over all connections; 0: never */
  /* What is looked for in what passes, either way, also across reads; NULL: nothing. */
  const void *pattern;
  size_t pattern_bytes;
  bool is_held; /* nothing passes before proxy_let_pass */
};

struct proxy_result {
  uint64_t bytes;                             /* that passed, both ways */
  unsigned connections, flipped, found, seen; /* seen: how often the pattern passed */
};

/* *address: where to dial instead of `target`. */
struct proxy *proxy_start(const struct sockaddr_storage *target, const struct proxy_plan *plan,
                          struct sockaddr_storage *address);
void proxy_let_pass(struct proxy *proxy);
/* Waits a while for flips that were not found yet, then ends everything. */
struct proxy_result proxy_stop(struct proxy *proxy);

#endif
