/* SPDX-License-Identifier: Apache-2.0 */
/* window: decides which part of one side's run is measured, and what it cost. First comes the
 * warm-up, from the first completed message on; then the window; what follows it counts no more.
 * Owns: only its own struct.  Threads: the main thread, whose CPU time is "the driver's".
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_WINDOW_H
#define NET_PLUGIN_TOOLS_PERF_WINDOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/tools/perf/histogram.h"
#include "net_plugin/tools/perf/plan.h"

struct counts {
  uint64_t bytes_sent, bytes_received, messages_sent, messages_received; /* completed */
};

struct usage {
  double process_s, driver_s;  /* CPU time */
  uint64_t waits, preemptions; /* context switches: voluntary and not */
};

enum window_state { WINDOW_IDLE, WINDOW_WARMUP, WINDOW_MEASURING, WINDOW_OVER };

struct window {
  const struct plan *plan;
  int streams; /* of this side, both directions */
  enum window_state state;
  struct counts now;    /* kept by the caller */
  struct counts counts; /* what came in the window; at its start, what was before */
  struct usage usage;   /* likewise */
  uint64_t since_ns;    /* when the state began */
  uint64_t length_ns;
  unsigned threads;            /* of the process, in the window */
  struct histogram half_trips; /* ns; kept by the caller while is_measuring */
};

void window_start(struct window *window, const struct plan *plan, int streams);

/* Call whenever something has completed, or the time may have come. */
void window_update(struct window *window, uint64_t now_ns);

static inline bool window_is_measuring(const struct window *window) {
  return window->state == WINDOW_MEASURING;
}

/* Does nothing for a time, and says what the process used meanwhile: {"seconds", "cpu_seconds"};
 * NULL without memory. */
json_t *window_measure_idle(uint64_t rest_ns);

/* What this side has to report; NULL without memory. Takes `flows`, NULL: none. */
json_t *window_to_json(const struct window *window, json_t *flows);

#endif
