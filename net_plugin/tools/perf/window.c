/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over a time or a number of messages, and the process's CPU time and threads. */
#include "net_plugin/tools/perf/window.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "common/clock.h"
#include "common/quantile.h"
#include "net_plugin/tools/limits.h"

static double seconds(const struct rusage *usage) {
  return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
         (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

static struct usage read_usage(void) {
  struct rusage process, driver;
  getrusage(RUSAGE_SELF, &process);
  getrusage(RUSAGE_THREAD, &driver);
  return (struct usage){ .process_s = seconds(&process), .driver_s = seconds(&driver) };
}

static unsigned count_threads(void) {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *it = tasks ? readdir(tasks) : NULL; it; it = readdir(tasks)) {
    count += it->d_name[0] != '.';
  }
  if (tasks) {
    closedir(tasks);
  }
  return count;
}

void window_start(struct window *window, const struct plan *plan, int streams) {
  double *half_trips_us = window->half_trips_us;
  if (!half_trips_us && plan->test == PLAN_LATENCY) {
    half_trips_us = malloc(PERF_HALF_TRIPS_MAX * sizeof *half_trips_us);
  }
  *window = (struct window){ .plan = plan, .streams = streams, .half_trips_us = half_trips_us };
}

void window_add_half_trip(struct window *window, uint64_t ns) {
  if (window->half_trips_us && window->half_trip_count < PERF_HALF_TRIPS_MAX) {
    window->half_trips_us[window->half_trip_count++] = (double)ns * 1e-3;
  }
}

static void enter(struct window *window, enum window_state state, uint64_t now_ns) {
  if (state == WINDOW_MEASURING) {
    window->threads = count_threads();
    window->counts = window->now;
    window->usage = read_usage();
  }
  if (state == WINDOW_OVER) {
    struct usage end = read_usage();
    window->length_ns = now_ns - window->since_ns;
    window->counts.bytes_sent = window->now.bytes_sent - window->counts.bytes_sent;
    window->counts.bytes_received = window->now.bytes_received - window->counts.bytes_received;
    window->counts.messages_sent = window->now.messages_sent - window->counts.messages_sent;
    window->counts.messages_received =
        window->now.messages_received - window->counts.messages_received;
    window->usage.process_s = end.process_s - window->usage.process_s;
    window->usage.driver_s = end.driver_s - window->usage.driver_s;
  }
  window->state = state;
  window->since_ns = now_ns;
}

void window_update(struct window *window, uint64_t now_ns) {
  const struct plan *plan = window->plan;
  uint64_t messages = window->now.messages_sent + window->now.messages_received;
  uint64_t streams = (uint64_t)window->streams, age_ns = now_ns - window->since_ns;
  bool is_timed = plan->count == 0;
  uint64_t warmup_count = plan_warmup_count(plan);
  if (window->state == WINDOW_IDLE && (messages > 0 || (!is_timed && warmup_count == 0))) {
    enter(window, WINDOW_WARMUP, now_ns);
    age_ns = 0;
  }
  if (window->state == WINDOW_WARMUP &&
      (is_timed ? age_ns >= plan->warmup_ns : messages >= warmup_count * streams)) {
    enter(window, WINDOW_MEASURING, now_ns);
    age_ns = 0;
  }
  if (window->state == WINDOW_MEASURING &&
      (is_timed ? age_ns >= plan->time_ns : messages >= (warmup_count + plan->count) * streams)) {
    enter(window, WINDOW_OVER, now_ns);
  }
}

json_t *window_measure_idle(uint64_t rest_ns) {
  struct usage begin = read_usage();
  uint64_t begin_ns = clock_now_ns();
  struct timespec rest = clock_timespec(rest_ns);
  nanosleep(&rest, NULL);
  double seconds = (double)(clock_now_ns() - begin_ns) * 1e-9;
  return json_pack("{s:f, s:f}", "seconds", seconds, "cpu_seconds",
                   read_usage().process_s - begin.process_s);
}

static json_t *half_trips_to_json(double *us, size_t count) {
  double sum = 0;
  if (count == 0) {
    return json_null();
  }
  static const struct {
    const char *name;
    double share;
  } quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 } };
  for (size_t i = 0; i < count; i++) {
    sum += us[i];
  }
  quantile_sort(us, count);
  json_t *object = json_pack("{s:I, s:f, s:f, s:f}", "samples", (json_int_t)count, "min", us[0],
                             "mean", sum / (double)count, "max", us[count - 1]);
  for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
    json_object_set_new(object, quantiles[i].name,
                        json_real(quantile_at(us, count, quantiles[i].share)));
  }
  return object;
}

json_t *window_to_json(struct window *window) {
  const struct counts *counts = &window->counts;
  const struct usage *usage = &window->usage;
  return json_pack(
      "{s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:o}", "seconds", (double)window->length_ns * 1e-9,
      "bytes_sent", (json_int_t)counts->bytes_sent, "bytes_received",
      (json_int_t)counts->bytes_received, "messages_sent", (json_int_t)counts->messages_sent,
      "messages_received", (json_int_t)counts->messages_received, "cpu_seconds", usage->process_s,
      "driver_cpu_seconds", usage->driver_s, "threads", (int)window->threads, "half_round_trip_us",
      half_trips_to_json(window->half_trips_us, window->half_trip_count));
}
