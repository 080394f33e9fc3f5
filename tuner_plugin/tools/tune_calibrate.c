/* SPDX-License-Identifier: Apache-2.0 */
/* stratus calibrate: for each collective a run of NCCL's own choices, then `rounds` launches in
 * which every call tries another cell. Appends samples.
 *
 * All state is in the samples, so an interrupted campaign continues where it ended: the name of
 * each sample's run has the campaign's id and the number of its launch. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/hash.h"
#include "common/hex.h"
#include "common/tools/commands.h"
#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/calibrate/label.h"
#include "tuner_plugin/tools/calibrate/launch.h"
#include "tuner_plugin/tools/limits.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *samples;
  const char *channels;
  int64_t rounds;
} options = {
  .samples = "samples.jsonl",
  .channels = "0",
  .rounds = 1,
};

static const struct cli_option option_rows[] = {
  { "samples", 's', CLI_STRING, &options.samples, "FILE",
    "append samples to it; sizes already in it are not measured again", 0, 0 },
  LAUNCH_OPTION_ROWS,
  { "channels", 0, CLI_STRING, &options.channels, "LIST",
    "numbers of channels to try, as in 0,1,4; 0 is NCCL's own", 0, 0 },
  { "rounds", 0, CLI_INT, &options.rounds, "N",
    "launches of each size: they differ by more than the calls of one", 1, 99 },
  { 0 },
};

enum { PLAN_TEXT_MAX = 1 << 16, ID_MAX = 9 };

/* ---- one collective ---- */

struct series {
  struct launch *launch;
  struct sample_file *samples; /* new and old */
  const char *id;              /* of everything that affects the measurement, except sizes */
  enum profile_collective collective;
  struct bench_json alone;          /* NCCL's own choice, nothing else */
  uint64_t sizes[PLAN_ENTRIES_MAX]; /* of the next launch */
  size_t size_count;
  struct label_log log;
  uint64_t time;
};

static const char *name_of(const struct series *series) {
  return profile_collective_name(series->collective);
}

/* Consecutive calls with the same cell: as many as let every cell get some of the calls that
 * --iters makes. */
static uint32_t run_length(void) {
  int64_t most = 1 + launch_options.iterations / 20;
  return most < PLAN_RUN ? (uint32_t)most : PLAN_RUN;
}

/* ---- samples ---- */

static int fail_to_write(int error) {
  return cli_fail("%s cannot be written: %s", options.samples,
                  error == -EINVAL ? "its last line is no sample" : strerror(-error));
}

/* Labels one size, and takes its samples; false if its calls cannot be identified. */
static bool take_size(struct series *series, const struct bench_json *bench, int64_t round,
                      uint64_t bytes) {
  const struct bench_json_row *row = bench_json_find(bench, series->collective, bytes);
  const struct label_entry *entry = label_find(&series->log, series->collective, bytes);
  struct sample samples[SCHEDULE_CELLS_MAX];
  char error[LABEL_ERROR_MAX] = "the tuner logged nothing about it";
  int count =
      row && entry ? label_row(row, entry, (uint64_t)round, run_length(), samples, error) : -ENOENT;
  if (count < 0) {
    cli_fail("%s, %" PRIu64 " bytes not labelled: %s", name_of(series), bytes, error);
    return false;
  }
  bool is_taken = true;
  for (int i = 0; i < count; i++) {
    samples[i].time = series->time;
    snprintf(samples[i].run, sizeof samples[i].run, "%s-%" PRIu64 "-%" PRId64, series->id,
             series->time, round);
    snprintf(samples[i].topology, sizeof samples[i].topology, "%s", series->log.topology);
    is_taken &= samples[i].n == 0 || sample_file_add(series->samples, &samples[i]) == 0;
  }
  return is_taken;
}

static int take_launch(struct series *series, int64_t round, const struct bench_json *bench) {
  if (series->log.count == 0) {
    return cli_fail("%s: not calibrated: %s", name_of(series), label_why_none(&series->log));
  }
  if (series->log.is_mixed) {
    launch_say("the ranks' machines have different topologies (stratus doctor shows each), so the "
               "samples name none");
  }
  series->time = (uint64_t)time(NULL);
  size_t labelled = 0, before = series->samples->count;
  for (size_t i = 0; i < series->size_count; i++) {
    labelled += take_size(series, bench, round, series->sizes[i]);
  }
  if (labelled == 0) {
    return cli_fail("no samples could be written");
  }
  int error = sample_file_append(options.samples, series->samples->samples + before,
                                 series->samples->count - before);
  return error ? fail_to_write(error) : CLI_OK;
}

/* ---- what is still to be done ---- */

