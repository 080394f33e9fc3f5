/* SPDX-License-Identifier: Apache-2.0 */
/* step: everything is launched at once, as a framework does that runs ahead of its GPU; events hold
 * each stream until it may go on. */
#include "tuner_plugin/tools/coll/replay/step.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/clock.h"
#include "tuner_plugin/tools/coll/check.h"
#include "tuner_plugin/tools/coll/libs.h"
#include "tuner_plugin/tools/coll/message.h"
#include "tuner_plugin/tools/coll/operation_call.h"
#include "tuner_plugin/tools/coll/verify.h"
#include "tuner_plugin/tools/coll/watchdog.h"

/* One group's communicator, and the stream of its collectives. */
struct channel {
  struct plan_group group;
  ncclComm_t comm;
  cudaStream_t stream;
  cudaEvent_t end;
};

/* One item of the plan, made ready to be launched. */
struct launch {
  const struct plan_item *item;
  /* PLAN_COMPUTE */
  uint64_t ns;
  bool begins_anew;      /* when it is called: the first one, and after a wait */
  uint64_t *deadline_ns; /* the step's: when the compute before it ended */
  /* PLAN_COLLECTIVE */
  struct operation_call call;
  cudaEvent_t ready, done;
};

struct step {
  struct job *job;
  const struct replay_part *part;
  cudaStream_t compute;
  cudaEvent_t end;
  uint64_t deadline_ns;
  struct channel *channels; /* of the world, and of each group */
  size_t channel_count;
  struct launch *launches;
  struct launch **collectives; /* by number - 1 */
};

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory)
    message_fail("out of memory");
  return memory;
}

/* ---- set up ---- */

static void open_channels(struct step *step) {
  const struct job_gpu *gpu = &step->job->gpus[0];
  const struct workload *workload = &step->part->workload;
  step->channel_count = workload->group_count + 1;
  step->channels = allocate(step->channel_count, sizeof *step->channels);
  for (size_t i = 0; i < step->channel_count; i++) {
    struct channel *channel = &step->channels[i];
    channel->group = plan_group_of(workload, (int)i, step->job->ranks, gpu->rank);
    channel->comm = gpu->comm;
    channel->stream = gpu->stream;
    CUDA(cudaEventCreateWithFlags(&channel->end, cudaEventDisableTiming));
    if (i == PLAN_WORLD)
      continue;
    watchdog_set_place("%s: group %s", workload->name, workload->groups[i - 1].name);
    NCCL(ncclCommSplit(gpu->comm, channel->group.color, channel->group.rank, &channel->comm, NULL));
    watchdog_watch(channel->comm);
    CUDA(cudaStreamCreateWithFlags(&channel->stream, cudaStreamNonBlocking));
  }
}

/* c10d's all_reduce, broadcast and reduce work on one tensor, its other calls have two. */
static bool is_in_place(enum operation operation) {
  return operation == OPERATION_ALL_REDUCE || operation == OPERATION_BROADCAST ||
         operation == OPERATION_REDUCE;
}

static struct measure_case case_of(const struct step *step, const struct plan_collective *c) {
  return (struct measure_case){ .operation = c->operation,
                                .type = c->type,
                                .redop = c->redop,
                                .root = c->root,
                                .counts = plan_counts(&step->part->workload, c, step->job->ranks) };
}

/* Contents that all ranks have stay what they are. */
static enum pattern_redop redop_of(const struct step *step, const struct plan_collective *c) {
  bool is_average =
      step->job->contents && c->redop == PATTERN_SUM && element_infos[c->type].is_float;
  return is_average ? PATTERN_AVG : c->redop;
}

static void open_collective(struct step *step, struct launch *launch) {
  const struct plan_collective *c = &launch->item->collective;
  const struct channel *channel = &step->channels[c->group];
  const struct measure_case measure_case = case_of(step, c);
  const char *why_not = job_why_not(step->job, c->operation, c->type);
  if (why_not)
    message_fail("%s: collective %u has the type %s: %s", step->part->workload.name,
                 launch->item->number, element_infos[c->type].name, why_not);
  struct check_buffers buffers =
      check_place(&measure_case, &step->job->gpus[0], is_in_place(c->operation));
  launch->call = (struct operation_call){
    .operation = c->operation,
    .send = buffers.send,
    .recv = buffers.recv,
    .count = c->elements,
    .type = c->type,
    .redop = operation_open_redop(c->type, redop_of(step, c), channel->comm, channel->group.rank),
    .root = c->root,
    .rank = channel->group.rank,
    .ranks = channel->group.ranks,
    .comm = channel->comm,
    .stream = channel->stream,
  };
  CUDA(cudaEventCreateWithFlags(&launch->ready, cudaEventDisableTiming));
  CUDA(cudaEventCreateWithFlags(&launch->done, cudaEventDisableTiming));
  step->collectives[launch->item->number - 1] = launch;
}

