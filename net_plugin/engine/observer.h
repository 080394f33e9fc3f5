/* SPDX-License-Identifier: Apache-2.0 */
/* observer: what engines and connections call when something happens; observe/ implements it.
 * Without an observer the calls do nothing and no timer is armed.
 * Owns: nothing.  Threads: see below.  Blocks: never, and the calls must not.  Fails: cannot. */
#ifndef NET_PLUGIN_ENGINE_OBSERVER_H
#define NET_PLUGIN_ENGINE_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct engine;

/* All are called with the engine's lock held. */
struct engine_observer {
  void (*engine_started)(struct engine *engine);
  /* Its thread has ended, its connections are gone; watched descriptors must go now. */
  void (*engine_stopping)(struct engine *engine);
  /* A request of the connection is waiting, for watch_period_ns or longer. True: this was
   * reported, which the connection counts (connection_snapshot.h). */
  bool (*connection_waits)(struct connection *connection, uint64_t now_ns);
  void (*connection_ending)(struct connection *connection, uint64_t now_ns);
  uint64_t watch_period_ns; /* 0: connection_waits is not called */
};

/* Replaces the observer; NULL: none. The struct must outlive all engines. */
void engine_observe(const struct engine_observer *observer);
/* Never NULL; without an observer, one that does nothing. */
const struct engine_observer *engine_observer(void);

#endif
