/* SPDX-License-Identifier: Apache-2.0 */
/* stratus calibrate: for each collective a run of NCCL's own choices, then one launch in which
 * every call tries another cell, and further launches for undecided cells. Appends samples. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/tools/commands.h"
#include "tuner_plugin/tools/calibrate/campaign.h"
#include "tuner_plugin/tools/calibrate/launch_plan.h"
#include "tuner_plugin/tools/calibrate/sample_store.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *samples;
  const char *plan; /* NULL: everything is tried */
  const char *channels;
  int64_t run;
  int64_t rounds;
} options = {
  .samples = "samples.jsonl",
  .channels = "0",
  .run = PLAN_RUN,
  .rounds = 1,
};

static const struct cli_option option_rows[] = {
  { "samples", 's', CLI_STRING, &options.samples, "FILE",
    "append samples to it; sizes already in it are not measured again", 0, 0 },
  CAMPAIGN_OPTION_ROWS,
  { "plan", 0, CLI_STRING, &options.plan, "FILE",
    "in every launch try the cells in FILE, as in allreduce:64K=ring.ll,tree.simple@1", 0, 0 },
  { "channels", 0, CLI_STRING, &options.channels, "LIST",
    "numbers of channels to try, as in 0,1,4; 0 is NCCL's own", 0, 0 },
  { "run", 0, CLI_INT, &options.run, "N",
    "consecutive calls with the same cell, fewer above 1M; the first third is not counted", 1,
    PLAN_RUN_MAX },
  { "rounds", 0, CLI_INT, &options.rounds, "N",
    "launches; each after the first measures only undecided cells", 1, 99 },
  { 0 },
};

enum { PLAN_TEXT_MAX = 1 << 16 };

/* ---- --plan ---- */

/* Adds a line to the text, behind a slash; false if there is no room. */
static bool add_line(char *text, size_t *length, char *line) {
  line += strspn(line, " \t");
  size_t count = strcspn(line, "# \t\r\n");
  if (count == 0) {
    return true;
  }
  bool has_room = *length + count + 2 < PLAN_TEXT_MAX;
  if (has_room) {
    *length += (size_t)snprintf(text + *length, PLAN_TEXT_MAX - *length, "%s%.*s",
                                *length > 0 ? "/" : "", (int)count, line);
  }
  return has_room;
}

static int read_text(const char *path, char *text) {
  FILE *file = fopen(path, "re");
  if (!file) {
    return cli_fail("%s: %s", path, strerror(errno));
  }
  char *line = NULL;
  size_t room = 0, length = 0;
  bool is_short = true;
  while (is_short && getline(&line, &room, file) >= 0) {
    is_short = add_line(text, &length, line);
  }
  free(line);
  fclose(file);
  return is_short ? CLI_OK : cli_fail("%s: too long for one plan", path);
}

/* What to try at which sizes, instead of everything: a line for each collective and its sizes, as
 * in a plan, "allreduce:8,64K=ring.ll,tree.simple@1"; NCCL's own choice is always tried. Empty
 * lines and those that begin with # are ignored. The plan's entries are to be freed. */
static int read_plan(const char *path, char text[PLAN_TEXT_MAX], struct plan *plan) {
  char error[PLAN_ERROR_MAX];
  struct plan_entry *entries = calloc(PLAN_ENTRIES_MAX, sizeof *entries);
  int status = entries ? read_text(path, text) : cli_fail("out of memory");
  if (status == CLI_OK && plan_parse(text, entries, plan, error) < 0) {
    status = cli_fail_usage("%s: %s", path, error);
  }
  if (status != CLI_OK) {
    free(entries);
    *plan = (struct plan){ 0 };
  }
  return status;
}

/* ---- one collective ---- */

struct series {
  struct campaign *campaign;
  struct sample_store *store; /* all samples, new and old; on rank 0 */
  struct launch_plan launch_plan;
  struct bench_json alone;          /* NCCL's own choice, nothing else */
  uint64_t sizes[PLAN_ENTRIES_MAX]; /* of the next launch */
  size_t size_count;
  struct label_log log;
  uint64_t time;
};