struct step *step_open(struct job *job, const struct replay_part *part) {
  struct step *step = allocate(1, sizeof *step);
  *step = (struct step){ .job = job, .part = part };
  open_channels(step);
  CUDA(cudaStreamCreateWithFlags(&step->compute, cudaStreamNonBlocking));
  CUDA(cudaEventCreateWithFlags(&step->end, cudaEventDisableTiming | cudaEventBlockingSync));
  step->launches = allocate(part->count, sizeof *step->launches);
  step->collectives = allocate(part->sum.collectives, sizeof(struct launch *));
  bool begins_anew = true;
  for (size_t i = 0; i < part->count; i++) {
    struct launch *launch = &step->launches[i];
    launch->item = &part->items[i];
    launch->begins_anew = begins_anew;
    if (launch->item->kind != PLAN_COLLECTIVE)
      begins_anew = launch->item->kind == PLAN_WAIT;
    launch->ns = (uint64_t)(launch->item->us * (double)NS_PER_US + 0.5);
    launch->deadline_ns = &step->deadline_ns;
    if (launch->item->kind == PLAN_COLLECTIVE)
      open_collective(step, launch);
  }
  return step;
}

static void close_channels(struct step *step) {
  watchdog_forget();
  watchdog_watch(step->channels[PLAN_WORLD].comm);
  for (size_t i = 0; i < step->channel_count; i++) {
    CUDA(cudaEventDestroy(step->channels[i].end));
    if (i == PLAN_WORLD)
      continue;
    NCCL(ncclCommDestroy(step->channels[i].comm));
    CUDA(cudaStreamDestroy(step->channels[i].stream));
  }
}

void step_close(struct step *step) {
  for (size_t i = 0; i < step->part->sum.collectives; i++) {
    struct launch *launch = step->collectives[i];
    operation_close_redop(launch->item->collective.redop, launch->call.redop, launch->call.comm);
    CUDA(cudaEventDestroy(launch->ready));
    CUDA(cudaEventDestroy(launch->done));
  }
  close_channels(step);
  CUDA(cudaEventDestroy(step->end));
  CUDA(cudaStreamDestroy(step->compute));
  free(step->channels);
  free(step->launches);
  free(step->collectives);
  free(step);
}

/* ---- one step ---- */

/* The kernel may wake a thread up to its timer slack late, 50 us unless it asks for less. */
static void ask_for_exact_timers(void) {
  static __thread bool has_asked;
  if (!has_asked)
    prctl(PR_SET_TIMERSLACK, 1); /* ns */
  has_asked = true;
}

/* On CUDA's thread, which must not call CUDA. */
static void compute(void *argument) {
  struct launch *launch = argument;
  ask_for_exact_timers();
  uint64_t begin_ns = launch->begins_anew ? clock_now_ns() : *launch->deadline_ns;
  *launch->deadline_ns = begin_ns + launch->ns;
  struct timespec until = clock_timespec(*launch->deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
    ;
}

static void start_collective(struct step *step, struct launch *launch) {
  CUDA(cudaEventRecord(launch->ready, step->compute));
  CUDA(cudaStreamWaitEvent(launch->call.stream, launch->ready, 0));
  operation_run(&launch->call);
  CUDA(cudaEventRecord(launch->done, launch->call.stream));
}

void step_run(struct step *step, bool has_collectives) {
  for (size_t i = 0; i < step->part->count; i++) {
    struct launch *launch = &step->launches[i];
    if (launch->item->kind == PLAN_COMPUTE)
      CUDA(cudaLaunchHostFunc(step->compute, compute, launch));
    else if (has_collectives && launch->item->kind == PLAN_COLLECTIVE)
      start_collective(step, launch);
    else if (has_collectives)
      CUDA(
          cudaStreamWaitEvent(step->compute, step->collectives[launch->item->number - 1]->done, 0));
  }
  for (size_t i = 0; has_collectives && i < step->channel_count; i++) {
    CUDA(cudaEventRecord(step->channels[i].end, step->channels[i].stream));
    CUDA(cudaStreamWaitEvent(step->compute, step->channels[i].end, 0));
  }
  CUDA(cudaEventRecord(step->end, step->compute));
  CUDA(cudaEventSynchronize(step->end));
}

/* ---- correctness ---- */

/* A group is to a check what all ranks are otherwise. */
static void check_one(struct step *step, const struct plan_collective *c,
                      struct measure_result *result) {
  const struct channel *channel = &step->channels[c->group];
  const struct measure_case measure_case = case_of(step, c);
  struct job_gpu gpu = step->job->gpus[0];
  struct job job = *step->job;
  gpu.rank = channel->group.rank;
  gpu.comm = channel->comm;
  gpu.stream = channel->stream;
  job.ranks = channel->group.ranks;
  job.gpus = &gpu;
  measure_check(&job, &measure_case, is_in_place(c->operation), result);
}

void step_check(struct step *step, struct measure_result *result) {
  for (size_t i = 0; i < step->part->sum.collectives; i++) {
    watchdog_set_place("%s: check of collective %zu", step->part->workload.name, i + 1);
    check_one(step, &step->collectives[i]->item->collective, result);
  }
}
