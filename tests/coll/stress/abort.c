/* SPDX-License-Identifier: Apache-2.0 */
/* abort: random choices are the same at every rank, and repeat with the same --seed. */
#include "tests/coll/stress/abort.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/random.h"
#include "tests/coll/stress/canary.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/measure.h"
#include "tests/coll/message.h"
#include "tests/coll/operation_call.h"
#include "tests/coll/pattern.h"
#include "tests/coll/watchdog.h"

enum {
  LAUNCHES_MAX = 8,      /* of one round: each waits half as long as the one before */
  WHOLE_EVERY = 10,      /* rounds: the operation itself is checked and timed; it costs seconds */
  BASELINE_ROUND = 10,   /* caches and pools have filled by then */
  HOLD_MS = 200,         /* how long nobody may write to freed memory */
  STAGGER_MS_MAX = 60,   /* between two ranks */
  NOTICE_MS_MAX = 10000, /* an error must be reported by then: STRATUS_LINK_TIMEOUT's default */
  SCAN_BYTES = 4 << 20,  /* staging */
  NOT_WRITTEN = 0x5a,    /* each byte of a receive buffer before the operation */
  FREED = 0xa7,          /* each byte of a buffer that was freed and allocated again */
  MMAP_FROM_BYTES = 128 << 10, /* glibc's default, which it would raise otherwise */
  WAIT_LEAST = 5,              /* percent of the operation's time */
  WAIT_RANGE = 80,
};
static const size_t small_bytes[] = { 8, 64 << 10, 1 << 20 };
enum { SMALL = sizeof small_bytes / sizeof small_bytes[0] };

const char *const abort_pattern_names[ABORT_PATTERNS] = {
  [ABORT_TOGETHER] = "together",
  [ABORT_STAGGERED] = "staggered",
  [ABORT_AFTER_ERROR] = "after-error",
};

struct abort_test {
  struct job *job;
  const struct job_gpu *gpu;
  enum element_type type;
  enum operation operations[OPERATIONS];
  int operation_count, number; /* of rounds done */
  double *expected_us;         /* of each operation and size; 0: not known yet */
  uint64_t random;
  unsigned char *staging;
  struct abort_resources baseline;
  struct abort_result total;
};

/* One process's part of a round. A pattern may contain a few bytes of NOT_WRITTEN: hence 99 %. */
struct part {
  uint64_t abort_ns, touched;
  uint64_t result, moved; /* bytes of the result, and of these those that were written */
  int noticed, unnoticed, same_addresses;
  struct abort_resources resources;
};

/* Every process draws the same numbers. */
static uint64_t draw(struct abort_test *t, uint64_t below) {
  return random_next(&t->random) % below;
}

static void pause_for(uint64_t ns) {
  struct timespec time = clock_timespec(ns);
  nanosleep(&time, NULL);
}

static void set_place(const struct abort_round *r, const char *what) {
  watchdog_set_place("round %d, %s (%s, %zu bytes; %s, rank %d first)", r->number, what,
                     operation_infos[r->operation].name, r->bytes, abort_pattern_names[r->pattern],
                     r->first);
}

/* ---- sums ---- */

static struct measure_case make_case(const struct abort_test *t, enum operation operation,
                                     size_t bytes) {
  const struct operation_info *info = &operation_infos[operation];
  return (struct measure_case){
    .operation = operation,
    .type = t->type,
    .redop = info->has_redop ? PATTERN_SUM : PATTERN_NONE,
    .root = info->has_root ? (t->job->options->root < 0 ? 0 : t->job->options->root) : -1,
    .counts = operation_count(operation, bytes, element_infos[t->type].size_bytes, t->job->ranks),
  };
}

static double check_sums(struct abort_test *t, struct abort_round *r, size_t bytes) {
  struct measure_case c = make_case(t, r->operation, bytes);
  struct measure_result result;
  measure_run(t->job, &c, false, &result);
  r->wrong += result.wrong;
  r->out_of_bounds += result.out_of_bounds;
  return result.time_us;
}

static void check_all_sums(struct abort_test *t, struct abort_round *r, double *expected_us) {
  set_place(r, "sums");
  for (int i = 0; i < SMALL && small_bytes[i] <= t->job->buffer_bytes; i++)
    check_sums(t, r, small_bytes[i]);
  if (*expected_us > 0 && r->number % WHOLE_EVERY)
    return;
  *expected_us = check_sums(t, r, r->bytes);
  rendezvous_broadcast(t->job->rendezvous, expected_us, sizeof *expected_us);
}

