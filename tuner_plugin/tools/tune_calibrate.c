/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune calibrate: for each collective a run of NCCL's own choices, then one launch in which
 * every call tries another cell, perhaps more of what is still undecided, and, where NCCL asks for
 * chunks, one that tries some in the fastest cells. Appends samples. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/version.h"
#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/calibrate/campaign.h"
#include "tuner_plugin/tools/calibrate/label.h"
#include "tuner_plugin/tools/calibrate/refine.h"
#include "tuner_plugin/tools/calibrate/wanted.h"
#include "tuner_plugin/tools/tune.h"

struct tune_calibrate_options tune_calibrate_options = {
  .samples = "samples.jsonl",
  .channels = "0",
  .ll_bytes = PLAN_LL_BYTES,
  .cost_factor = PLAN_COST_FACTOR,
  .seed = 1,
  .run = PLAN_RUN,
  .rounds = 1,
  .chunk_cells = 2,
  .env_name = "default",
};

/* One collective. */
struct series {
  struct campaign *campaign;
  const struct plan *wanted; /* of --plan: what each launch tries; NULL: everything, and a race */
  enum profile_collective collective;
  struct bench alone; /* NCCL's own choice, nothing else */
  uint64_t sizes[PLAN_ENTRIES_MAX];
  size_t size_count;
  struct label_log log;
  struct refine refine;
  FILE *samples;
  FILE *alone_samples; /* NULL: not wanted */
  double cost_log;     /* of NCCL's choice among the cells over it alone: sum of logarithms */
  size_t cost_count;
  uint64_t order; /* of the next block */
  uint64_t time;
};

/* ---- plans ---- */

static void append(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...) {
  size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, room - length, format, arguments);
  va_end(arguments);
}

enum { PLAN_TEXT_MAX = 1 << 16 };

/* Each launch has another order. */
static uint64_t seed_of(int64_t round) {
  return (uint64_t)(tune_calibrate_options.seed + round - 1);
}

static void begin_plan(char *text, int64_t round) {
  const struct tune_calibrate_options *o = &tune_calibrate_options;
  snprintf(text, PLAN_TEXT_MAX,
           "seed=%" PRIu64 "/run=%" PRId64 "/ll=%" PRIu64 "/cost=%" PRId64 "/channels=%s",
           seed_of(round), o->run, o->ll_bytes, o->cost_factor, o->channels);
}

static void append_entry(const struct plan_entry *entry, char *text) {
  append(text, PLAN_TEXT_MAX, "/%s:%" PRIu64 "=%s", profile_collective_name(entry->collective),
         entry->bytes, entry->is_all ? "all" : "default");
  for (size_t i = 0; i < entry->cell_count; i++) {
    char cell[PLAN_CELL_TEXT_MAX];
    append(text, PLAN_TEXT_MAX, ",%s", plan_format_cell(entry->cells[i], cell));
  }
}

static void plan_wanted(const struct series *series, int64_t round, char *text) {
  begin_plan(text, round);
  for (size_t i = 0; i < series->size_count; i++) {
    int place = plan_find(series->wanted, (int)series->collective, series->sizes[i]);
    if (place >= 0) { /* ranks that somebody else started take sizes as they come */
      append_entry(&series->wanted->entries[place], text);
    }
  }
}

static void plan_all(const struct series *series, char *text) {
  begin_plan(text, 1);
  for (size_t i = 0; i < series->size_count; i++) {
    char start[40];
    snprintf(start, sizeof start, "/%s:", profile_collective_name(series->collective));
    append(text, PLAN_TEXT_MAX, "%s%" PRIu64, i == 0 ? start : ",", series->sizes[i]);
  }
  append(text, PLAN_TEXT_MAX, "=all");
}

/* ---- samples ---- */

