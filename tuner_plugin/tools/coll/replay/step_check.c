/* SPDX-License-Identifier: Apache-2.0 */
/* step: whether the data arrives. Each rank checks what it does in the order of the plan, and
 * nothing but the plan's own communication holds ranks together, since they may differ in what they
 * do. */
#include <stdlib.h>

#include "tuner_plugin/tools/coll/replay/step_parts.h"
#include "tuner_plugin/tools/coll/watchdog.h"

bool step_is_in_place(enum operation operation) {
  return operation == OPERATION_ALL_REDUCE || operation == OPERATION_BROADCAST ||
         operation == OPERATION_REDUCE;
}

struct measure_case step_case(const struct step *step, const struct launch *launch) {
  const struct plan_collective *c = &launch->item->collective;
  struct operation_counts counts = launch->transfers
                                       ? transfers_counts(launch->transfers, launch->transfer_count,
                                                          element_infos[c->type].size_bytes)
                                       : plan_counts(&step->part->workload, c, step->job->ranks);
  return (struct measure_case){ .operation = c->operation,
                                .type = c->type,
                                .redop = c->redop,
                                .root = c->root,
                                .counts = counts,
                                .transfers = launch->transfers,
                                .transfer_count = launch->transfer_count };
}

/* The same at all ranks that take part, which may do so by events of their own, and another one for
 * each collective of a communicator and each check. Exchanges share one: each message is at a place
 * of its own. */
static uint64_t seed_of(const struct step *step, const struct launch *launch, int check) {
  return launch->order * (uint64_t)step->job->options->checks + (uint64_t)check + 1;
}

/* A group is to a check what all ranks are otherwise. */
static void check_one(struct step *step, const struct launch *launch, int check,
                      struct measure_result *result) {
  const struct plan_collective *c = &launch->item->collective;
  const struct channel *channel = &step->channels[c->group];
  const struct measure_case measure_case = step_case(step, launch);
  struct job_gpu gpu = step->job->gpus[0];
  struct job job = *step->job;
  gpu.rank = channel->group.rank;
  gpu.comm = channel->comm;
  gpu.stream = channel->stream;
  job.ranks = channel->group.ranks;
  job.gpus = &gpu;
  watchdog_set_place("%s: check of collective %u", step->part->workload.name, launch->item->number);
  measure_check(&job, &measure_case, step_is_in_place(c->operation), seed_of(step, launch, check),
                result);
}

void step_check(struct step *step, struct measure_result *result) {
  for (int check = 0; check < step->job->options->checks; check++) {
    for (size_t i = 0; i < step->launch_count; i++) {
      if (plan_is_communication(step->launches[i].item))
        check_one(step, &step->launches[i], check, result);
    }
  }
  measure_add_up(step->job, result);
}