/* ---- in the middle ---- */

static void launch(const struct abort_test *t, const struct measure_case *c) {
  struct operation_call call = { .operation = c->operation,
                                 .send = t->gpu->send + PATTERN_GUARD_BYTES,
                                 .recv = t->gpu->recv + PATTERN_GUARD_BYTES,
                                 .count = c->counts.call,
                                 .type = c->type,
                                 .redop = ncclSum,
                                 .root = c->root,
                                 .rank = t->gpu->rank,
                                 .ranks = t->job->ranks,
                                 .comm = t->gpu->comm,
                                 .stream = t->gpu->stream };
  operation_run(&call);
}

static bool is_running(const struct abort_test *t) {
  cudaError_t state = libs.cudaStreamQuery(t->gpu->stream);
  if (state != cudaSuccess && state != cudaErrorNotReady)
    libs_check_cuda(state, "cudaStreamQuery");
  return state == cudaErrorNotReady;
}

static bool is_running_everywhere(const struct abort_test *t) {
  bool mine = is_running(t), answer = true,
       *all = message_allocate((size_t)t->job->processes, sizeof *all);
  rendezvous_exchange(t->job->rendezvous, &mine, all, sizeof mine);
  for (int i = 0; i < t->job->processes; i++)
    answer = answer && all[i];
  free(all);
  return answer;
}

/* Starts the operation until no rank has finished it after the wait. */
static void come_to_the_middle(struct abort_test *t, struct abort_round *r, double expected_us) {
  struct measure_case c = make_case(t, r->operation, r->bytes);
  double wait_ns = expected_us * 10 * (double)(WAIT_LEAST + draw(t, WAIT_RANGE));
  set_place(r, "the operation to be aborted");
  for (;;) {
    CUDA(cudaMemset(t->gpu->recv, NOT_WRITTEN, job_buffer_bytes(t->job)));
    CUDA(cudaDeviceSynchronize());
    rendezvous_barrier(t->job->rendezvous);
    launch(t, &c);
    pause_for((uint64_t)wait_ns);
    r->wait_ms = wait_ns / 1e6;
    r->launches++;
    if (is_running_everywhere(t))
      return;
    CUDA(cudaStreamSynchronize(t->gpu->stream));
    if (r->launches == LAUNCHES_MAX)
      message_fail("%s of %zu bytes has always finished before it could be aborted, at last after "
                   "%.3f ms: give a larger size",
                   operation_infos[r->operation].name, r->bytes, r->wait_ms);
    wait_ns /= 2;
  }
}

/* ---- abort ---- */

/* Until NCCL reports an error; an operation that finishes has none to report. */
static void wait_for_error(const struct abort_test *t, struct part *mine) {
  uint64_t end_ns = clock_now_ns() + NOTICE_MS_MAX * NS_PER_MS;
  for (;;) {
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(t->gpu->comm, &error));
    if (error != ncclSuccess && error != ncclInProgress) {
      mine->noticed = 1;
      return;
    }
    if (!is_running(t))
      return;
    if (clock_now_ns() > end_ns) {
      message_write("a rank has aborted, but NCCL reported no error to this rank within %d ms",
                    NOTICE_MS_MAX);
      mine->unnoticed = 1;
      return;
    }
    pause_for(NS_PER_MS);
  }
}

static void abort_comm(struct abort_test *t, const struct abort_round *r, uint64_t stagger_ns,
                       struct part *mine) {
  int ranks = t->job->ranks, place = (t->gpu->rank + ranks - r->first) % ranks;
  set_place(r, "before the abort");
  if (r->pattern == ABORT_STAGGERED)
    pause_for((uint64_t)place * stagger_ns);
  else if (r->pattern == ABORT_AFTER_ERROR && place)
    wait_for_error(t, mine);
  if (r->number % 2) /* as PyTorch does; in other rounds NCCL does it */
    job_deregister_buffers(t->job);
  set_place(r, "the abort");
  canary_begin();
  uint64_t start_ns = clock_now_ns();
  NCCL(ncclCommAbort(t->gpu->comm));
  CUDA(cudaStreamSynchronize(t->gpu->stream));
  mine->abort_ns = clock_now_ns() - start_ns;
  canary_end();
}

/* ---- memory ---- */