static bool write_sample(struct series *series, FILE *to, const struct label_entry *entry,
                         struct schedule_cell cell, bool is_default, const char *run,
                         const double *times_us, size_t count) {
  struct label_summary summary = label_summarize(times_us, count);
  struct sample sample = {
    .collective = entry->collective,
    .bytes = entry->bytes,
    .nodes = entry->nodes,
    .ppn = entry->ranks / entry->nodes,
    .algorithm = (enum profile_algorithm)cell.algorithm,
    .protocol = (enum profile_protocol)cell.protocol,
    .channels = cell.channels,
    .chunk = cell.chunk,
    .is_default = is_default,
    .n = (uint32_t)count,
    .median_us = summary.median_us,
    .mad_us = summary.mad_us,
    .p99_us = summary.p99_us,
    .order = series->order++,
    .time = series->time,
    .nccl = entry->nccl,
    .plugin = STRATUS_VERSION,
  };
  snprintf(sample.env, sizeof sample.env, "%s", tune_calibrate_options.env_name);
  snprintf(sample.run, sizeof sample.run, "%s", run);
  snprintf(sample.hosts, sizeof sample.hosts, "%s", series->campaign->hosts_id);
  snprintf(sample.topology, sizeof sample.topology, "%s", series->log.topology);
  char line[SAMPLE_LINE_MAX];
  return count == 0 || (sample_format(&sample, line, sizeof line) > 0 && fputs(line, to) >= 0);
}

/* The run beside it: what NCCL chose there is what it chose here, for the same call. Writes its
 * sample where that is wanted, and remembers how much changing cells all the time costs. */
static bool take_alone(struct series *series, const struct label_entry *entry,
                       const struct label_times *among, const char *run) {
  const struct bench_row *row = bench_find(&series->alone, entry->collective, entry->bytes);
  size_t count = 0;
  double *times = row ? bench_sort_calls(row, &count) : NULL;
  bool is_good = true;
  if (count > 0 && among->cells[0].count > 0) {
    double alone_us = label_summarize(times, count).median_us;
    double among_us = label_summarize(among->cells[0].times_us, among->cells[0].count).median_us;
    series->cost_log += log(among_us / alone_us);
    series->cost_count++;
    if (series->alone_samples) {
      is_good = write_sample(series, series->alone_samples, entry, entry->set.cells[0], true, run,
                             times, count);
    }
  }
  free(times);
  return is_good;
}

/* ---- launches ---- */

static struct launch_job job_of(const struct series *series, const char *const *variables) {
  const struct campaign_options *o = &campaign_options;
  return (struct launch_job){
    .collective = series->collective,
    .sizes = series->sizes,
    .size_count = series->size_count,
    .iterations = (uint64_t)o->iterations,
    .min_time_ns = o->min_time_ns,
    .has_call_times = true,
    .json_path = series->campaign->json_path,
    .variables = variables,
    .timeout_ns = o->timeout_ns,
  };
}

static void take_label(void *to, const char *line) {
  label_take_line(to, line);
}

/* It tells sizes, and about how long they take: a quarter of the calls will do, unless its samples
 * are wanted. */
static int run_alone(struct series *series) {
  struct campaign *campaign = series->campaign;
  static const char *const ours[] = { "STRATUS_MODE=tune", "STRATUS_TUNER=0", NULL };
  const char *const *variables = campaign_variables(campaign, ours);
  struct launch_job job = job_of(series, variables);
  if (!tune_calibrate_options.alone) {
    job.iterations = (job.iterations + 3) / 4;
    job.min_time_ns /= 4;
  }
  int status = campaign_run(campaign, &job, "NCCL's own choice", NULL, NULL, NULL);
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = campaign_read(campaign, &job, &series->alone);
  }
  return status;
}

static bool has_been_measured(const struct series *series, uint64_t bytes) {
  const struct campaign *campaign = series->campaign;
  for (size_t i = 0; i < campaign->done.count; i++) {
    const struct sample *sample = &campaign->done.samples[i];
    if (sample->collective == series->collective && sample->bytes == bytes &&
        campaign_owns(campaign, sample->run)) {
      return true;
    }
  }
  return false;
}

