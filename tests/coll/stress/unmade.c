/* SPDX-License-Identifier: Apache-2.0 */
/* See stress.h. */

#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/pattern.h"
#include "tests/coll/watchdog.h"

/* On a machine that is busy with something else; it takes less than one. */
enum { LIMIT_MS = 6000 };

/* One rank's part of a round. */
struct part {
  double until_ms, abort_ms; /* from the call to the error; of ncclCommAbort */
  bool has_error;            /* reported by NCCL before the patience was over */
  bool is_done;              /* the operation was: nothing was in its way */
};

/* The first members of ncclConfig_t, which has these alone for what is of 2.14. */
struct config {
  size_t size;
  unsigned magic, version;
  int blocking, unused;
};

static ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  NCCL(ncclCommGetAsyncError(comm, &state));
  return state;
}

/* In place of those of job.h. ncclCommAbort frees what a thread uses that is inside an operation
 * of a blocking communicator: NCCL allows to abort those that are not. */
static void open_comm(const struct job *job) {
  struct config config = { sizeof config, 0xcafebeef, 21400, 0, 0 };
  struct timespec pause = clock_timespec(NS_PER_MS);
  struct job_gpu *gpu = &job->gpus[0];
  ncclUniqueId id = { { 0 } };
  watchdog_set_place("the initialization of NCCL");
  if (job->process == 0)
    NCCL(ncclGetUniqueId(&id));
  rendezvous_broadcast(job->rendezvous, &id, sizeof id);
  ncclResult_t result = libs.ncclCommInitRankConfig(&gpu->comm, job->ranks, id, gpu->rank, &config);
  while (result == ncclInProgress) {
    nanosleep(&pause, NULL);
    result = state_of(gpu->comm);
  }
  if (result != ncclSuccess)
    message_fail("cannot make a communicator: %s", libs.ncclGetErrorString(result));
}

static void look(const struct job_gpu *gpu, struct part *mine) {
  ncclResult_t state = state_of(gpu->comm);
  mine->has_error = state != ncclSuccess && state != ncclInProgress;
  mine->is_done = state == ncclSuccess && libs.cudaStreamQuery(gpu->stream) == cudaSuccess;
}

static struct part fail_and_abort(const struct job *job) {
  struct part mine = { 0 };
  const struct job_gpu *gpu = &job->gpus[0];
  struct timespec pause = clock_timespec(NS_PER_MS);
  uint64_t start_ns = clock_now_ns();
  ncclResult_t result =
      libs.ncclAllReduce(gpu->send + PATTERN_GUARD_BYTES, gpu->recv + PATTERN_GUARD_BYTES,
                         job->buffer_bytes, ELEMENT_INT8, ncclSum, gpu->comm, gpu->stream);
  mine.has_error = result != ncclSuccess && result != ncclInProgress;
  while (!mine.has_error && !mine.is_done &&
         clock_now_ns() < start_ns + job->options->patience_ns) {
    nanosleep(&pause, NULL);
    look(gpu, &mine);
  }
  uint64_t abort_ns = clock_now_ns();
  NCCL(ncclCommAbort(gpu->comm));
  CUDA(cudaStreamSynchronize(gpu->stream));
  mine.until_ms = (double)(abort_ns - start_ns) / 1e6;
  mine.abort_ms = (double)(clock_now_ns() - abort_ns) / 1e6;
  return mine;
}

/* `what` is break or heal. All processes go on together. */
static void run_command(const struct job *job, const char *what) {
  char command[512];
  snprintf(command, sizeof command, "%s %s", job->options->command, what);
  rendezvous_barrier(job->rendezvous);
  /* The user's own command line. NOLINTNEXTLINE(cert-env33-c) */
  if (job->process == 0 && job->options->command && system(command))
    message_fail("failed: %s", command);
  rendezvous_barrier(job->rendezvous);
}

static bool add_up(const struct part *all, int count, int round, FILE *table) {
  double first_ms = 0, last_ms = 0, abort_ms = 0;
  int errors = 0, done = 0;
  for (int i = 0; i < count; i++) {
    const struct part *p = &all[i];
    abort_ms = p->abort_ms > abort_ms ? p->abort_ms : abort_ms;
    done += p->is_done;
    if (!p->has_error)
      continue;
    first_ms = !errors++ || p->until_ms < first_ms ? p->until_ms : first_ms;
    last_ms = p->until_ms > last_ms ? p->until_ms : last_ms;
  }
  bool is_good = errors > 0 && !done && abort_ms < LIMIT_MS;
  if (table)
    fprintf(table,
            "round %d: errors at %d of %d ranks, after %.0f to %.0f ms; aborts %.0f ms: %s\n",
            round, errors, count, first_ms, last_ms, abort_ms, is_good ? "OK" : "FAILED");
  if (table)
    fflush(table);
  return is_good;
}

bool unmade_run(struct job *job, FILE *table) {
  struct part *all = message_allocate((size_t)job->processes, sizeof *all);
  bool is_good = true;
  watchdog_forget();
  NCCL(ncclCommDestroy(job->gpus[0].comm));
  for (int round = 1; round <= job->options->unmade_rounds; round++) {
    open_comm(job);
    watchdog_set_place("round %d", round);
    run_command(job, "break");
    struct part mine = fail_and_abort(job);
    run_command(job, "heal");
    rendezvous_exchange(job->rendezvous, &mine, all, sizeof mine);
    is_good = add_up(all, job->processes, round, table) && is_good;
  }
  job_open_comms(job);
  free(all);
  return is_good;
}