static const char *name_of(const struct series *series) {
  return profile_collective_name(series->launch_plan.collective);
}

/* Consecutive calls with the same cell: as many as let every cell get some of the calls that
 * --iters makes. */
static uint32_t run_length(void) {
  int64_t run = options.run, most = 1 + campaign_options.iterations / 20;
  return (uint32_t)(run < most ? run : most);
}

/* The plan of a launch, and its sizes. Each launch has another shuffle seed. */
static void make_plan(struct series *series, int64_t round, char plan[PLAN_TEXT_MAX]) {
  snprintf(plan, PLAN_TEXT_MAX, "seed=%" PRId64 "/run=%" PRIu32 "/channels=%s", round, run_length(),
           options.channels);
  series->size_count =
      launch_plan_format(&series->launch_plan, round, series->sizes, plan, PLAN_TEXT_MAX);
}

/* ---- samples ---- */

/* The cell at `place`, if it was measured. */
static int write_sample(struct series *series, const struct label_entry *entry,
                        const struct label_times *times, size_t place, const char *run) {
  const struct label_cell *measured = &times->cells[place];
  struct sample sample = {
    .collective = entry->collective,
    .bytes = entry->bytes,
    .nodes = entry->nodes,
    .ppn = entry->ranks / entry->nodes,
    .algorithm = (enum profile_algorithm)measured->cell.algorithm,
    .protocol = (enum profile_protocol)measured->cell.protocol,
    .channels = measured->cell.channels,
    .is_default = place == 0,
    .n = (uint32_t)measured->count,
    .median_us = measured->summary.median_us,
    .mad_us = measured->summary.mad_us,
    .time = series->time,
    .nccl = entry->nccl,
  };
  snprintf(sample.run, sizeof sample.run, "%s", run);
  snprintf(sample.topology, sizeof sample.topology, "%s", series->log.topology);
  return measured->count > 0 ? sample_store_add(series->store, &sample) : CLI_OK;
}

/* ---- launches ---- */

static void take_label(void *to, const char *line) {
  label_take_line(to, line);
}

/* It shows the sizes and about how long they take: a quarter of the calls is enough. */
static int run_alone(struct series *series) {
  struct campaign *campaign = series->campaign;
  static const char *const ours[] = { "STRATUS_CALIBRATE=", "STRATUS_TUNER=0", NULL };
  struct launch_job job = campaign_job(campaign, series->launch_plan.collective, series->sizes,
                                       series->size_count, ours);
  job.iterations = (job.iterations + 3) / 4;
  return campaign_run(campaign, &job, "NCCL's own choice", NULL, NULL, NULL, &series->alone);
}

/* Labels one size, and writes its samples; false if its calls cannot be identified. */
static bool take_size(struct series *series, const struct bench_json *bench,
                      struct label_habit habit, int64_t round, uint64_t bytes, const char *run) {
  const struct bench_json_row *row = bench_json_find(bench, series->launch_plan.collective, bytes);
  const struct label_entry *entry = label_find(&series->log, series->launch_plan.collective, bytes);
  struct label_times times;
  char error[LABEL_ERROR_MAX] = "the tuner logged nothing about it";
  if (!row || !entry ||
      label_row(row, entry, (uint64_t)round, run_length(), habit, &times, error) < 0) {
    cli_fail("%s, %" PRIu64 " bytes not labelled: %s", name_of(series), bytes, error);
    return false;
  }
  launch_plan_add(&series->launch_plan, round, entry, &times);
  bool is_written = true;
  for (size_t c = 0; c < times.count; c++) {
    is_written &= write_sample(series, entry, &times, c, run) == CLI_OK;
  }
  return is_written;
}

