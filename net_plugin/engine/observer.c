/* SPDX-License-Identifier: Apache-2.0 */
/* See observer.h. */
#include "net_plugin/engine/observer.h"

#include <stdatomic.h>
#include <stddef.h>

static void ignore_engine(struct engine *engine) {
  (void)engine;
}

static bool ignore_wait(struct connection *connection, uint64_t now_ns) {
  (void)connection;
  (void)now_ns;
  return false;
}

static void ignore_connection(struct connection *connection, uint64_t now_ns) {
  (void)connection;
  (void)now_ns;
}

static const struct engine_observer nobody = { ignore_engine, ignore_engine, ignore_wait,
                                               ignore_connection, 0 };
static _Atomic(const struct engine_observer *) current = &nobody;

void engine_observe(const struct engine_observer *observer) {
  atomic_store(&current, observer ? observer : &nobody);
}

const struct engine_observer *engine_observer(void) {
  return atomic_load_explicit(&current, memory_order_acquire);
}
