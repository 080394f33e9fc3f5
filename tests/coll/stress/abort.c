/* SPDX-License-Identifier: Apache-2.0 */
/* abort: random choices are the same at every rank, and repeat with the same --seed. */

#include <errno.h>
#include <sys/mman.h>
#include <stdatomic.h>
#include <pthread.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/random.h"
#include "tests/coll/measure.h"
#include "tests/coll/message.h"
#include "tests/coll/report.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/watchdog.h"
#include "tests/lib/traces.h"

enum {
  LAUNCHES_MAX = 8,            /* of one round: each waits half as long as the one before */
  WHOLE_EVERY = 10,            /* rounds: the whole size is checked and timed; it costs seconds */
  BASELINE_ROUND = 10,         /* caches and pools have filled by then */
  HOLD_MS = 200,               /* how long nobody may write to freed memory */
  STAGGER_MS_MAX = 60,         /* between two ranks */
  NOTICE_MS_MAX = 10000,       /* an error must be reported by then */
  LIMIT_MS = 2000,             /* of an abort */
  GROWTH_MIB_MAX = 16,         /* what an allocator may keep */
  SCAN_BYTES = 4 << 20,        /* staging */
  NOT_WRITTEN = 0x5a,          /* each byte of a receive buffer before the operation */
  FREED = 0xa7,                /* each byte of a buffer that was freed and allocated again */
  MMAP_FROM_BYTES = 128 << 10, /* glibc's default, which it would raise otherwise */
  WAIT_LEAST = 5,              /* percent of the operation's time */
  WAIT_RANGE = 80,
};
static const size_t small_bytes[] = { 8, 64 << 10, 1 << 20 };

enum order { TOGETHER, STAGGERED, AFTER_ERROR, ORDERS };
static const char *const order_names[ORDERS] = { "together", "staggered", "after an error" };

struct resources {
  struct traces traces;
  double memory_mib; /* resident */
};

/* What came of the rounds so far; of one process, then of all. */
struct result {
  double abort_ms;  /* the longest */
  int middle;       /* rounds in which a part of the result had been written, and not all */
  int unnoticed;    /* aborts before which no error was reported in time */
  uint64_t wrong;   /* elements of sums, and bytes around them */
  uint64_t touched; /* bytes of freed memory that were written */
  struct resources growth;
};

struct abort_test {
  struct job *job;
  const struct job_gpu *gpu;
  int round, first; /* first: the rank that aborts first */
  enum order order;
  size_t bytes;
  double expected_us; /* of the operation; 0: not known yet */
  uint64_t random;
  unsigned char *staging;
  struct resources baseline;
  struct result mine;
};

/* Every process draws the same numbers. */
static uint64_t draw(struct abort_test *t, uint64_t below) {
  return random_next(&t->random) % below;
}

static void pause_for(uint64_t ns) {
  struct timespec time = clock_timespec(ns);
  nanosleep(&time, NULL);
}

static void set_place(const struct abort_test *t, const char *what) {
  watchdog_set_place("round %d, %s (%zu bytes; %s, rank %d first)", t->round, what, t->bytes,
                     order_names[t->order], t->first);
}

/* ---- canary: memory with a known pattern, mapped where others have just freed memory ----
 *
 * It detects late writes to freed memory, which otherwise crash only sometimes. The kernel hands
 * out the highest gap that is large enough, so pieces smaller than what is freed fill its place.
 * Every word holds its own address, changed by a constant: data that is moved from one piece to
 * another is seen as well. */

enum {
  PIECE_BYTES = 512 << 10, /* NCCL's buffers are of some hundred KiB up to some MiB */
  WORDS = PIECE_BYTES / 8,
  PIECES_MAX = 96,           /* 48 MiB: what a rank of a few channels frees */
  PIECES_WHILE_FREEING = 64, /* at most, by the thread */
  PAUSE_NS = 200 * 1000,     /* between two of them: short beside an abort's milliseconds */
};
static const uint64_t key = UINT64_C(0x5ca1ab1e0ddba11);

static struct {
  uint64_t *pieces[PIECES_MAX];
  int count;
  pthread_t thread;
  atomic_bool is_ending;
} canary;