static int take_launch(struct series *series, const struct launch_job *job, int64_t round,
                       const struct bench_json *bench) {
  struct label_habit habit = { LAUNCH_CALLS_BEFORE, launch_calls_after(job) };
  if (series->log.count == 0) {
    return cli_fail("%s: not calibrated: %s", name_of(series), label_why_none(&series->log));
  }
  if (series->log.is_mixed) {
    campaign_say("the ranks' machines have different topologies (stratus doctor shows each), so "
                 "the samples name none");
  }
  char run[SAMPLE_WORD_MAX];
  series->time = (uint64_t)time(NULL);
  launch_plan_name_run(series->campaign->id, series->time, round, run);
  size_t labelled = 0;
  for (size_t i = 0; i < series->size_count; i++) {
    labelled += take_size(series, bench, habit, round, series->sizes[i], run);
  }
  return labelled > 0 ? sample_store_flush(series->store) : cli_fail("no samples could be written");
}

static int run_round(struct series *series, int64_t round, const char *what, const char *plan) {
  struct campaign *campaign = series->campaign;
  static char plan_variable[PLAN_TEXT_MAX + 32];
  snprintf(plan_variable, sizeof plan_variable, "STRATUS_CALIBRATE=%s", plan);
  const char *const ours[] = { "STRATUS_TUNER=1", plan_variable, NULL };
  struct launch_job job = campaign_job(campaign, series->launch_plan.collective, series->sizes,
                                       series->size_count, ours);
  memset(&series->log, 0, sizeof series->log);
  struct bench_json bench = { 0 };
  int status = campaign_run(campaign, &job, what, &series->alone, take_label, &series->log, &bench);
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = take_launch(series, &job, round, &bench);
  }
  bench_json_free(&bench);
  return status;
}

/* A launch that failed has left no samples. */
static int try_round(struct series *series, int64_t round) {
  static char plan[PLAN_TEXT_MAX];
  char what[64];
  snprintf(what, sizeof what, "every cell, round %" PRId64 " of %" PRId64, round,
           series->launch_plan.rounds);
  make_plan(series, round, plan);
  int status = series->size_count > 0 ? CLI_FAILED : CLI_OK;
  for (int left = campaign_tries(series->campaign); left > 0 && status != CLI_OK; left--) {
    status = run_round(series, round, what, plan);
  }
  return status;
}

static int run_rounds(struct series *series) {
  int status = CLI_OK;
  for (int64_t round = 1; status == CLI_OK && round <= series->launch_plan.rounds; round++) {
    status = try_round(series, round);
  }
  return status;
}

/* What is still to be done at these sizes, as far as what was measured before tells. */
static void resume(struct series *series, const uint64_t *sizes, size_t count) {
  launch_plan_begin(&series->launch_plan, sizes, count);
  if (series->campaign->launch.kind != LAUNCH_INSIDE) {
    launch_plan_resume(&series->launch_plan, &series->store->samples, series->campaign->id);
  }
}

/* Is everything measured already? Ranks started by another launcher do not all know. */
static bool is_done(const struct series *series) {
  return launch_plan_count_due(&series->launch_plan) == 0 &&
         series->campaign->launch.kind != LAUNCH_INSIDE;
}

/* The sizes as the benchmark made them of those that were asked for. */
static void take_sizes(struct series *series) {
  uint64_t sizes[PLAN_ENTRIES_MAX];
  size_t count = 0;
  for (; count < series->alone.count && count < PLAN_ENTRIES_MAX; count++) {
    sizes[count] = series->alone.rows[count].bytes;
  }
  resume(series, sizes, count);
}

/* Every call tries a cell, so that a launch takes as long as NCCL's own choice does with all calls,
 * and as much more as the other cells are slower. */
static void say_plan(const struct series *series) {
  double launch_s = 0;
  for (size_t i = 0; i < series->launch_plan.count; i++) {
    launch_s += campaign_expect_s(&series->alone, series->launch_plan.collective,
                                  series->launch_plan.sizes[i].bytes);
  }
  campaign_say("%s: up to %" PRId64
               " launches of %zu sizes, each %.0f s and more; samples go to %s",
               name_of(series), series->launch_plan.rounds, series->launch_plan.count, launch_s,
               options.samples);
}

