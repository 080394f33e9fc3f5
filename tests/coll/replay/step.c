/* SPDX-License-Identifier: Apache-2.0 */
/* step: everything is launched at once, as a framework does that runs ahead of its GPU; events hold
 * each stream until it may go on. */
#include "tests/coll/replay/step.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/clock.h"
#include "tests/coll/measure.h"
#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/watchdog.h"

/* ---- transfers: the sends and receives of one rank in an uneven alltoall, or in an exchange ----
 *
 * Buffers have one after the other, those that are sent in one, those that are received in the
 * other. What a pair of ranks sends begins at a place of the check's pattern that both know: of an
 * alltoall it is the receiver's, of an exchange it tells how many messages the pair had before. */

/* Messages that a rank has sent to each rank of its group, and received from it; and what it did
 * with all of them. */
struct transfers_so_far {
  uint32_t *sent, *received;
  uint32_t collectives;
};

/* Messages do not overlap in the pattern: one has at most 10^11 x 1000 elements,
 * which is less than 2^48. */
enum { PLACE_BITS = 48 };

/* Of one rank so far, in elements. */
struct offsets {
  size_t sent, received;
};

static struct operation_transfer take(struct offsets *offsets, bool is_send, int peer,
                                      uint64_t count, uint64_t message) {
  size_t *used = is_send ? &offsets->sent : &offsets->received;
  struct operation_transfer transfer = { .is_send = is_send,
                                         .peer = peer,
                                         .count = (size_t)count,
                                         .first = *used,
                                         .place = message << PLACE_BITS };
  *used += transfer.count;
  return transfer;
}

static size_t of_alltoall(const struct workload_item *item, const struct workload_place *place,
                          struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  size_t count = 0;
  uint64_t own = workload_part(item, place->rank, place->ranks);
  for (int peer = 0; peer < place->ranks; peer++) {
    uint64_t part = workload_part(item, peer, place->ranks);
    uint64_t sent = item->is_received ? own : part;
    uint64_t received = item->is_received ? part : own;
    if (sent)
      transfers[count++] = take(&offsets, true, peer, sent, (uint64_t)peer);
    if (received)
      transfers[count++] = take(&offsets, false, peer, received, (uint64_t)place->rank);
  }
  return count;
}

/* Writes at most two for each rank of the group; returns how many, 0 for what is neither. */
static size_t transfers_of(const struct workload_item *item, const struct workload_place *place,
                           const struct transfers_so_far *so_far,
                           struct operation_transfer *transfers) {
  struct offsets offsets = { 0 };
  size_t count = 0;
  if (item->kind == WORKLOAD_COLLECTIVE)
    return item->count ? of_alltoall(item, place, transfers) : 0;
  if (item->sent)
    transfers[count++] = take(&offsets, true, item->peer, item->sent, so_far->sent[item->peer]++);
  if (item->received)
    transfers[count++] =
        take(&offsets, false, item->peer, item->received, so_far->received[item->peer]++);
  return count;
}

/* Elements of all of them. */
static struct operation_counts transfers_counts(const struct operation_transfer *transfers,
                                                size_t count, unsigned type_size) {
  struct operation_counts counts = { 0 };
  for (size_t i = 0; i < count; i++)
    *(transfers[i].is_send ? &counts.send : &counts.recv) += transfers[i].count;
  counts.call = counts.send;
  counts.bytes = (counts.send > counts.recv ? counts.send : counts.recv) * type_size;
  return counts;
}

/* One group's communicator, and the stream of what is exchanged in it. */
struct channel {
  struct workload_place place;
  struct job_gpu gpu; /* this rank's, as a rank of the group */
  cudaEvent_t end;
  struct transfers_so_far so_far; /* of the launches that have been opened */
};

/* What this rank does for an item. */
struct launch {
  const struct workload_item *item;
  /* WORKLOAD_COMPUTE */
  uint64_t ns;
  bool begins_anew;      /* when it is called: the first one, and after a wait */
  uint64_t *deadline_ns; /* the step's: when the compute before it ended; on CUDA's thread */
  /* Communication */
  struct operation_case what, checked; /* as it is done, and as it is checked */
  struct operation_rank place;
  struct operation_transfer *transfers; /* NULL: a collective, the same at all ranks */
  uint32_t order;                       /* of a collective in its communicator: 1, 2, 3, ... */
  cudaEvent_t ready, done;
};