/* Is it still to be measured? */
static bool is_due(const struct series *series, uint64_t bytes) {
  bool is_wanted =
      !series->wanted || plan_find(series->wanted, (int)series->collective, bytes) >= 0;
  return is_wanted && !has_been_measured(series, bytes);
}

/* The sizes to calibrate: as the benchmark made them of those that were asked for, less those that
 * an earlier run has measured. */
static void choose_sizes(struct series *series) {
  series->size_count = 0;
  for (size_t i = 0; i < series->alone.count && i < PLAN_ENTRIES_MAX; i++) {
    uint64_t bytes = series->alone.rows[i].bytes;
    if (is_due(series, bytes)) {
      series->sizes[series->size_count++] = bytes;
    }
  }
}

/* Adds the cells of one size that are still in the race; false if there are none. */
static bool append_contested(const struct label_entry *entry, const struct label_times *times,
                             char *plan) {
  size_t kept[SCHEDULE_CELLS_MAX], count = label_race(times, kept);
  struct plan_entry next = { entry->collective, entry->bytes, .cell_count = count };
  for (size_t k = 0; k < count; k++) {
    next.cells[k] = times->cells[kept[k]].cell;
  }
  if (count > 0) {
    append_entry(&next, plan);
  }
  return count > 0;
}

/* Labels a launch, writes its samples, and makes of `plan` the plan for the next one. */
static int take_launch(struct series *series, const struct launch_job *job, int64_t round,
                       const struct bench *bench, const char *run, char *plan) {
  const struct launch *launch = &series->campaign->launch;
  struct label_habit habit = { launch_calls_before(launch, job), launch_calls_after(launch, job) };
  size_t labelled = 0, contested = 0;
  bool is_written = true;
  if (series->log.count == 0) {
    return cli_fail("%s: nothing was calibrated: %s", profile_collective_name(series->collective),
                    label_why_none(&series->log));
  }
  if (series->log.is_mixed) {
    campaign_say(
        "the ranks' machines have different topologies (stratus-tune verify shows them), so "
        "the samples name none");
  }
  begin_plan(plan, round + 1);
  for (size_t i = 0; i < series->size_count; i++) {
    const struct bench_row *row = bench_find(bench, series->collective, series->sizes[i]);
    const struct label_entry *entry =
        label_find(&series->log, series->collective, series->sizes[i]);
    struct label_times times;
    char error[LABEL_ERROR_MAX] = "the tuner said nothing of it";
    if (!row || !entry ||
        label_row(row, entry, seed_of(round), (uint32_t)tune_calibrate_options.run, habit, &times,
                  error) < 0) {
      cli_fail("%s, %" PRIu64 " bytes not labelled: %s",
               profile_collective_name(series->collective), series->sizes[i], error);
      continue;
    }
    labelled++;
    refine_take(&series->refine, entry, &times, (size_t)tune_calibrate_options.chunk_cells);
    is_written &= take_alone(series, entry, &times, run);
    for (size_t c = 0; c < times.count; c++) {
      is_written &= write_sample(series, series->samples, entry, times.cells[c].cell, c == 0, run,
                                 times.cells[c].times_us, times.cells[c].count);
    }
    series->sizes[contested] = series->sizes[i];
    contested += series->wanted ? 1 : append_contested(entry, &times, plan);
    label_free(&times);
  }
  series->size_count = contested;
  return is_written && labelled > 0 ? CLI_OK : cli_fail("no samples could be written");
}

