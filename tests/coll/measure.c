/* SPDX-License-Identifier: Apache-2.0 */
/* measure: as in nccl-tests, iterations are launched one after the other and waited for once; the
 * time is from the first launch to the end of the last. Data is checked in separate runs after the
 * timed ones. */
#include "tests/coll/measure.h"

#include <stdlib.h>

#include "common/clock.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/pattern.h"

/* ---- data: patterns are moved to GPUs and results back, and compared ----
 *
 * No GPU code of its own: so it runs on any GPU, real or emulated, without a CUDA compiler. */

enum { STAGING_BYTES = 4 << 20 };
static _Alignas(64) char staging[STAGING_BYTES];
static struct pattern pattern;

/* Where a rank's data is. In place, `send` lies within the receive buffer, or the other way round.
 */
struct check_buffers {
  char *send, *recv;
  char *begin, *end; /* of all that NCCL may write: guards lie on both sides */
};

static struct check_buffers check_place(const struct operation_case *c, const struct job_gpu *gpu,
                                        bool is_in_place) {
  size_t size = element_infos[c->type].size_bytes;
  struct check_buffers b = { .send = gpu->send + PATTERN_GUARD_BYTES,
                             .recv = gpu->recv + PATTERN_GUARD_BYTES };
  b.begin = b.recv;
  b.end = b.recv + c->counts.recv * size;
  if (is_in_place) {
    size_t offset = operation_in_place_offset(c->operation, &c->counts, gpu->rank) * size;
    b.end = b.begin + c->counts.bytes;
    b.send = b.begin;
    if (c->operation == OPERATION_REDUCE_SCATTER)
      b.recv = b.begin + offset;
    else
      b.send = b.begin + offset;
  }
  return b;
}

static void fill(char *to, int rank, uint64_t place, size_t count) {
  size_t size = element_infos[pattern.type].size_bytes;
  for (size_t done = 0; done < count;) {
    size_t part = count - done < STAGING_BYTES / size ? count - done : STAGING_BYTES / size;
    pattern_fill(&pattern, rank, place + done, staging, part);
    CUDA(cudaMemcpy(to + done * size, staging, part * size, cudaMemcpyHostToDevice));
    done += part;
  }
}

static void fill_sent(const struct operation_case *c, const struct job_gpu *gpu, char *send) {
  size_t size = element_infos[c->type].size_bytes;
  if (!c->transfers)
    fill(send, gpu->rank, 0, c->counts.send);
  for (size_t i = 0; i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    if (t->is_send)
      fill(send + t->first * size, gpu->rank, t->place, t->count);
  }
}

/* Fills the buffers of all GPUs of this process, the guards, and, with something that is no result,
 * the rest. */
static void check_prepare(const struct job *job, const struct operation_case *c, bool is_in_place,
                          uint64_t seed) {
  unsigned char guard[PATTERN_GUARD_BYTES];
  pattern_fill_guard(guard);
  if (pattern.type != c->type || pattern.redop != c->redop || pattern.ranks != job->ranks)
    pattern_init(&pattern, c->type, c->redop, job->ranks, seed, job->contents);
  if (job->arrays)
    pattern_use(&pattern, job->arrays, seed);
  else
    pattern_set_seed(&pattern, seed);
  for (int i = 0; i < job->options->gpus; i++) {
    const struct job_gpu *gpu = &job->gpus[i];
    struct check_buffers b = check_place(c, gpu, is_in_place);
    CUDA(cudaSetDevice(gpu->device));
    CUDA(cudaMemset(b.begin, 0x5a, (size_t)(b.end - b.begin)));
    CUDA(cudaMemcpy(b.begin - PATTERN_GUARD_BYTES, guard, sizeof guard, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b.end, guard, sizeof guard, cudaMemcpyHostToDevice));
    fill_sent(c, gpu, b.send);
    CUDA(cudaDeviceSynchronize());
  }
}

void check_fill_with_contents(const struct job *job) {
  size_t bytes = job_buffer_bytes(job);
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
    contents_copy(job->contents, done, staging, part);
    CUDA(cudaMemcpy(job->gpus[0].send + done, staging, part, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(job->gpus[0].recv + done, staging, part, cudaMemcpyHostToDevice));
    done += part;
  }
}