static void map_piece(void) {
  uint64_t *piece =
      mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED)
    message_fail("out of memory");
  for (size_t i = 0; i < WORDS; i++)
    piece[i] = (uint64_t)(uintptr_t)&piece[i] ^ key;
  canary.pieces[canary.count++] = piece;
}

static void *map_pieces(void *unused) {
  const struct timespec pause = { .tv_nsec = PAUSE_NS };
  while (!atomic_load(&canary.is_ending) && canary.count < PIECES_WHILE_FREEING) {
    map_piece();
    nanosleep(&pause, NULL);
  }
  return NULL;
}

/* From now on maps a piece from time to time, while another thread frees memory. */
static void canary_begin(void) {
  atomic_store(&canary.is_ending, false);
  int error = pthread_create(&canary.thread, NULL, map_pieces, NULL);
  if (error)
    message_fail("cannot start a thread: %s", strerror(error));
}

static void canary_end(void) {
  atomic_store(&canary.is_ending, true);
  pthread_join(canary.thread, NULL);
}

/* Maps the rest of the pieces at once. */
static void canary_fill(void) {
  while (canary.count < PIECES_MAX)
    map_piece();
}

static uint64_t check_piece(uint64_t *piece) {
  uint64_t changed = 0;
  for (size_t i = 0; i < WORDS; i++) {
    uint64_t difference = piece[i] ^ (uint64_t)(uintptr_t)&piece[i] ^ key;
    if (difference && !changed)
      message_write("memory that was freed was written to: 0x%016" PRIx64
                    " at %p, in a piece of %d bytes at "
                    "%p",
                    piece[i], (void *)&piece[i], PIECE_BYTES, (void *)piece);
    for (; difference; difference >>= 8)
      changed += (difference & 0xff) != 0;
  }
  return changed;
}

/* Bytes that have changed, the first of which is reported on stderr; unmaps everything. */
static uint64_t canary_check(void) {
  uint64_t changed = 0;
  for (; canary.count; canary.count--) {
    uint64_t *piece = canary.pieces[canary.count - 1];
    changed += check_piece(piece);
    munmap(piece, PIECE_BYTES);
  }
  return changed;
}

/* ---- sums ---- */

static struct operation_case make_case(const struct abort_test *t, size_t bytes) {
  return (struct operation_case){
    .operation = OPERATION_ALL_REDUCE,
    .type = ELEMENT_FLOAT,
    .redop = PATTERN_SUM,
    .root = -1,
    .counts = operation_count(OPERATION_ALL_REDUCE, bytes, sizeof(float), t->job->ranks),
  };
}

static double check_sums(struct abort_test *t, size_t bytes) {
  struct operation_case c = make_case(t, bytes);
  struct measure_result result;
  measure_run(t->job, &c, false, &result);
  if (t->job->process == 0) /* measure_run has added up those of all */
    t->mine.wrong += result.wrong + result.out_of_bounds;
  return result.time_us;
}

static void check_all_sums(struct abort_test *t, bool is_whole) {
  set_place(t, "sums");
  for (size_t i = 0; i < sizeof small_bytes / sizeof small_bytes[0]; i++) {
    if (small_bytes[i] <= t->job->buffer_bytes)
      check_sums(t, small_bytes[i]);
  }
  if (is_whole) {
    t->expected_us = check_sums(t, t->bytes);
    rendezvous_broadcast(t->job->rendezvous, &t->expected_us, sizeof t->expected_us);
  }
}

/* ---- in the middle ---- */

static bool is_running(const struct abort_test *t) {
  cudaError_t state = libs.cudaStreamQuery(t->gpu->stream);
  if (state != cudaSuccess && state != cudaErrorNotReady)
    libs_check_cuda(state, "cudaStreamQuery");
  return state == cudaErrorNotReady;
}

static bool is_running_everywhere(const struct abort_test *t) {
  double is_done = !is_running(t);
  rendezvous_most(t->job->rendezvous, &is_done, 1);
  return is_done == 0;
}