static int run_round(struct series *series, int64_t round, const char *what, char *plan) {
  struct campaign *campaign = series->campaign;
  static char plan_variable[PLAN_TEXT_MAX + 32];
  snprintf(plan_variable, sizeof plan_variable, "STRATUS_CALIBRATE=%s", plan);
  const char *const ours[] = { "STRATUS_MODE=calibrate", "STRATUS_TUNER=1", plan_variable, NULL };
  const char *const *variables = campaign_variables(campaign, ours);
  struct launch_job job = job_of(series, variables);
  char run[SAMPLE_WORD_MAX];
  memset(&series->log, 0, sizeof series->log);
  int status = campaign_run(campaign, &job, what, &series->alone, take_label, &series->log);
  struct bench bench = { 0 };
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = campaign_read(campaign, &job, &bench);
    series->time = (uint64_t)time(NULL);
    snprintf(run, sizeof run, "%s-%" PRIu64 "-%" PRId64, campaign->id, series->time, round);
    status = status == CLI_OK ? take_launch(series, &job, round, &bench, run, plan) : status;
  }
  bench_free(&bench);
  return status;
}

static int open_file(const char *path, FILE **file) {
  *file = path ? fopen(path, "ae") : NULL;
  return *file || !path ? CLI_OK : cli_fail("%s cannot be written", path);
}

static int close_file(const char *path, FILE *file) {
  bool is_good = !file || (fflush(file) == 0 && !ferror(file));
  if (file) {
    fclose(file);
  }
  return is_good ? CLI_OK : cli_fail("%s cannot be written", path);
}

static int open_samples(struct series *series) {
  const struct tune_calibrate_options *o = &tune_calibrate_options;
  int status = open_file(o->samples, &series->samples);
  return status == CLI_OK ? open_file(o->alone, &series->alone_samples) : status;
}

static int close_samples(struct series *series) {
  const struct tune_calibrate_options *o = &tune_calibrate_options;
  int status = close_file(o->samples, series->samples);
  int other = close_file(o->alone, series->alone_samples);
  return status == CLI_OK ? other : status;
}

static int check_files(void) {
  struct series none = { 0 };
  int status = open_samples(&none), closed = close_samples(&none);
  return status == CLI_OK ? closed : status;
}

/* A launch that failed has left no samples, and the plan as it was. */
static int try_round(struct series *series, int64_t round, const char *what, char *plan) {
  int status = CLI_FAILED;
  for (int left = campaign_tries(series->campaign); left > 0 && status != CLI_OK; left--) {
    status = run_round(series, round, what, plan);
  }
  return status;
}

/* The plan for chunks, and its sizes. */
static void plan_chunks(struct series *series, int64_t round, char *plan) {
  static char cells[REFINE_TEXT_MAX];
  begin_plan(plan, round);
  series->size_count = 0;
  for (size_t i = 0; i < series->refine.count; i++) {
    if (refine_format(&series->refine, i, cells)) {
      uint64_t bytes = series->refine.sizes[i].bytes;
      append(plan, PLAN_TEXT_MAX, "/%s:%" PRIu64 "=%s", profile_collective_name(series->collective),
             bytes, cells);
      series->sizes[series->size_count++] = bytes;
    }
  }
}

static int run_rounds(struct series *series) {
  static char plan[PLAN_TEXT_MAX];
  int status = CLI_OK;
  plan_all(series, plan);
  /* Ranks that were started by somebody else cannot be told what rank 0 found out. */
  int64_t rounds =
      series->campaign->launch.kind == LAUNCH_INSIDE ? 1 : tune_calibrate_options.rounds;
  for (int64_t round = 1; status == CLI_OK && round <= rounds && series->size_count > 0; round++) {
    if (series->wanted) {
      plan_wanted(series, round, plan);
    }
    char what[64];
    snprintf(what, sizeof what, "every cell, round %" PRId64 " of %" PRId64, round, rounds);
    status = try_round(series, round, what, plan);
  }
  bool may_refine = series->campaign->launch.kind != LAUNCH_INSIDE && !series->wanted;
  if (status == CLI_OK && may_refine) {
    plan_chunks(series, rounds + 1, plan);
    if (series->size_count > 0) {
      status = try_round(series, rounds + 1, "chunks", plan);
    }
  }
  return status;
}

