/* SPDX-License-Identifier: Apache-2.0 */
/* gauge: decides which part of one side's run is measured, and what it cost. First comes the
 * warm-up, from the first completed message on; then the window; what follows it counts no more.
 * Owns: only its own struct.  Threads: the main thread, whose CPU time is "the driver's".
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_GAUGE_H
#define NET_PLUGIN_TOOLS_PERF_GAUGE_H

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

enum gauge_state { GAUGE_IDLE, GAUGE_WARMING, GAUGE_MEASURING, GAUGE_OVER };

struct gauge {
  const struct plan *plan;
  int streams; /* of this side, both directions */
  enum gauge_state state;
  struct counts now;    /* kept by the caller */
  struct counts window; /* what came in the window; at its start, what was before */
  struct usage usage;   /* likewise */
  uint64_t since_ns;    /* when the state began */
  uint64_t window_ns;
  unsigned threads;            /* of the process, in the window */
  struct histogram half_trips; /* ns; kept by the caller while is_measuring */
};

void gauge_start(struct gauge *gauge, const struct plan *plan, int streams);

/* Call whenever something has completed, or the time may have come. */
void gauge_look(struct gauge *gauge, uint64_t now_ns);

static inline bool gauge_is_measuring(const struct gauge *gauge) {
  return gauge->state == GAUGE_MEASURING;
}

/* Does nothing for a time, and says what the process used meanwhile: {"seconds", "cpu_seconds"};
 * NULL without memory. */
json_t *gauge_rest(uint64_t rest_ns);

/* What this side has to report; NULL without memory. Takes `flows`, NULL: none. */
json_t *gauge_to_json(const struct gauge *gauge, json_t *flows);

#endif