/* Bytes of a buffer that are not `value`. */
static uint64_t count_other_bytes(const struct abort_test *t, const char *from, size_t bytes,
                                  unsigned char value) {
  uint64_t other = 0, whole = 0;
  memset(&whole, value, sizeof whole);
  for (size_t done = 0, some; done < bytes; done += some) {
    some = bytes - done < SCAN_BYTES ? bytes - done : SCAN_BYTES;
    CUDA(cudaMemcpy(t->staging, from + done, some, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < some;) {
      if (some - i >= sizeof whole && !memcmp(t->staging + i, &whole, sizeof whole))
        i += sizeof whole;
      else
        other += t->staging[i++] != value;
    }
  }
  return other;
}

static uint64_t check_freed(const struct abort_test *t, const char *buffer, const char *name) {
  uint64_t touched = count_other_bytes(t, buffer, job_buffer_bytes(t->job), FREED);
  if (touched)
    message_write("%llu bytes were written at %p, where the %s buffer had been freed",
                  (unsigned long long)touched, (const void *)buffer, name);
  return touched;
}

/* Frees what the operation worked on, and watches those addresses and NCCL's. */
static void watch_freed(struct abort_test *t, const struct abort_round *r, struct part *mine) {
  const struct job_gpu *gpu = t->gpu;
  uintptr_t send = (uintptr_t)gpu->send, recv = (uintptr_t)gpu->recv;
  set_place(r, "the watch over freed memory");
  job_free_buffers(t->job);
  job_allocate_buffers(t->job);
  uintptr_t new_send = (uintptr_t)gpu->send, new_recv = (uintptr_t)gpu->recv;
  mine->same_addresses =
      (new_send == send || new_send == recv) + (new_recv == send || new_recv == recv);
  CUDA(cudaMemset(gpu->send, FREED, job_buffer_bytes(t->job)));
  CUDA(cudaMemset(gpu->recv, FREED, job_buffer_bytes(t->job)));
  CUDA(cudaDeviceSynchronize());
  canary_fill();
  pause_for(HOLD_MS * NS_PER_MS);
  mine->touched =
      canary_check() + check_freed(t, gpu->send, "send") + check_freed(t, gpu->recv, "receive");
}

static int count_entries(const char *path) {
  int count = -3; /* ".", ".." and, of /proc/self/fd, the one that reads it */
  DIR *directory = opendir(path);
  if (!directory)
    message_fail("%s cannot be read", path);
  while (readdir(directory))
    count++;
  closedir(directory);
  return count;
}

static struct abort_resources count_resources(void) {
  malloc_trim(0);
  struct abort_resources r = { .descriptors = count_entries("/proc/self/fd"),
                               .threads = count_entries("/proc/self/task") + 1 };
  char line[256];
  long long kib;
  FILE *status = fopen("/proc/self/status", "re");
  while (status && fgets(line, sizeof line, status)) {
    if (sscanf(line, "VmRSS: %lld kB", &kib) == 1)
      r.memory_mib = (double)kib / 1024;
  }
  if (!status || r.memory_mib == 0)
    message_fail("/proc/self/status cannot be read");
  fclose(status);
  return r;
}

/* ---- rounds ---- */

static void raise_to(struct abort_resources *most, const struct abort_resources *r) {
  most->descriptors = r->descriptors > most->descriptors ? r->descriptors : most->descriptors;
  most->threads = r->threads > most->threads ? r->threads : most->threads;
  most->memory_mib = r->memory_mib > most->memory_mib ? r->memory_mib : most->memory_mib;
}

static void add_parts(struct abort_test *t, struct abort_round *r, const struct part *mine) {
  int processes = t->job->processes;
  struct part *all = message_allocate((size_t)processes, sizeof *all);
  bool is_middle = false;
  rendezvous_exchange(t->job->rendezvous, mine, all, sizeof *mine);
  for (int i = 0; i < processes; i++) {
    double abort_ms = (double)all[i].abort_ns / 1e6;
    t->total.slow += abort_ms >= ABORT_LIMIT_MS;
    r->abort_ms = abort_ms > r->abort_ms ? abort_ms : r->abort_ms;
    r->moved_percent += 100.0 * (double)all[i].moved / (double)all[i].result / processes;
    is_middle = is_middle || (all[i].moved > 0 && all[i].moved < all[i].result * 99 / 100);
    r->noticed += all[i].noticed;
    r->unnoticed += all[i].unnoticed;
    r->touched += all[i].touched;
    r->same_addresses += all[i].same_addresses;
    raise_to(&r->most, &all[i].resources);
  }
  t->total.middle += is_middle;
  free(all);
}

static void add_round(struct abort_result *total, const struct abort_round *r) {
  total->rounds++;
  total->unnoticed += r->unnoticed;
  total->same_addresses += r->same_addresses;
  total->wrong += r->wrong;
  total->out_of_bounds += r->out_of_bounds;
  total->touched += r->touched;
  total->max_abort_ms = r->abort_ms > total->max_abort_ms ? r->abort_ms : total->max_abort_ms;
}

/* Its place in expected_us as well. */
static struct abort_round next_round(struct abort_test *t, int *place) {
  const struct options *o = t->job->options;
  int done = t->number++;
  *place = done % (o->sizes_count * t->operation_count);
  struct abort_round r = {
    .number = t->number,
    .pattern = (enum abort_pattern)(done % ABORT_PATTERNS),
    .first = (int)draw(t, (uint64_t)t->job->ranks),
    .operation = t->operations[*place / o->sizes_count],
  };
  r.bytes = make_case(t, r.operation, o->sizes[*place % o->sizes_count]).counts.bytes;
  return r;
}

void abort_run_round(struct abort_test *t, struct abort_round *r) {
  struct part mine = { 0 };
  int place;
  *r = next_round(t, &place);
  check_all_sums(t, r, &t->expected_us[place]);
  uint64_t stagger_ns = (1 + draw(t, STAGGER_MS_MAX)) * NS_PER_MS;
  watchdog_forget();
  come_to_the_middle(t, r, t->expected_us[place]);
  abort_comm(t, r, stagger_ns, &mine);
  mine.result =
      make_case(t, r->operation, r->bytes).counts.recv * element_infos[t->type].size_bytes;
  mine.moved = count_other_bytes(t, t->gpu->recv + PATTERN_GUARD_BYTES, mine.result, NOT_WRITTEN);
  watch_freed(t, r, &mine);
  mine.resources = count_resources();
  if (r->number == t->total.baseline_round)
    t->baseline = mine.resources;
  t->total.growth = (struct abort_resources){ mine.resources.descriptors - t->baseline.descriptors,
                                              mine.resources.threads - t->baseline.threads,
                                              mine.resources.memory_mib - t->baseline.memory_mib };
  add_parts(t, r, &mine);
  add_round(&t->total, r);
  set_place(r, "new communicators");
  job_open_comms(t->job);
}

void abort_prepare(void) {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
}

struct abort_test *abort_open(struct job *job) {
  const struct options *o = job->options;
  if (o->gpus > 1 || o->graph_launches || !o->checks)
    message_fail("--abort excludes -G, -g above 1 and -c 0");
  struct abort_test *t = message_allocate(1, sizeof *t);
  *t = (struct abort_test){ .job = job, .gpu = &job->gpus[0], .random = (uint64_t)stress.seed };
  while (!o->types[t->type])
    t->type++;
  for (int i = 0; i < OPERATIONS; i++) {
    if (o->operations[i])
      t->operations[t->operation_count++] = (enum operation)i;
  }
  const char *why_not = job_why_not(job, t->operations[0], t->type);
  if (why_not)
    message_fail("-d %s: %s", element_infos[t->type].name, why_not);
  t->expected_us =
      message_allocate((size_t)(o->sizes_count * t->operation_count), sizeof *t->expected_us);
  t->staging = message_allocate(SCAN_BYTES, 1);
  t->total.baseline_round =
      stress.abort_rounds > BASELINE_ROUND ? BASELINE_ROUND : (stress.abort_rounds + 1) / 2;
  return t;
}

void abort_close(struct abort_test *t, struct abort_result *result) {
  struct abort_round last = { .number = t->number + 1, .operation = t->operations[0] };
  int processes = t->job->processes;
  struct abort_resources *all = message_allocate((size_t)processes, sizeof *all);
  double unknown_us = 0; /* so the whole size is checked */
  last.bytes = make_case(t, last.operation, (size_t)t->job->options->sizes[0]).counts.bytes;
  check_all_sums(t, &last, &unknown_us);
  *result = t->total;
  result->wrong += last.wrong;
  result->out_of_bounds += last.out_of_bounds;
  rendezvous_exchange(t->job->rendezvous, &t->total.growth, all, sizeof *all);
  for (int i = 0; i < processes; i++)
    raise_to(&result->growth, &all[i]);
  result->is_good = !result->wrong && !result->out_of_bounds && !result->touched &&
                    !result->unnoticed && !result->slow && result->growth.descriptors <= 0 &&
                    result->growth.threads <= 0 &&
                    result->growth.memory_mib <= ABORT_GROWTH_MIB_MAX;
  free(all);
  free(t->expected_us);
  free(t->staging);
  free(t);
}