struct step {
  struct job *job;
  const struct replay_part *part;
  cudaStream_t compute;
  cudaEvent_t end;
  uint64_t deadline_ns;
  struct channel channels[WORKLOAD_GROUPS];
  int channel_count; /* 1 without stages */
  struct launch *launches;
  size_t launch_count;
  struct launch **by_number; /* communication by number - 1; NULL: other ranks' */
};

/* ---- set up ---- */

static void open_channels(struct step *step) {
  const struct job_gpu *gpu = &step->job->gpus[0];
  const struct workload *workload = &step->part->workload;
  step->channel_count = workload->stages > 1 ? WORKLOAD_GROUPS : 1;
  for (int i = 0; i < step->channel_count; i++) {
    struct channel *channel = &step->channels[i];
    channel->place = workload_place(workload, (enum workload_group)i, step->job->ranks, gpu->rank);
    channel->gpu = *gpu;
    channel->gpu.rank = channel->place.rank;
    channel->so_far.sent = message_allocate((size_t)channel->place.ranks, sizeof(uint32_t));
    channel->so_far.received = message_allocate((size_t)channel->place.ranks, sizeof(uint32_t));
    CUDA(cudaEventCreateWithFlags(&channel->end, cudaEventDisableTiming));
    if (i == WORKLOAD_ALL)
      continue;
    watchdog_set_place("%s: the group %s", workload->name, workload_group_names[i]);
    NCCL(ncclCommSplit(gpu->comm, channel->place.color, channel->place.rank, &channel->gpu.comm,
                       NULL));
    watchdog_watch(channel->gpu.comm);
    CUDA(cudaStreamCreateWithFlags(&channel->gpu.stream, cudaStreamNonBlocking));
  }
}

/* c10d's all_reduce works on one tensor, its other calls have two. */
static bool is_in_place(enum operation operation) {
  return operation == OPERATION_ALL_REDUCE;
}

/* Sums; of contents that all ranks have, averages, so that they stay what they are. One rank alone
 * has nothing to scale, for which NCCL would start a kernel that is not emulated. */
static enum pattern_redop redop_of(const struct step *step, const struct workload_item *item,
                                   int ranks) {
  if (!operation_infos[item->operation].has_redop)
    return PATTERN_NONE;
  bool is_average = step->job->contents && element_infos[item->type].is_float && ranks > 1;
  return is_average ? PATTERN_AVG : PATTERN_SUM;
}

static void open_communication(struct step *step, struct launch *launch) {
  const struct workload_item *item = launch->item;
  struct channel *channel = &step->channels[item->group];
  if (item->kind == WORKLOAD_COLLECTIVE)
    launch->order = ++channel->so_far.collectives;
  launch->transfers = message_allocate(2 * (size_t)channel->place.ranks, sizeof *launch->transfers);
  size_t transfers = transfers_of(item, &channel->place, &channel->so_far, launch->transfers);
  launch->checked = (struct operation_case){
    .operation = item->operation,
    .type = item->type,
    .redop = operation_infos[item->operation].has_redop ? PATTERN_SUM : PATTERN_NONE,
    .root = -1,
    .counts = transfers ? transfers_counts(launch->transfers, transfers,
                                           element_infos[item->type].size_bytes)
                        : workload_counts(&step->part->workload, item, step->job->ranks),
    .transfers = transfers ? launch->transfers : NULL,
    .transfer_count = transfers,
  };
  launch->what = launch->checked;
  launch->what.redop = redop_of(step, item, channel->place.ranks);
  launch->place = measure_place(&launch->what, &channel->gpu, channel->place.ranks,
                                is_in_place(item->operation));
  CUDA(cudaEventCreateWithFlags(&launch->ready, cudaEventDisableTiming));
  CUDA(cudaEventCreateWithFlags(&launch->done, cudaEventDisableTiming));
  step->by_number[item->number - 1] = launch;
}

/* A launch for each thing that this rank does. */
static void open_launches(struct step *step) {
  const struct workload *workload = &step->part->workload;
  bool begins_anew = true;
  for (size_t i = 0; i < workload->count; i++) {
    if (!workload_applies(workload, &workload->items[i], step->job->gpus[0].rank))
      continue;
    struct launch *launch = &step->launches[step->launch_count++];
    launch->item = &workload->items[i];
    launch->begins_anew = begins_anew;
    if (!workload_communicates(launch->item))
      begins_anew = launch->item->kind == WORKLOAD_WAIT;
    launch->ns = (uint64_t)(launch->item->us * (double)NS_PER_US + 0.5);
    launch->deadline_ns = &step->deadline_ns;
    if (workload_communicates(launch->item))
      open_communication(step, launch);
  }
}

