/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over time or over a number of messages, and what the system says about the process. */
#include "net_plugin/tools/perf/gauge.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>

#include "common/clock.h"

static double seconds(const struct rusage *usage) {
  return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
         (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

static struct usage read_usage(void) {
  struct rusage process, driver;
  getrusage(RUSAGE_SELF, &process);
  getrusage(RUSAGE_THREAD, &driver);
  return (struct usage){ .process_s = seconds(&process),
                         .driver_s = seconds(&driver),
                         .waits = (uint64_t)process.ru_nvcsw,
                         .preemptions = (uint64_t)process.ru_nivcsw };
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

void gauge_start(struct gauge *gauge, const struct plan *plan, int streams) {
  *gauge = (struct gauge){ .plan = plan, .streams = streams };
  histogram_clear(&gauge->half_trips);
}

static void enter(struct gauge *gauge, enum gauge_state state, uint64_t now_ns) {
  if (state == GAUGE_MEASURING) {
    gauge->threads = count_threads();
    gauge->window = gauge->now;
    gauge->usage = read_usage();
  }
  if (state == GAUGE_OVER) {
    struct usage end = read_usage();
    gauge->window_ns = now_ns - gauge->since_ns;
    gauge->window.bytes_sent = gauge->now.bytes_sent - gauge->window.bytes_sent;
    gauge->window.bytes_received = gauge->now.bytes_received - gauge->window.bytes_received;
    gauge->window.messages_sent = gauge->now.messages_sent - gauge->window.messages_sent;
    gauge->window.messages_received =
        gauge->now.messages_received - gauge->window.messages_received;
    gauge->usage.process_s = end.process_s - gauge->usage.process_s;
    gauge->usage.driver_s = end.driver_s - gauge->usage.driver_s;
    gauge->usage.waits = end.waits - gauge->usage.waits;
    gauge->usage.preemptions = end.preemptions - gauge->usage.preemptions;
  }
  gauge->state = state;
  gauge->since_ns = now_ns;
}

void gauge_look(struct gauge *gauge, uint64_t now_ns) {
  const struct plan *plan = gauge->plan;
  uint64_t messages = gauge->now.messages_sent + gauge->now.messages_received;
  uint64_t streams = (uint64_t)gauge->streams, age_ns = now_ns - gauge->since_ns;
  bool is_timed = plan->is_timed;
  if (gauge->state == GAUGE_IDLE && (messages > 0 || (!is_timed && plan->warmup_count == 0))) {
    enter(gauge, GAUGE_WARMING, now_ns);
    age_ns = 0;
  }
  if (gauge->state == GAUGE_WARMING &&
      (is_timed ? age_ns >= plan->warmup_ns : messages >= plan->warmup_count * streams)) {
    enter(gauge, GAUGE_MEASURING, now_ns);
    age_ns = 0;
  }
  if (gauge->state == GAUGE_MEASURING &&
      (is_timed ? age_ns >= plan->time_ns
                : messages >= (plan->warmup_count + plan->count) * streams)) {
    enter(gauge, GAUGE_OVER, now_ns);
  }
}

json_t *gauge_rest(uint64_t rest_ns) {
  struct usage begin = read_usage();
  uint64_t begin_ns = clock_now_ns();
  struct timespec rest = clock_timespec(rest_ns);
  nanosleep(&rest, NULL);
  double seconds = (double)(clock_now_ns() - begin_ns) * 1e-9;
  return json_pack("{s:f, s:f}", "seconds", seconds, "cpu_seconds",
                   read_usage().process_s - begin.process_s);
}

static json_t *half_trips_to_json(const struct histogram *trips) {
  if (trips->count == 0) {
    return json_null();
  }
  return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "samples", (json_int_t)trips->count,
                   "min", (double)trips->least * 1e-3, "mean", histogram_mean(trips) * 1e-3, "p50",
                   (double)histogram_quantile(trips, 0.5) * 1e-3, "p90",
                   (double)histogram_quantile(trips, 0.9) * 1e-3, "p99",
                   (double)histogram_quantile(trips, 0.99) * 1e-3, "max",
                   (double)trips->most * 1e-3);
}

json_t *gauge_to_json(const struct gauge *gauge, json_t *flows) {
  const struct counts *window = &gauge->window;
  const struct usage *usage = &gauge->usage;
  return json_pack("{s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:i, s:I, s:I, s:o, s:o}", "seconds",
                   (double)gauge->window_ns * 1e-9, "bytes_sent", (json_int_t)window->bytes_sent,
                   "bytes_received", (json_int_t)window->bytes_received, "messages_sent",
                   (json_int_t)window->messages_sent, "messages_received",
                   (json_int_t)window->messages_received, "cpu_seconds", usage->process_s,
                   "driver_cpu_seconds", usage->driver_s, "threads", (int)gauge->threads,
                   "context_switches_voluntary", (json_int_t)usage->waits,
                   "context_switches_forced", (json_int_t)usage->preemptions, "half_round_trip_us",
                   half_trips_to_json(&gauge->half_trips), "flows", flows ? flows : json_null());
}