/* Starts the operation until no rank has finished it after the wait. */
static void come_to_the_middle(struct abort_test *t) {
  const struct job_gpu *gpu = t->gpu;
  double wait_ns = t->expected_us * 10 * (double)(WAIT_LEAST + draw(t, WAIT_RANGE));
  set_place(t, "the operation to be aborted");
  for (int launches = 1;; launches++) {
    CUDA(cudaMemset(gpu->recv, NOT_WRITTEN, job_buffer_bytes(t->job)));
    CUDA(cudaDeviceSynchronize());
    rendezvous_barrier(t->job->rendezvous);
    NCCL(ncclAllReduce(gpu->send + PATTERN_GUARD_BYTES, gpu->recv + PATTERN_GUARD_BYTES,
                       t->bytes / sizeof(float), ELEMENT_FLOAT, ncclSum, gpu->comm, gpu->stream));
    pause_for((uint64_t)wait_ns);
    if (is_running_everywhere(t))
      return;
    CUDA(cudaStreamSynchronize(gpu->stream));
    if (launches == LAUNCHES_MAX)
      message_fail("%zu bytes were always summed up before the abort, at last after %.3f ms: give "
                   "a larger size",
                   t->bytes, wait_ns / 1e6);
    wait_ns /= 2;
  }
}

/* ---- abort ---- */

/* Until NCCL reports an error; an operation that finishes has none to report. */
static void wait_for_error(struct abort_test *t) {
  uint64_t end_ns = clock_now_ns() + NOTICE_MS_MAX * NS_PER_MS;
  for (;;) {
    ncclResult_t error = ncclSuccess;
    NCCL(ncclCommGetAsyncError(t->gpu->comm, &error));
    if ((error != ncclSuccess && error != ncclInProgress) || !is_running(t))
      return;
    if (clock_now_ns() > end_ns) {
      message_write("a rank has aborted, but NCCL reported no error to this rank within %d ms",
                    NOTICE_MS_MAX);
      t->mine.unnoticed++;
      return;
    }
    pause_for(NS_PER_MS);
  }
}

static void abort_comm(struct abort_test *t, uint64_t stagger_ns) {
  int ranks = t->job->ranks, place = (t->gpu->rank + ranks - t->first) % ranks;
  set_place(t, "before the abort");
  if (t->order == STAGGERED)
    pause_for((uint64_t)place * stagger_ns);
  else if (t->order == AFTER_ERROR && place)
    wait_for_error(t);
  if (t->round % 2) /* as PyTorch does; in other rounds NCCL does it */
    job_deregister_buffers(t->job);
  set_place(t, "the abort");
  canary_begin();
  uint64_t start_ns = clock_now_ns();
  NCCL(ncclCommAbort(t->gpu->comm));
  CUDA(cudaStreamSynchronize(t->gpu->stream));
  double ms = (double)(clock_now_ns() - start_ns) / 1e6;
  t->mine.abort_ms = ms > t->mine.abort_ms ? ms : t->mine.abort_ms;
  canary_end();
}

/* ---- memory ---- */