struct step *step_open(struct job *job, const struct replay_part *part) {
  struct step *step = message_allocate(1, sizeof *step);
  *step = (struct step){ .job = job, .part = part };
  open_channels(step);
  CUDA(cudaStreamCreateWithFlags(&step->compute, cudaStreamNonBlocking));
  CUDA(cudaEventCreateWithFlags(&step->end, cudaEventDisableTiming | cudaEventBlockingSync));
  step->launches = message_allocate(part->workload.count, sizeof *step->launches);
  step->by_number = message_allocate(part->workload.numbers, sizeof(struct launch *));
  open_launches(step);
  return step;
}

static void close_channels(struct step *step) {
  watchdog_forget();
  watchdog_watch(step->channels[WORKLOAD_ALL].gpu.comm);
  for (int i = 0; i < step->channel_count; i++) {
    free(step->channels[i].so_far.sent);
    free(step->channels[i].so_far.received);
    CUDA(cudaEventDestroy(step->channels[i].end));
    if (i == WORKLOAD_ALL)
      continue;
    NCCL(ncclCommDestroy(step->channels[i].gpu.comm));
    CUDA(cudaStreamDestroy(step->channels[i].gpu.stream));
  }
}

void step_close(struct step *step) {
  for (size_t i = 0; i < step->launch_count; i++) {
    struct launch *launch = &step->launches[i];
    if (!workload_communicates(launch->item))
      continue;
    CUDA(cudaEventDestroy(launch->ready));
    CUDA(cudaEventDestroy(launch->done));
    free(launch->transfers);
  }
  close_channels(step);
  CUDA(cudaEventDestroy(step->end));
  CUDA(cudaStreamDestroy(step->compute));
  free(step->launches);
  free(step->by_number);
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

static void start(struct step *step, struct launch *launch) {
  CUDA(cudaEventRecord(launch->ready, step->compute));
  CUDA(cudaStreamWaitEvent(launch->place.stream, launch->ready, 0));
  operation_run(&launch->what, &launch->place);
  CUDA(cudaEventRecord(launch->done, launch->place.stream));
}

void step_run(struct step *step, bool has_communication) {
  for (size_t i = 0; i < step->launch_count; i++) {
    struct launch *launch = &step->launches[i];
    if (launch->item->kind == WORKLOAD_COMPUTE)
      CUDA(cudaLaunchHostFunc(step->compute, compute, launch));
    else if (has_communication && launch->item->kind == WORKLOAD_WAIT)
      CUDA(cudaStreamWaitEvent(step->compute, step->by_number[launch->item->number - 1]->done, 0));
    else if (has_communication)
      start(step, launch);
  }
  for (int i = 0; has_communication && i < step->channel_count; i++) {
    CUDA(cudaEventRecord(step->channels[i].end, step->channels[i].gpu.stream));
    CUDA(cudaStreamWaitEvent(step->compute, step->channels[i].end, 0));
  }
  CUDA(cudaEventRecord(step->end, step->compute));
  CUDA(cudaEventSynchronize(step->end));
}

/* ---- whether the data arrives ---- */

/* The same at all ranks that take part, which may do so by events of their own, and another one for
 * each collective of a communicator and each check. Exchanges share one: each message is at a place
 * of its own. */
static uint64_t seed_of(const struct step *step, const struct launch *launch, int check) {
  return launch->order * (uint64_t)step->job->options->checks + (uint64_t)check + 1;
}

/* A group is to a check what all ranks are otherwise. */
static void check_one(struct step *step, const struct launch *launch, int check,
                      struct measure_result *result) {
  struct channel *channel = &step->channels[launch->item->group];
  struct job job = *step->job;
  job.ranks = channel->place.ranks;
  job.gpus = &channel->gpu;
  watchdog_set_place("%s:%d: check", step->part->workload.name, launch->item->line);
  measure_check(&job, &launch->checked, is_in_place(launch->checked.operation),
                seed_of(step, launch, check), result);
}

/* Each rank checks what it does in the order of the lines, and nothing but their own
 * communication holds ranks together, since they may differ in what they do. */
void step_check(struct step *step, struct measure_result *result) {
  for (int check = 0; check < step->job->options->checks; check++) {
    for (size_t i = 0; i < step->launch_count; i++) {
      if (workload_communicates(step->launches[i].item))
        check_one(step, &step->launches[i], check, result);
    }
  }
  measure_add_up(step->job, result);
}