/* "0a1b2c3d-1795313780-2" is of round 2 of the campaign 0a1b2c3d. */
static bool is_of_round(const char *run, const char *id, int64_t round) {
  const char *last = strrchr(run, '-');
  return last && strncmp(run, id, strlen(id)) == 0 && strtoll(last + 1, NULL, 10) == round;
}

static bool is_measured(const struct series *series, uint64_t bytes, int64_t round) {
  const struct sample_file *file = series->samples;
  for (size_t i = 0; i < file->count; i++) {
    const struct sample *sample = &file->samples[i];
    if (sample->collective == series->collective && sample->bytes == bytes &&
        is_of_round(sample->run, series->id, round)) {
      return true;
    }
  }
  return false;
}

/* Those of the sizes that are not measured in this round; returns how many. */
static size_t list_due(const struct series *series, int64_t round, const uint64_t *sizes,
                       size_t count, uint64_t *due) {
  size_t due_count = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_measured(series, sizes[i], round)) {
      due[due_count++] = sizes[i];
    }
  }
  return due_count;
}

/* ---- launches ---- */

static void take_label(void *to, const char *line) {
  struct label_log *log = to;
  if (line) {
    label_take_line(log, line);
  } else {
    memset(log, 0, sizeof *log);
  }
}

/* It shows the sizes and about how long they take: a quarter of the calls is enough. */
static int run_alone(struct series *series) {
  static const char *const ours[] = { "STRATUS_CALIBRATE=", "STRATUS_TUNER=0", NULL };
  struct launch_job job = { .what = "NCCL's own choice",
                            .collective = series->collective,
                            .sizes = series->launch->sizes,
                            .size_count = series->launch->size_count,
                            .iterations = ((uint64_t)launch_options.iterations + 3) / 4,
                            .ours = ours };
  return launch_run(series->launch, &job, &series->alone);
}

/* Each launch has another shuffle seed. */
static void write_plan(const struct series *series, int64_t round, char plan[PLAN_TEXT_MAX]) {
  int length = snprintf(plan, PLAN_TEXT_MAX,
                        "STRATUS_CALIBRATE=seed=%" PRId64 "/run=%" PRIu32 "/channels=%.200s/%s",
                        round, run_length(), options.channels, name_of(series));
  for (size_t i = 0; i < series->size_count; i++) {
    length += snprintf(plan + length, (size_t)(PLAN_TEXT_MAX - length), "%c%" PRIu64,
                       i == 0 ? ':' : ',', series->sizes[i]);
  }
}

static int run_round(struct series *series, int64_t round) {
  static char plan[PLAN_TEXT_MAX], what[64];
  const char *const ours[] = { "STRATUS_TUNER=1", plan, NULL };
  struct bench_json bench = { 0 };
  snprintf(what, sizeof what, "every cell, round %" PRId64 " of %" PRId64, round, options.rounds);
  write_plan(series, round, plan);
  struct launch_job job = { .what = what,
                            .collective = series->collective,
                            .sizes = series->sizes,
                            .size_count = series->size_count,
                            .iterations = (uint64_t)launch_options.iterations,
                            .ours = ours,
                            .expected = &series->alone,
                            .take = take_label,
                            .to = &series->log };
  int status = launch_run(series->launch, &job, &bench);
  if (status == CLI_OK) {
    status = take_launch(series, round, &bench);
  }
  bench_json_free(&bench);
  return status;
}

/* The sizes as the benchmark made them of those that were asked for. Every call tries a cell, so
 * that a launch takes as long as NCCL's own choice does with all calls, and as much more as the
 * other cells are slower. */
static int run_rounds(struct series *series) {
  uint64_t sizes[PLAN_ENTRIES_MAX];
  double launch_s = 0;
  size_t count = 0;
  for (; count < series->alone.count && count < PLAN_ENTRIES_MAX; count++) {
    sizes[count] = series->alone.rows[count].bytes;
    launch_s += launch_expect_s(&series->alone, series->collective, sizes[count]);
  }
  launch_say("%s: up to %" PRId64 " launches of %zu sizes, each %.0f s and more", name_of(series),
             options.rounds, count, launch_s);
  int status = CLI_OK;
  for (int64_t round = 1; status == CLI_OK && round <= options.rounds; round++) {
    series->size_count = list_due(series, round, sizes, count, series->sizes);
    status = series->size_count > 0 ? run_round(series, round) : CLI_OK;
  }
  return status;
}

