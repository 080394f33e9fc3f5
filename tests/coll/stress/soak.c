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
#include "tests/coll/stress/stress.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/pattern.h"
#include "tests/coll/report.h"
#include "tests/coll/watchdog.h"

enum {
  PLACE_STEP = 64, /* elements: alignment that suits a GPU */
  ROUND = 16,   /* operations between two checks of the time limit; also in tests/netns/victim.py */
  SAY_MAX = 20, /* messages about wrong elements */
  STAGING_BYTES = 1 << 20,
  STRETCH = 64 << 10, /* elements: two chunks, so that operations of all larger sizes have both */
  NOISE_EVERY = 4,    /* stretches */
  SMALL_SHIFT = 16,   /* bits that a small number lacks */
};
static const enum element_type type = ELEMENT_INT32;
static const size_t element_bytes = 4;
static const unsigned char poison = 0x5a;
static volatile sig_atomic_t is_told_to_end;

struct soak_state {
  struct job *job;
  const struct job_gpu *gpu;
  uint32_t **sent; /* by each rank, then the reduction */
  size_t elements; /* of each of these arrays */
  enum operation operations[OPERATIONS];
  int operation_count;
  struct operation_part *parts;
  unsigned char *staging;
  uint64_t random;
  FILE *log;
  int said;
  uint64_t wrong; /* this process's, since the last exchange */
};

/* Rank 0 and the others have the same. */
struct soak_result {
  uint64_t operations, bytes; /* bytes: sizes added up */
  uint64_t wrong;             /* elements, over all ranks */
};

/* One operation: the same at every process. */
struct turn {
  enum operation operation;
  int root;
  struct operation_counts counts;
  size_t place; /* where in the arrays what is sent begins */
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
  pattern_init(&pattern, type, PATTERN_SUM, ranks, seed, NULL);
  e->sent = message_allocate((size_t)ranks + 1, sizeof *e->sent);
  for (int source = 0; source <= ranks; source++)
    e->sent[source] = message_allocate(e->elements, element_bytes);
  for (int source = 0; source < ranks; source++) {
    compute_sent(&pattern, source, e->sent[source], e->elements);
    for (size_t i = 0; i < e->elements; i++)
      e->sent[ranks][i] += e->sent[source][i];
  }
}

static void begin(struct soak_state *e, struct job *job) {
  const struct options *o = job->options;
  *e = (struct soak_state){ .job = job, .gpu = &job->gpus[0], .random = (uint64_t)stress.seed };
  e->elements = job->buffer_bytes / element_bytes;
  for (int i = 0; i < OPERATIONS; i++) {
    if (o->operations[i])
      e->operations[e->operation_count++] = (enum operation)i;
  }
  e->parts = message_allocate((size_t)job->ranks, sizeof *e->parts);
  e->staging = message_allocate(STAGING_BYTES, 1);
  compute_arrays(e, (uint64_t)stress.seed);
  CUDA(cudaMemcpy(e->gpu->send, e->sent[e->gpu->rank], e->elements * element_bytes,
                  cudaMemcpyHostToDevice));
  if (stress.log_path && job->process == 0) {
    e->log = fopen(stress.log_path, "we");
    if (!e->log)
      message_fail("%s: %s", stress.log_path, strerror(errno));
  }
}

static void soak_end(struct soak_state *e) {
  if (e->log && fclose(e->log))
    message_fail("%s: %s", stress.log_path, strerror(errno));
  for (int source = 0; source <= e->job->ranks; source++)
    free(e->sent[source]);
  free(e->sent);
  free(e->parts);
  free(e->staging);
}

/* ---- one turn ---- */

static void choose(struct soak_state *e, struct turn *turn) {
  const struct options *o = e->job->options;
  turn->operation = e->operations[draw(e, (uint64_t)e->operation_count)];
  turn->root = (int)draw(e, (uint64_t)e->job->ranks);
  uint64_t bytes = o->sizes[draw(e, (uint64_t)o->sizes_count)];
  turn->counts = operation_count(turn->operation, bytes, element_bytes, e->job->ranks);
  turn->place = PLACE_STEP * draw(e, SOAK_SLACK / PLACE_STEP);
}