static int run_series(struct series *series) {
  struct campaign *campaign = series->campaign;
  series->size_count = campaign_sizes(campaign, series->launch_plan.collective, series->sizes);
  resume(series, series->sizes, series->size_count);
  if (is_done(series)) {
    campaign_say("%s: all %zu sizes are in %s already", name_of(series), series->size_count,
                 options.samples);
    return CLI_OK;
  }
  int status = CLI_FAILED;
  for (int left = campaign_tries(campaign); left > 0 && status != CLI_OK; left--) {
    status = run_alone(series);
  }
  if (status == CLI_OK && campaign->launch.kind != LAUNCH_INSIDE) {
    take_sizes(series);
  }
  if (status == CLI_OK) {
    say_plan(series);
    status = run_rounds(series);
  }
  bench_json_free(&series->alone);
  return status;
}

static int calibrate_collective(struct campaign *campaign, struct sample_store *store,
                                const struct plan *wanted, enum profile_collective collective) {
  struct series *series = calloc(1, sizeof *series);
  if (!series) {
    return cli_fail("out of memory");
  }
  /* Rank 0 cannot pass its results to ranks that another launcher has started. */
  bool is_inside = campaign->launch.kind == LAUNCH_INSIDE;
  series->campaign = campaign;
  series->store = store;
  series->launch_plan.collective = collective;
  series->launch_plan.wanted = wanted;
  series->launch_plan.rounds = is_inside ? 1 : options.rounds;
  int status = run_series(series);
  free(series);
  return status;
}

static int check_options(void) {
  char text[256], error[PLAN_ERROR_MAX];
  struct plan plan;
  struct plan_entry *entries = calloc(PLAN_ENTRIES_MAX, sizeof *entries);
  snprintf(text, sizeof text, "channels=%.200s/allreduce:8=all", options.channels);
  int result = entries ? plan_parse(text, entries, &plan, error) : -1;
  free(entries);
  if (result < 0) {
    return cli_fail_usage("--channels takes up to %d numbers from 0 to %d, as in 0,1,4",
                          PLAN_CHANNELS_MAX, PROFILE_CHANNELS_MAX);
  }
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct campaign *campaign = NULL;
  struct sample_store store = { 0 };
  struct plan wanted = { 0 };
  static char text[PLAN_TEXT_MAX], settings[PLAN_TEXT_MAX + 256];
  int status = check_options();
  if (status == CLI_OK && options.plan) {
    status = read_plan(options.plan, text, &wanted);
  }
  snprintf(settings, sizeof settings, "%s %" PRId64 " %" PRId64 " %s", options.channels,
           options.run, options.rounds, text);
  if (status == CLI_OK) {
    status = campaign_open(&campaign, argument_count, arguments, settings);
  }
  /* Fail before minutes are spent. */
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = sample_store_open(&store, options.samples);
  }
  for (size_t i = 0; status == CLI_OK && i < campaign->collective_count; i++) {
    status = calibrate_collective(campaign, &store, options.plan ? &wanted : NULL,
                                  campaign->collectives[i]);
  }
  if (status == CLI_OK && campaign->launch.rank == 0) {
    campaign_say("samples are in %s; `stratus fit` makes a profile of them", options.samples);
  }
  sample_store_close(&store);
  campaign_close(campaign);
  free(wanted.entries);
  return status;
}

const struct cli_command command_calibrate = {
  .name = "calibrate",
  .summary = "measure every algorithm and protocol on all ranks: samples for `stratus fit`",
  .arguments = "[-- COMMAND...]",
  .max_arguments = -1,
  .example = "stratus calibrate -s s.jsonl -- mpirun -np 16 -N 8 all_reduce_perf",
  .options = option_rows,
  .run = run,
};
