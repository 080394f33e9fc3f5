/* SPDX-License-Identifier: Apache-2.0 */
/* window: the part of a run that is measured on one side. The warm-up starts with the first
 * completed message; the window follows; later messages are not counted. Owns: only its own struct.
 * Threads: the main thread, whose CPU time is "the driver's". Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_WINDOW_H
#define NET_PLUGIN_TOOLS_PERF_WINDOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/tools/perf/plan.h"

struct counts {
  uint64_t bytes_sent, bytes_received, messages_sent, messages_received; /* completed */
};

struct usage {
  double process_s, driver_s; /* CPU time of the process; of the calling thread */
};

enum window_state { WINDOW_IDLE, WINDOW_WARMUP, WINDOW_MEASURING, WINDOW_OVER };

struct window {
  const struct plan *plan;
  int streams; /* of this side, both directions */
  enum window_state state;
  struct counts now;    /* kept by the caller */
  struct counts counts; /* in the window; while measuring: those before it */
  struct usage usage;   /* likewise */
  uint64_t since_ns;    /* when the state began */
  uint64_t length_ns;
  unsigned threads;      /* of the process, in the window */
  double *half_trips_us; /* room for PERF_HALF_TRIPS_MAX, until the process ends; NULL: none */
  size_t half_trip_count;
};

void window_start(struct window *window, const struct plan *plan, int streams);

/* To be called after completions, and from time to time. */
void window_update(struct window *window, uint64_t now_ns);

/* To be called while measuring. */
void window_add_half_trip(struct window *window, uint64_t ns);

/* Sleeps, and returns the CPU time used by the process: {"seconds", "cpu_seconds"}; NULL without
 * memory. */
json_t *window_measure_idle(uint64_t rest_ns);

/* The results of this side; NULL without memory. Sorts the half round trips. */
json_t *window_to_json(struct window *window);

#endif
