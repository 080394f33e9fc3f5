/* SPDX-License-Identifier: Apache-2.0 */
/* soak: results are windows of arrays that are computed once, so a check costs a comparison of
 * memory and the network is busy most of the time. With integers, moved data and sums have
 * arbitrary bits, and one array per source serves all operations. Most stretches of the arrays are
 * small numbers of both signs, which STRATUS_COMPRESS codes, the others are noise. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/random.h"
#include "tests/coll/measure.h"
#include "tests/coll/message.h"
#include "tests/coll/pattern.h"
#include "tests/coll/report.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/watchdog.h"

enum {
  /* Elements by which arrays are larger than the largest size: each run begins at another place, so
   * that data of an earlier run is wrong in every later one. */
  SLACK = 64 << 10,
  ROUND = 16, /* operations between two checks of the time limit; also in tests/netns/victim.py */
  STRETCH = 64 << 10, /* elements: two chunks, so that operations of all larger sizes have both */
  NOISE_EVERY = 4,    /* stretches */
  SMALL_SHIFT = 16,   /* bits that a small number lacks */
};
static volatile sig_atomic_t is_told_to_end;

struct soak_state {
  struct job *job;
  uint32_t **sent; /* by each rank, then the reduction */
  size_t elements; /* of each of these arrays */
  enum operation operations[OPERATIONS];
  int operation_count;
  uint64_t random;
  FILE *log;
  uint64_t wrong; /* this process's, since the last exchange */
};

/* Rank 0 and the others have the same. */
struct soak_result {
  uint64_t operations, bytes; /* bytes: sizes added up */
  uint64_t wrong;             /* elements, over all ranks */
};

/* Every process draws the same numbers. */
static uint64_t draw(struct soak_state *e, uint64_t below) {
  return random_next(&e->random) % below;
}

/* ---- before and after ---- */

static void take_signal(int signal) {
  is_told_to_end = 1;
}

/* Fills a rank's array. */
static void compute_sent(const struct pattern *pattern, int source, uint32_t *sent,
                         size_t elements) {
  pattern_fill(pattern, source, 0, sent, elements);
  for (size_t i = 0; i < elements; i++) {
    if (i / STRETCH % NOISE_EVERY != NOISE_EVERY - 1)
      sent[i] = (uint32_t)((int32_t)sent[i] >> SMALL_SHIFT);
  }
}

static void compute_arrays(struct soak_state *e, uint64_t seed) {
  static struct pattern pattern;
  int ranks = e->job->ranks;
  pattern_init(&pattern, ELEMENT_INT32, PATTERN_SUM, ranks, seed, NULL);
  e->sent = message_allocate((size_t)ranks + 1, sizeof *e->sent);
  for (int source = 0; source <= ranks; source++)
    e->sent[source] = message_allocate(e->elements, sizeof **e->sent);
  for (int source = 0; source < ranks; source++) {
    compute_sent(&pattern, source, e->sent[source], e->elements);
    for (size_t i = 0; i < e->elements; i++)
      e->sent[ranks][i] += e->sent[source][i];
  }
}

static void begin(struct soak_state *e, struct job *job) {
  const struct options *o = job->options;
  *e = (struct soak_state){ .job = job, .random = (uint64_t)o->seed };
  e->elements = job->buffer_bytes / sizeof **e->sent + SLACK;
  for (int i = 0; i < OPERATIONS; i++) {
    if (o->operations[i])
      e->operations[e->operation_count++] = (enum operation)i;
  }
  compute_arrays(e, (uint64_t)o->seed);
  job->arrays = (const void *const *)e->sent;
  if (o->log_path && job->process == 0) {
    e->log = fopen(o->log_path, "we");
    if (!e->log)
      message_fail("%s: %s", o->log_path, strerror(errno));
  }
}

static void soak_end(struct soak_state *e) {
  if (e->log && fclose(e->log))
    message_fail("%s: %s", e->job->options->log_path, strerror(errno));
  for (int source = 0; source <= e->job->ranks; source++)
    free(e->sent[source]);
  free(e->sent);
}

/* ---- one turn ---- */

/* One operation: the same at every process. */
static struct operation_case choose(struct soak_state *e) {
  const struct options *o = e->job->options;
  enum operation operation = e->operations[draw(e, (uint64_t)e->operation_count)];
  const struct operation_info *info = &operation_infos[operation];
  int root = (int)draw(e, (uint64_t)e->job->ranks);
  uint64_t bytes = o->sizes[draw(e, (uint64_t)o->sizes_count)];
  return (struct operation_case){
    .operation = operation,
    .type = ELEMENT_INT32,
    .redop = info->has_redop ? PATTERN_SUM : PATTERN_NONE,
    .root = info->has_root ? root : -1,
    .counts = operation_count(operation, bytes, sizeof **e->sent, e->job->ranks),
  };
}

static void take_turn(struct soak_state *e, struct soak_result *result) {
  struct operation_case c = choose(e);
  struct measure_result found = { 0 };
  watchdog_set_place("%s, %zu bytes", operation_infos[c.operation].name, c.counts.bytes);
  measure_check(e->job, &c, false, draw(e, SLACK), &found);
  uint64_t wrong = found.wrong + found.out_of_bounds;
  e->wrong += wrong;
  result->operations++;
  result->bytes += c.counts.bytes;
  if (e->log) {
    fprintf(e->log,
            "{\"at_ns\": %" PRIu64 ", \"op\": \"%s\", \"bytes\": %zu, \"us\": %.1f, "
            "\"wrong\": %" PRIu64 "}\n",
            found.done_ns, operation_infos[c.operation].name, c.counts.bytes, found.time_us, wrong);
    fflush(e->log);
  }
}

/* Between rounds only: within a round NCCL should notice a process that ends. */
static bool is_over(struct soak_state *e, uint64_t end_ns, struct soak_result *result) {
  bool is_first_over = is_told_to_end || clock_now_ns() >= end_ns;
  double sums[] = { (double)e->wrong, e->job->process == 0 && is_first_over };
  rendezvous_sum(e->job->rendezvous, sums, 2);
  result->wrong += (uint64_t)sums[0];
  e->wrong = 0;
  return sums[1] > 0;
}

bool soak_run(struct job *job, FILE *table) {
  struct soak_state soak_state;
  struct soak_result result = { 0 };
  if (table) {
    report_print_ranks(table, job);
  }
  begin(&soak_state, job);
  signal(SIGUSR1, take_signal);
  rendezvous_barrier(job->rendezvous);
  uint64_t start_ns = clock_now_ns();
  do {
    for (int i = 0; i < ROUND; i++)
      take_turn(&soak_state, &result);
  } while (!is_over(&soak_state, start_ns + job->options->soak_ns, &result));
  double seconds = (double)(clock_now_ns() - start_ns) / 1e9;
  soak_end(&soak_state);
  if (table) {
    fprintf(table, "# %" PRIu64 " operations, %.3f GB, in %.3f s: %" PRIu64 " wrong\n",
            result.operations, (double)result.bytes / 1e9, seconds, result.wrong);
    if (fflush(table))
      message_fail("standard output: %s", strerror(errno));
  }
  return result.wrong == 0;
}