static int run_series(struct series *series) {
  const struct launch *launch = series->launch;
  size_t due = 0;
  for (int64_t round = 1; round <= options.rounds; round++) {
    due += list_due(series, round, launch->sizes, launch->size_count, series->sizes);
  }
  if (due == 0) {
    launch_say("%s: all %zu sizes are in %s already", name_of(series), launch->size_count,
               options.samples);
    return CLI_OK;
  }
  int status = run_alone(series);
  status = status ? status : run_rounds(series);
  bench_json_free(&series->alone);
  return status;
}

static int calibrate_collective(struct launch *launch, struct sample_file *samples, const char *id,
                                enum profile_collective collective) {
  struct series *series = calloc(1, sizeof *series);
  if (!series) {
    return cli_fail("out of memory");
  }
  series->launch = launch;
  series->samples = samples;
  series->id = id;
  series->collective = collective;
  int status = run_series(series);
  free(series);
  return status;
}

/* ---- all of them ---- */

static int check_channels(void) {
  char text[256], error[PLAN_ERROR_MAX];
  struct plan plan;
  struct plan_entry *entries = calloc(PLAN_ENTRIES_MAX, sizeof *entries);
  snprintf(text, sizeof text, "channels=%.200s/allreduce:8", options.channels);
  int result = entries ? plan_parse(text, entries, &plan, error) : -1;
  free(entries);
  return result == 0 ? CLI_OK
                     : cli_fail_usage("--channels takes up to %d numbers from 0 to %d, as in 0,1,4",
                                      PLAN_CHANNELS_MAX, PROFILE_CHANNELS_MAX);
}

static void hash_text(struct hash_sha256 *hash, const char *text) {
  hash_sha256_update(hash, text, strlen(text) + 1);
}

static void identify(const struct launch *launch, char id[ID_MAX]) {
  static const char *const none[] = { NULL };
  uint8_t digest[HASH_SHA256_BYTES];
  struct hash_sha256 hash;
  char text[512];
  snprintf(text, sizeof text, "%.400s %" PRId64 " %" PRId64, options.channels, options.rounds,
           launch_options.iterations);
  hash_sha256_init(&hash);
  hash_text(&hash, text);
  for (int i = 0; i < launch->command_count; i++) {
    hash_text(&hash, launch->command[i]);
  }
  struct launch_words variables = launch_list_variables(none);
  hash_sha256_update(&hash, variables.words, variables.bytes); /* each with its NUL */
  free(variables.words);
  hash_sha256_final(&hash, digest);
  hex_write(digest, (ID_MAX - 1) / 2, id);
}

/* Before anything is started. How fast the network is nobody knows yet. */
static void say_before(const struct launch *launch) {
  double calls_s = 0,
         calls = 2 * (double)launch_options.iterations * ((double)options.rounds + 0.25);
  int64_t launches = (int64_t)launch->collective_count * (1 + options.rounds);
  for (size_t i = 0; i < launch->size_count; i++) {
    calls_s += calls * (CALIBRATE_ASSUMED_US / 1e6 +
                        (double)launch->sizes[i] / (CALIBRATE_ASSUMED_GBS * 1e9));
  }
  double all_s = (double)launch->collective_count * calls_s + (double)launches * CALIBRATE_START_S;
  launch_say("%zu collectives, %zu sizes each: up to %" PRId64 " launches, about %.0f min if calls "
             "take %g us and %g GB/s",
             launch->collective_count, launch->size_count, launches, all_s / 60 + 0.5,
             CALIBRATE_ASSUMED_US, CALIBRATE_ASSUMED_GBS);
  launch_say("samples go to %s after each launch, and %s is written meanwhile; what is interrupted "
             "goes on by the same command",
             options.samples, launch->json_path);
}

/* Fails before minutes are spent. */
static int open_samples(struct sample_file *samples) {
  struct profile_error error;
  char text[sizeof error];
  int result = sample_file_read(options.samples, samples, &error);
  if (result < 0 && result != -ENOENT) {
    return cli_fail("%s", profile_error_format(&error, text, sizeof text));
  }
  result = sample_file_mend(options.samples);
  return result ? fail_to_write(result) : CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  static struct launch launch;
  struct sample_file samples = { 0 };
  char id[ID_MAX];
  int status = check_channels();
  if (status == CLI_OK) {
    status = launch_open(&launch, argument_count, arguments);
  }
  status = status ? status : open_samples(&samples);
  if (status == CLI_OK) {
    identify(&launch, id);
    say_before(&launch);
  }
  for (size_t i = 0; status == CLI_OK && i < launch.collective_count; i++) {
    status = calibrate_collective(&launch, &samples, id, launch.collectives[i]);
  }
  if (status == CLI_OK) {
    launch_say("samples are in %s; `stratus fit` makes a profile of them", options.samples);
  }
  sample_file_free(&samples);
  launch_close(&launch);
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