/* Bytes of a buffer that are not `value`. */
static uint64_t count_other_bytes(const struct abort_test *t, const char *from, size_t bytes,
                                  unsigned char value) {
  uint64_t other = 0;
  for (size_t done = 0, some; done < bytes; done += some) {
    some = bytes - done < SCAN_BYTES ? bytes - done : SCAN_BYTES;
    CUDA(cudaMemcpy(t->staging, from + done, some, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < some; i++)
      other += t->staging[i] != value;
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
static void watch_freed(struct abort_test *t) {
  set_place(t, "the watch over freed memory");
  job_free_buffers(t->job);
  job_allocate_buffers(t->job);
  CUDA(cudaMemset(t->gpu->send, FREED, job_buffer_bytes(t->job)));
  CUDA(cudaMemset(t->gpu->recv, FREED, job_buffer_bytes(t->job)));
  CUDA(cudaDeviceSynchronize());
  canary_fill();
  pause_for(HOLD_MS * NS_PER_MS);
  t->mine.touched += canary_check() + check_freed(t, t->gpu->send, "send") +
                     check_freed(t, t->gpu->recv, "receive");
}

static struct resources count_resources(void) {
  malloc_trim(0);
  struct resources r = { .traces = traces_now() };
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

/* A sum may contain a few bytes of NOT_WRITTEN: hence 99 %. */
static void look_for_middle(struct abort_test *t) {
  uint64_t moved = count_other_bytes(t, t->gpu->recv + PATTERN_GUARD_BYTES, t->bytes, NOT_WRITTEN);
  double is_middle = moved > 0 && moved < t->bytes * 99 / 100;
  rendezvous_most(t->job->rendezvous, &is_middle, 1);
  t->mine.middle += is_middle > 0;
}

static void run_round(struct abort_test *t, int baseline_round) {
  t->order = (enum order)(t->round++ % ORDERS);
  t->first = (int)draw(t, (uint64_t)t->job->ranks);
  uint64_t stagger_ns = (1 + draw(t, STAGGER_MS_MAX)) * NS_PER_MS;
  check_all_sums(t, t->expected_us == 0 || t->round % WHOLE_EVERY == 0);
  watchdog_forget();
  come_to_the_middle(t);
  abort_comm(t, stagger_ns);
  look_for_middle(t);
  watch_freed(t);
  struct resources now = count_resources();
  if (t->round == baseline_round)
    t->baseline = now;
  t->mine.growth = (struct resources){
    { now.traces.threads - t->baseline.traces.threads,
      now.traces.descriptors - t->baseline.traces.descriptors },
    now.memory_mib - t->baseline.memory_mib,
  };
  set_place(t, "new communicators");
  job_open_comms(t->job);
}

/* Those of the rank that has most of each. */
static struct result combine(const struct abort_test *t) {
  const struct result *mine = &t->mine;
  double most[] = { mine->abort_ms,
                    mine->unnoticed,
                    (double)mine->wrong,
                    (double)mine->touched,
                    mine->growth.traces.descriptors,
                    mine->growth.traces.threads,
                    mine->growth.memory_mib };
  rendezvous_most(t->job->rendezvous, most, sizeof most / sizeof most[0]);
  return (struct result){ .abort_ms = most[0],
                          .middle = mine->middle,
                          .unnoticed = (int)most[1],
                          .wrong = (uint64_t)most[2],
                          .touched = (uint64_t)most[3],
                          .growth = { { (int)most[5], (int)most[4] }, most[6] } };
}

static bool conclude(const struct abort_test *t, int baseline_round, FILE *table) {
  struct result r = combine(t);
  bool is_good = !r.wrong && !r.touched && !r.unnoticed && r.abort_ms < LIMIT_MS &&
                 r.growth.traces.descriptors <= 0 && r.growth.traces.threads <= 0 &&
                 r.growth.memory_mib <= GROWTH_MIB_MAX;
  if (!table)
    return is_good;
  fprintf(table, "# %d aborts, %d with a part of the result written: %.1f ms at most\n", t->round,
          r.middle, r.abort_ms);
  fprintf(table, "# %llu wrong, %llu bytes written that were freed, %d errors not noticed\n",
          (unsigned long long)r.wrong, (unsigned long long)r.touched, r.unnoticed);
  fprintf(table, "# since round %d: %+d descriptors, %+d threads, %+.1f MiB: %s\n", baseline_round,
          r.growth.traces.descriptors, r.growth.traces.threads, r.growth.memory_mib,
          is_good ? "OK" : "FAILED");
  if (fflush(table))
    message_fail("standard output: %s", strerror(errno));
  return is_good;
}

void abort_prepare(void) {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
}

bool abort_run(struct job *job, FILE *table) {
  int rounds = job->options->abort_rounds;
  int baseline_round = rounds > BASELINE_ROUND ? BASELINE_ROUND : (rounds + 1) / 2;
  struct abort_test t = { .job = job,
                          .gpu = &job->gpus[0],
                          .bytes = job->options->sizes[0] / sizeof(float) * sizeof(float),
                          .random = (uint64_t)job->options->seed,
                          .staging = message_allocate(SCAN_BYTES, 1) };
  if (table)
    report_print_ranks(table, job);
  while (t.round < rounds)
    run_round(&t, baseline_round);
  check_all_sums(&t, true);
  free(t.staging);
  return conclude(&t, baseline_round, table);
}