static size_t count_due(const struct series *series) {
  size_t count = 0;
  for (size_t i = 0; i < series->size_count; i++) {
    count += is_due(series, series->sizes[i]);
  }
  return count;
}

static int run_series(struct campaign *campaign, const struct plan *wanted,
                      enum profile_collective collective) {
  struct series *series = calloc(1, sizeof *series);
  if (!series) {
    return cli_fail("out of memory");
  }
  series->campaign = campaign;
  series->wanted = wanted;
  series->collective = collective;
  series->size_count = campaign_sizes(campaign, collective, series->sizes);
  int status = CLI_OK;
  bool is_inside = campaign->launch.kind == LAUNCH_INSIDE;
  if (!is_inside && count_due(series) == 0) {
    campaign_say("%s: all %zu sizes are in %s already", profile_collective_name(collective),
                 series->size_count, tune_calibrate_options.samples);
    free(series);
    return CLI_OK;
  }
  status = CLI_FAILED;
  for (int left = campaign_tries(campaign); left > 0 && status != CLI_OK; left--) {
    status = run_alone(series);
  }
  if (status == CLI_OK && !is_inside) {
    choose_sizes(series);
  }
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = open_samples(series);
  }
  status = status == CLI_OK ? run_rounds(series) : status;
  if (series->cost_count > 0) {
    campaign_say("%s: among the other cells NCCL's own choice takes %.2f times what it takes alone",
                 profile_collective_name(collective),
                 exp(series->cost_log / (double)series->cost_count));
  }
  int closed = close_samples(series);
  bench_free(&series->alone);
  free(series);
  return status == CLI_OK ? closed : status;
}

static int check_options(void) {
  struct tune_calibrate_options *o = &tune_calibrate_options;
  char text[256], error[PLAN_ERROR_MAX];
  struct plan plan;
  struct plan_entry *entries = calloc(PLAN_ENTRIES_MAX, sizeof *entries);
  snprintf(text, sizeof text, "channels=%.200s/allreduce:8=all", o->channels);
  int result = entries ? plan_parse(text, entries, &plan, error) : -1;
  free(entries);
  if (result < 0) {
    cli_fail("--channels takes up to %d numbers from 0 to %d, as in 0,1,4", PLAN_CHANNELS_MAX,
             PROFILE_CHANNELS_MAX);
    return CLI_USAGE;
  }
  if (!sample_is_word(o->env_name)) {
    cli_fail("--env-name takes letters, digits and . _ -");
    return CLI_USAGE;
  }
  return CLI_OK;
}

int tune_calibrate(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct tune_calibrate_options *o = &tune_calibrate_options;
  struct campaign *campaign = NULL;
  struct wanted wanted = { 0 };
  int status = check_options();
  if (status == CLI_OK && o->plan) {
    status = wanted_read(o->plan, &wanted);
  }
  char settings[256];
  snprintf(settings, sizeof settings,
           "%s %s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s",
           o->env_name, o->channels, o->ll_bytes, o->cost_factor, o->seed, o->run, o->rounds,
           o->chunk_cells, wanted.id);
  if (status == CLI_OK) {
    status = campaign_open(&campaign, argument_count, arguments, settings);
  }
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = campaign_read_done(campaign, o->samples);
  }
  if (status == CLI_OK && campaign->launch.rank == 0) {
    status = check_files(); /* before minutes are spent */
  }
  for (size_t i = 0; status == CLI_OK && i < campaign->collective_count; i++) {
    status = run_series(campaign, o->plan ? &wanted.plan : NULL, campaign->collectives[i]);
  }
  if (status == CLI_OK && campaign->launch.rank == 0) {
    campaign_say("samples are in %s; `stratus-tune fit` makes a profile of them", o->samples);
  }
  campaign_close(campaign);
  wanted_free(&wanted);
  return status;
}