static void run(const struct soak_state *e, const struct turn *turn) {
  const struct operation_case what = {
    turn->operation, type, PATTERN_SUM, turn->root, turn->counts, NULL, 0
  };
  operation_run(&what, &(struct operation_rank){ .rank = e->gpu->rank,
                                                 .ranks = e->job->ranks,
                                                 .send = e->gpu->send + turn->place * element_bytes,
                                                 .recv = e->gpu->recv,
                                                 .comm = e->gpu->comm,
                                                 .stream = e->gpu->stream });
  CUDA(cudaStreamSynchronize(e->gpu->stream));
}

static void say_where(struct soak_state *e, const struct turn *turn, size_t index, uint32_t got,
                      uint32_t expected) {
  if (e->said++ < SAY_MAX)
    message_write("%s, %zu bytes: element %zu of rank %d is 0x%" PRIx32 " and should be 0x%" PRIx32,
                  operation_infos[turn->operation].name, turn->counts.bytes, index, e->gpu->rank,
                  got, expected);
}

/* Elements of the receive buffer from `first` on that differ from `expected`. */
static uint64_t soak_compare(struct soak_state *e, const struct turn *turn, size_t first,
                             const uint32_t *expected, size_t count) {
  uint64_t wrong = 0;
  for (size_t done = 0, some; done < count; done += some) {
    some =
        count - done < STAGING_BYTES / element_bytes ? count - done : STAGING_BYTES / element_bytes;
    CUDA(cudaMemcpy(e->staging, e->gpu->recv + (first + done) * element_bytes, some * element_bytes,
                    cudaMemcpyDeviceToHost));
    if (!memcmp(e->staging, expected + done, some * element_bytes))
      continue;
    for (size_t i = 0; i < some; i++) {
      uint32_t got;
      memcpy(&got, e->staging + i * element_bytes, sizeof got);
      if (got == expected[done + i])
        continue;
      if (!wrong++)
        say_where(e, turn, first + done + i, got, expected[done + i]);
    }
  }
  return wrong;
}

/* Memory after the result must be unchanged. */
static uint64_t count_behind(struct soak_state *e, const struct turn *turn) {
  size_t end = turn->counts.recv * element_bytes;
  uint64_t wrong = 0;
  CUDA(cudaMemcpy(e->staging, e->gpu->recv + end, PATTERN_GUARD_BYTES, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < PATTERN_GUARD_BYTES; i++)
    wrong += e->staging[i] != poison;
  if (wrong)
    message_write("%s, %zu bytes: %" PRIu64 " bytes behind the result of rank %d were written",
                  operation_infos[turn->operation].name, turn->counts.bytes, wrong, e->gpu->rank);
  return wrong;
}

static uint64_t soak_check(struct soak_state *e, const struct turn *turn) {
  int count = operation_parts(turn->operation, &turn->counts, e->gpu->rank, e->job->ranks,
                              turn->root, e->parts);
  uint64_t wrong = count_behind(e, turn);
  for (int i = 0; i < count; i++) {
    const struct operation_part *part = &e->parts[i];
    const uint32_t *source =
        e->sent[part->source == PATTERN_REDUCED ? e->job->ranks : part->source];
    wrong += soak_compare(e, turn, part->first, source + turn->place + part->place, part->length);
  }
  return wrong;
}

static void take_turn(struct soak_state *e, struct soak_result *result) {
  struct turn turn;
  choose(e, &turn);
  CUDA(cudaMemset(e->gpu->recv, poison, turn.counts.recv * element_bytes + PATTERN_GUARD_BYTES));
  CUDA(cudaDeviceSynchronize());
  watchdog_set_place("%s, %zu bytes", operation_infos[turn.operation].name, turn.counts.bytes);
  uint64_t start_ns = clock_now_ns();
  run(e, &turn);
  uint64_t now_ns = clock_now_ns(), wrong = soak_check(e, &turn);
  e->wrong += wrong;
  result->operations++;
  result->bytes += turn.counts.bytes;
  if (e->log) {
    fprintf(e->log,
            "{\"at_ns\": %" PRIu64 ", \"op\": \"%s\", \"bytes\": %zu, \"us\": %.1f, "
            "\"wrong\": %" PRIu64 "}\n",
            now_ns, operation_infos[turn.operation].name, turn.counts.bytes,
            (double)(now_ns - start_ns) / 1e3, wrong);
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
  if (job->options->gpus > 1)
    message_fail("--soak takes one GPU per process");
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
  } while (!is_over(&soak_state, start_ns + stress.soak_ns, &result));
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
