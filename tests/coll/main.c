/* SPDX-License-Identifier: Apache-2.0 */
/* coll: measures and checks NCCL's collective operations: the cases, then a rank from its
 * environment to its exit status. With --hosts this process starts the ranks; otherwise it is one
 * of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/coll/libs.h"
#include "tests/coll/measure.h"
#include "tests/coll/message.h"
#include "tests/coll/world.h"
#include "tests/coll/replay/replay.h"
#include "tests/coll/report.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/watchdog.h"

#define RUN_CONNECT_TIMEOUT_NS (60 * NS_PER_S)

struct totals {
  uint64_t wrong, out_of_bounds;
};

/* ---- the cases ---- */

static void run_case(struct job *job, struct report *report, const struct operation_case *c,
                     struct totals *totals) {
  struct measure_result results[2];
  for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
    watchdog_set_place("%s %s %s, %zu bytes, %s", operation_infos[c->operation].name,
                       element_infos[c->type].name, operation_redop_names[c->redop],
                       c->counts.bytes, is_in_place ? "in place" : "out of place");
    measure_run(job, c, is_in_place, &results[is_in_place]);
    totals->wrong += results[is_in_place].wrong;
    totals->out_of_bounds += results[is_in_place].out_of_bounds;
  }
  if (report)
    report_row(report, c, &results[0], &results[1]);
  free(results[0].times_us);
  free(results[1].times_us);
}

/* Every reduction and size of an operation on a type. */
static void run_type(struct job *job, struct report *report, enum operation operation,
                     enum element_type type, struct totals *totals) {
  const struct options *o = job->options;
  const struct operation_info *info = &operation_infos[operation];
  for (int redop = 0; redop <= PATTERN_NONE; redop++) {
    bool is_wanted = redop == PATTERN_NONE ? !info->has_redop : info->has_redop && o->redops[redop];
    if (is_wanted && info->has_redop && job->ranks > PATTERN_RANKS_MAX)
      message_fail("reductions are checked of up to %d ranks", PATTERN_RANKS_MAX);
    if (is_wanted && redop == PATTERN_AVG && element_infos[type].is_float &&
        job->ranks & (job->ranks - 1))
      message_fail("-o avg of floating point is checked of 2, 4, 8, ... ranks");
    for (int i = 0; is_wanted && i < o->sizes_count; i++) {
      const struct operation_case c = {
        .operation = operation,
        .type = type,
        .redop = (enum pattern_redop)redop,
        .root = info->has_root ? (o->root < 0 ? i : o->root) % job->ranks : -1,
        .counts =
            operation_count(operation, o->sizes[i], element_infos[type].size_bytes, job->ranks),
      };
      run_case(job, report, &c, totals);
    }
  }
}

static struct totals run_all(struct job *job, struct report *report) {
  struct totals totals = { 0 };
  for (int operation = 0; operation < OPERATIONS; operation++) {
    if (!job->options->operations[operation])
      continue;
    if (report)
      report_operation(report, (enum operation)operation);
    for (int type = 0; type < ELEMENT_TYPES; type++) {
      if (job->options->types[type])
        run_type(job, report, (enum operation)operation, (enum element_type)type, &totals);
    }
  }
  return totals;
}

/* `table` is NULL but at process 0. */
static bool run_what_is_wanted(struct job *job, const struct replay *replay, FILE *table) {
  struct totals totals = { 0 };
  if (job->options->soak_ns)
    return soak_run(job, table);
  if (job->options->abort_rounds)
    return abort_run(job, table);
  if (job->options->unmade_rounds)
    return unmade_run(job, table);
  if (job->options->replay) {
    replay_run(job, replay, table, &totals.wrong, &totals.out_of_bounds);
  } else {
    struct report *report = table ? report_open(table, job) : NULL;
    totals = run_all(job, report);
    if (report)
      report_close(report);
  }
  return !totals.wrong && !totals.out_of_bounds;
}

/* ---- this process as a rank ---- */

/* NCCL's log goes to stdout unless told otherwise, where only results belong: the table keeps the
 * real stdout to itself, and everything else that is printed goes to stderr. */
static FILE *take_stdout(void) {
  int fd = dup(STDOUT_FILENO);
  FILE *table = fd < 0 ? NULL : fdopen(fd, "w");
  if (!table || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    message_fail("standard output: %s", strerror(errno));
  /* Where both end in one pipe, a row of the table must not come in the middle of a line. */
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  return table;
}

/* Before any library reads it. What the user has set is kept. */
static void set_environment(const struct options *options, const struct world *world) {
  char gpus[16];
  snprintf(gpus, sizeof gpus, "%d", world->local_size * options->gpus);
  setenv("FAKE_CUDA_GPUS", gpus, 0); /* the emulated host has what its processes need */
  if (world->is_local)
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  /* Numbers made for checks, and zeros, compress as no gradients do. */
  if (!options->data)
    setenv("STRATUS_COMPRESS", "off", 0);
}

static size_t needed_bytes(const struct options *options, const struct replay *replay) {
  if (options->replay)
    return replay_bytes(replay);
  size_t bytes = 0;
  for (int i = 0; i < options->sizes_count; i++)
    bytes = options->sizes[i] > bytes ? options->sizes[i] : bytes;
  return bytes;
}

static int run_rank(const struct options *options, const struct world *world) {
  struct job job;
  struct replay replay = { 0 };
  struct contents contents = { 0 };
  char error[WORKLOAD_ERROR_MAX];
  char name[WORLD_NAME_MAX];
  world_name_process(name, world->rank, options->gpus, world->host);
  message_set_name(name);
  FILE *table = take_stdout();
  set_environment(options, world);
  if (options->abort_rounds)
    abort_prepare();
  libs_open();
  if (options->replay && replay_load(&replay, options, world->size, error))
    message_fail("%s", error);
  if (options->data)
    contents = contents_read(options->data);
  struct rendezvous *rendezvous = rendezvous_open(world, options->gpus, RUN_CONNECT_TIMEOUT_NS);
  watchdog_start(rendezvous, options->timeout_ns, options->grace_ns);
  job_open(&job, options, world, rendezvous, needed_bytes(options, &replay));
  job.contents = options->data ? &contents : NULL;
  bool is_good = run_what_is_wanted(&job, &replay, world->rank == 0 ? table : NULL);
  watchdog_set_place("the end");
  watchdog_stop();
  rendezvous_barrier(rendezvous); /* nobody closes a connection that another still watches */
  job_close(&job);
  rendezvous_close(rendezvous);
  replay_unload(&replay);
  fclose(table);
  if (!is_good)
    return world->is_ours ? EXIT_RANK_SAW_WRONG : EXIT_BAD;
  return EXIT_GOOD;
}

/* Before any rank starts: a wrong file is a wrong use. */
static int look_at_replay(const struct options *options) {
  struct replay replay;
  char error[WORKLOAD_ERROR_MAX];
  if (replay_load(&replay, options, 0, error)) {
    message_write("%s", error);
    return EXIT_WRONG_USE;
  }
  replay_unload(&replay);
  return EXIT_GOOD;
}

int main(int argc, char **argv) {
  struct options options;
  struct world world;
  char error[512];
  int status;
  if (!options_parse(&options, argc, argv, &status))
    return status;
  if (world_read(&world, error, sizeof error)) {
    message_write("%s", error);
    return EXIT_WRONG_USE;
  }
  if (options.replay && !world.is_ours) {
    status = look_at_replay(&options);
    if (status != EXIT_GOOD)
      return status;
  }
  if (options.hosts && !world.is_ours)
    return ranks_run(&options, argv);
  return run_rank(&options, &world);
}
