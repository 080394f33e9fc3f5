/* SPDX-License-Identifier: Apache-2.0 */
/* Times single calls of getCollInfo with profiles of several sizes, and init of further
 * communicators. Figures to look at, not a test: a shared machine decides too much. */
#include "tests/abi/tuner_bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/random.h"
#include "tests/abi/tuner_driver.h"

enum { CALLS = 200000, COMMS = 200, CALL_SIZES = 4096 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

static uint64_t percentile(uint64_t *sorted, size_t count, double share) {
  return sorted[(size_t)(share * (double)(count - 1))];
}

/* What two reads of the clock take by themselves. */
static uint64_t clock_cost_ns(void) {
  static uint64_t samples[10000];
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
    uint64_t start = now_ns();
    samples[i] = now_ns() - start;
  }
  qsort(samples, 10000, sizeof samples[0], compare);
  return percentile(samples, 10000, 0.5);
}

static void write_profile(int row_count) {
  static char text[1 << 20];
  int used = snprintf(text, sizeof text,
                      "schema = 1\n[meta]\nid = bench\n[table allreduce nodes=4 ppn=8]\n");
  for (int i = 0; i < row_count; i++) {
    used += snprintf(text + used, sizeof text - (size_t)used, "%d %d %s 4\n", i * 1024,
                     (i + 1) * 1024, i % 2 ? "ring simple" : "tree ll");
  }
  driver_write_profile(text);
}

static void print_times(const char *what, uint64_t *samples, size_t count, uint64_t offset_ns) {
  qsort(samples, count, sizeof samples[0], compare);
  static const double shares[] = { 0.5, 0.99, 0.999 };
  uint64_t ns[3];
  for (int i = 0; i < 3; i++) {
    ns[i] = percentile(samples, count, shares[i]);
    ns[i] = ns[i] > offset_ns ? ns[i] - offset_ns : 0;
  }
  printf("  %-12s p50 %6llu ns   p99 %6llu ns   p99.9 %6llu ns\n", what, (unsigned long long)ns[0],
         (unsigned long long)ns[1], (unsigned long long)ns[2]);
}

/* A copy of `memory` is what the call may write to. */
static uint64_t time_call(struct driver_comm *comm, size_t bytes, struct driver_memory memory) {
  struct tuner_abi_v5 *tuner =
      comm->plugin->symbol; /* v6, v7 begin the same; skips the driver's own work */
  uint64_t start = now_ns();
  tuner->getCollInfo(comm->context, HOST_ALLREDUCE, bytes, 1, (float **)memory.costs, 7, 3, 0,
                     &memory.channels);
  return now_ns() - start;
}

/* The first call of a size finds its part of the table in no cache; a job goes on to ask for the
 * same sizes again and again. */
static void time_calls(struct driver_comm *comm, int row_count) {
  static uint64_t samples[CALLS];
  static size_t sizes[CALL_SIZES];
  struct driver_memory memory = { 0 };
  for (int i = 0; i < DRIVER_CELLS_MAX; i++) {
    memory.costs[i] = i % 4 == 3 ? HOST_IGNORE : 10.0f + (float)i;
  }
  uint64_t random = 1;
  size_t span = row_count ? (size_t)row_count * 1024 : 1 << 20;
  uint64_t clock_ns = clock_cost_ns();
  for (int i = 0; i < CALL_SIZES; i++) {
    sizes[i] = random_next(&random) % span;
    samples[i] = time_call(comm, sizes[i], memory);
  }
  print_times("first calls", samples, CALL_SIZES, clock_ns);
  for (int i = 0; i < CALLS; i++) {
    samples[i] = time_call(comm, sizes[random_next(&random) % CALL_SIZES], memory);
  }
  print_times("getCollInfo", samples, CALLS, clock_ns);
}

static void time_inits(const struct driver_plugin *plugin) {
  static struct driver_comm comms[COMMS];
  uint64_t samples[COMMS];
  for (int i = 0; i < COMMS; i++) {
    uint64_t start = now_ns();
    driver_init_comm(&comms[i], plugin, 32, 4);
    samples[i] = now_ns() - start;
  }
  print_times("later inits", samples, COMMS, 0);
  for (int i = 0; i < COMMS; i++) {
    driver_close_comm(&comms[i]);
  }
}

static void bench_size(const char *path, int row_count) {
  driver_isolate();
  driver_set_release(&tuner_releases[TUNER_RELEASE_COUNT - 1]);
  if (row_count) {
    write_profile(row_count);
  }
  struct driver_plugin plugin;
  struct driver_comm comm;
  driver_open(&plugin, &tuner_releases[TUNER_RELEASE_COUNT - 1], path);
  printf("%d rows\n", row_count);
  uint64_t start = now_ns();
  CHECK(driver_init_comm(&comm, &plugin, 32, 4) == NCCL_SUCCESS, "init");
  printf("  first init        %6llu ns\n", (unsigned long long)(now_ns() - start));
  time_inits(&plugin);
  time_calls(&comm, row_count);
  driver_close_comm(&comm);
  driver_remove_scratch();
}

int tuner_bench_run(const char *path) {
  static const int row_counts[] = { 0, 20, 1000, 30000 };
  for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
    pid_t child = fork(); /* the plugin reads its parameters once */
    if (child == 0) {
      bench_size(path, row_counts[i]);
      fflush(stdout);
      _Exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%d rows",
          row_counts[i]);
  }
  return 0;
}
