/* SPDX-License-Identifier: Apache-2.0 */
/* measure: as in nccl-tests, iterations are launched one after the other and waited for once; the
 * time is from the first launch to the end of the last. Data is checked in separate runs after the
 * timed ones. */
#include "tests/coll/measure.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/coll/check.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"

struct run {
  struct job *job;
  const struct operation_case *measure_case;
  bool is_in_place;
  int gpus;
  struct operation_rank *places; /* one per GPU of this process */
};

static void select_gpu(const struct run *run, int i) {
  if (run->gpus > 1)
    CUDA(cudaSetDevice(run->job->gpus[i].device));
}

/* ---- what NCCL is called with ---- */

struct operation_rank measure_place(const struct operation_case *c, const struct job_gpu *gpu,
                                    int ranks, bool is_in_place) {
  struct check_buffers buffers = check_place(c, gpu, is_in_place);
  return (struct operation_rank){ .rank = gpu->rank,
                                  .ranks = ranks,
                                  .send = buffers.send,
                                  .recv = buffers.recv,
                                  .comm = gpu->comm,
                                  .stream = gpu->stream };
}

static void launch(const struct run *run) {
  if (run->gpus > 1)
    NCCL(ncclGroupStart());
  for (int i = 0; i < run->gpus; i++) {
    select_gpu(run, i);
    operation_run(run->measure_case, &run->places[i]);
  }
  if (run->gpus > 1)
    NCCL(ncclGroupEnd());
}

static void wait_for_gpus(const struct run *run) {
  for (int i = 0; i < run->gpus; i++) {
    select_gpu(run, i);
    CUDA(cudaStreamSynchronize(run->places[i].stream));
  }
}

/* ---- time ---- */

static double seconds_since(uint64_t start_ns) {
  return (double)(clock_now_ns() - start_ns) / 1e9;
}

/* All processes must do the same number: rank 0 decides, from how long one iteration takes. */
static int choose_iterations(const struct run *run) {
  const struct options *options = run->job->options;
  if (!options->min_time_ns)
    return options->iterations;
  rendezvous_barrier(run->job->rendezvous);
  uint64_t start_ns = clock_now_ns();
  launch(run);
  wait_for_gpus(run);
  double wanted = (double)options->min_time_ns / (double)(clock_now_ns() - start_ns + 1);
  if (wanted > OPTIONS_ITERATIONS_MAX)
    wanted = OPTIONS_ITERATIONS_MAX;
  int iterations = (int)wanted + 1 > options->iterations ? (int)wanted + 1 : options->iterations;
  rendezvous_broadcast(run->job->rendezvous, &iterations, sizeof iterations);
  return iterations;
}

static double time_launches(struct run *run, int iterations, double *times_us) {
  rendezvous_barrier(run->job->rendezvous);
  uint64_t start_ns = clock_now_ns(), previous_ns = start_ns;
  for (int i = 0; i < iterations; i++) {
    launch(run);
    if (times_us) {
      wait_for_gpus(run);
      uint64_t now_ns = clock_now_ns();
      times_us[i] = (double)(now_ns - previous_ns) / 1e3;
      previous_ns = now_ns;
    }
  }
  wait_for_gpus(run);
  return seconds_since(start_ns) / iterations;
}

static void measure_time(struct run *run, struct measure_result *result) {
  struct job *job = run->job;
  const struct options *options = job->options;
  /* Times of single iterations begin when all ranks are there. */
  int before = options->warmup ? options->warmup : options->is_per_iteration;
  for (int i = 0; i < before; i++)
    launch(run);
  wait_for_gpus(run);
  int iterations = choose_iterations(run);
  double *times_us =
      options->is_per_iteration ? message_allocate((size_t)iterations, sizeof(double)) : NULL;
  double seconds = time_launches(run, iterations, times_us);
  rendezvous_sum(job->rendezvous, &seconds, 1);
  result->time_us = seconds / job->processes * 1e6;
  result->iterations = iterations;
  result->times_us = times_us;
  if (times_us)
    rendezvous_most(job->rendezvous, times_us, (size_t)iterations);
}

/* ---- correctness ---- */

static void measure_wrong(struct run *run, struct measure_result *result) {
  struct job *job = run->job;
  static uint64_t seed; /* the same at every process, another one for every check */
  for (int check = 0; check < job->options->checks; check++) {
    seed++;
    check_prepare(job, run->measure_case, run->is_in_place, seed);
    rendezvous_barrier(job->rendezvous);
    launch(run);
    wait_for_gpus(run);
    check_compare(job, run->measure_case, run->is_in_place, &result->wrong, &result->out_of_bounds);
  }
  measure_add_up(job, result);
}

void measure_add_up(const struct job *job, struct measure_result *result) {
  double counts[] = { (double)result->wrong, (double)result->out_of_bounds };
  rendezvous_sum(job->rendezvous, counts, 2);
  result->wrong = (uint64_t)counts[0];
  result->out_of_bounds = (uint64_t)counts[1];
  result->has_check = job->options->checks > 0;
}

static struct run open_run(struct job *job, const struct operation_case *measure_case,
                           bool is_in_place) {
  int gpus = job->options->gpus;
  struct run run = { .job = job,
                     .measure_case = measure_case,
                     .is_in_place = is_in_place,
                     .gpus = gpus,
                     .places = message_allocate((size_t)gpus, sizeof(struct operation_rank)) };
  for (int i = 0; i < gpus; i++)
    run.places[i] = measure_place(measure_case, &job->gpus[i], job->ranks, is_in_place);
  return run;
}

static void close_run(struct run *run) {
  free(run->places);
}

void measure_check(struct job *job, const struct operation_case *measure_case, bool is_in_place,
                   uint64_t seed, struct measure_result *result) {
  struct run run = open_run(job, measure_case, is_in_place);
  check_prepare(job, measure_case, is_in_place, seed);
  launch(&run);
  wait_for_gpus(&run);
  check_compare(job, measure_case, is_in_place, &result->wrong, &result->out_of_bounds);
  close_run(&run);
}

void measure_run(struct job *job, const struct operation_case *measure_case, bool is_in_place,
                 struct measure_result *result) {
  *result = (struct measure_result){ 0 };
  const struct operation_info *info = &operation_infos[measure_case->operation];
  /* Sums in place grow from one iteration to the next, until they are infinite. */
  if (is_in_place && (!info->has_in_place || (job->contents && info->has_redop)))
    return;
  struct run run = open_run(job, measure_case, is_in_place);
  if (job->contents)
    check_prepare(job, measure_case, is_in_place, 0);
  measure_time(&run, result);
  measure_wrong(&run, result);
  result->has_run = true;
  close_run(&run);
}