/* A few of these are enough; thousands would hide other messages. */
enum { SAY_MAX = 20 };
static int said;

static void say_where(const struct operation_case *c, int rank, const struct operation_part *part,
                      size_t index, size_t in_staging) {
  if (said++ >= SAY_MAX)
    return;
  unsigned size = element_infos[c->type].size_bytes;
  uint64_t place = part->place + index - part->first;
  uint64_t got = element_load(staging, size, in_staging);
  uint64_t expected = part->source == PATTERN_REDUCED ? pattern_expected(&pattern, place)
                                                      : pattern_sent(&pattern, part->source, place);
  message_write("%s %s %s, %zu bytes: element %zu of rank %d is 0x%llx and should be 0x%llx",
                operation_infos[c->operation].name, element_infos[c->type].name,
                operation_redop_names[c->redop], c->counts.bytes, index, rank,
                (unsigned long long)got, (unsigned long long)expected);
}

static uint64_t count_wrong(const struct operation_case *c, int rank, const char *recv,
                            const struct operation_part *part) {
  size_t size = element_infos[c->type].size_bytes;
  uint64_t wrong = 0;
  for (size_t done = 0; done < part->length;) {
    size_t left = part->length - done, first = 0;
    size_t count = left < STAGING_BYTES / size ? left : STAGING_BYTES / size;
    CUDA(cudaMemcpy(staging, recv + (part->first + done) * size, count * size,
                    cudaMemcpyDeviceToHost));
    uint64_t more =
        pattern_compare(&pattern, part->source, part->place + done, staging, count, &first);
    if (more && !wrong)
      say_where(c, rank, part, part->first + done + first, first);
    wrong += more;
    done += count;
  }
  return wrong;
}

static uint64_t count_out_of_bounds(const struct operation_case *c, int rank, const char *at,
                                    const char *where) {
  unsigned char guard[PATTERN_GUARD_BYTES];
  CUDA(cudaMemcpy(guard, at, sizeof guard, cudaMemcpyDeviceToHost));
  uint64_t changed = pattern_compare_guard(guard);
  if (changed && said++ < SAY_MAX)
    message_write("%s, %zu bytes: %llu bytes %s the result of rank %d were written",
                  operation_infos[c->operation].name, c->counts.bytes, (unsigned long long)changed,
                  where, rank);
  return changed;
}

/* At most as many as there are ranks or transfers. */
static int parts_of(const struct operation_case *c, int rank, int ranks,
                    struct operation_part *parts) {
  if (!c->transfers)
    return operation_parts(c->operation, &c->counts, rank, ranks, c->root, parts);
  int count = 0;
  for (size_t i = 0; i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    if (!t->is_send)
      parts[count++] = (struct operation_part){
        .source = t->peer, .place = t->place, .first = t->first, .length = t->count
      };
  }
  return count;
}

/* Adds up wrong elements and changed guard bytes; reports the first on stderr. To be called after
 * check_prepare and one run. */
static void check_compare(const struct job *job, const struct operation_case *c, bool is_in_place,
                          uint64_t *wrong, uint64_t *out_of_bounds) {
  struct operation_part *parts =
      message_allocate((size_t)job->ranks + c->transfer_count, sizeof *parts);
  for (int i = 0; i < job->options->gpus; i++) {
    const struct job_gpu *gpu = &job->gpus[i];
    struct check_buffers b = check_place(c, gpu, is_in_place);
    CUDA(cudaSetDevice(gpu->device));
    int count = parts_of(c, gpu->rank, job->ranks, parts);
    for (int part = 0; part < count; part++)
      *wrong += count_wrong(c, gpu->rank, b.recv, &parts[part]);
    *out_of_bounds += count_out_of_bounds(c, gpu->rank, b.begin - PATTERN_GUARD_BYTES, "before") +
                      count_out_of_bounds(c, gpu->rank, b.end, "behind");
  }
  free(parts);
}

/* ---- one case ---- */

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
  uint64_t start_ns = clock_now_ns();
  launch(&run);
  wait_for_gpus(&run);
  result->done_ns = clock_now_ns();
  result->time_us = (double)(result->done_ns - start_ns) / 1e3;
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
