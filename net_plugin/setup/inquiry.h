/* SPDX-License-Identifier: Apache-2.0 */
/* inquiry: does anybody listen at an address? One TCP connect, which is closed at once.
 * Owns: its socket.  Threads: holder of the engine lock.  Blocks: never.
 * Fails: cannot; what could not be found out is an error for `done`. */
#ifndef NET_PLUGIN_SETUP_INQUIRY_H
#define NET_PLUGIN_SETUP_INQUIRY_H

#include <stdbool.h>
#include <sys/socket.h>

#include "net_plugin/engine/engine.h"

/* 0: somebody listens; -ECONNREFUSED: the host answers, and nobody does; others say nothing about
 * it. Another inquiry may be started from within. */
typedef void inquiry_done_fn(void *argument, int error);

/* Zeroed: none is running. */
struct inquiry {
  struct engine_source source;
  struct engine_timer timer;
  struct engine *engine;
  inquiry_done_fn *done;
  void *argument;
  int error; /* when its time is up */
  bool is_running;
};

static inline bool inquiry_is_running(const struct inquiry *inquiry) {
  return inquiry->is_running;
}

/* None may be running. done is called later, once, unless it is stopped before. */
void inquiry_start(struct inquiry *inquiry, struct engine *engine,
                   const struct sockaddr_storage *address, uint64_t deadline_ns,
                   inquiry_done_fn *done, void *argument);
void inquiry_stop(struct inquiry *inquiry);

#endif
