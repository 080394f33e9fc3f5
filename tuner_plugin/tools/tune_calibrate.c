/* SPDX-License-Identifier: Apache-2.0 */
/* stratus calibrate: for each collective, in each of `rounds` rounds, a launch of NCCL's own choice
 * and one of every other cell that it offers. Appends samples.
 *
 * All state is in the samples, so an interrupted campaign continues where it ended: the name of
 * each sample's run has the campaign's id and the number of its round. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/hash.h"
#include "common/hex.h"
#include "common/tools/commands.h"
#include "tuner_plugin/decide/decide.h"
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
  .rounds = 3,
};

static const struct cli_option option_rows[] = {
  { "samples", 's', CLI_STRING, &options.samples, "FILE",
    "append samples to it; what is already in it is not measured again", 0, 0 },
  LAUNCH_OPTION_ROWS,
  { "channels", 0, CLI_STRING, &options.channels, "LIST",
    "numbers of channels to try, as in 0,1,4; 0 is NCCL's own", 0, 0 },
  { "rounds", 0, CLI_INT, &options.rounds, "N",
    "launches of each cell, in turn: they differ by more than the calls of one", 1, 99 },
  { 0 },
};

enum {
  ID_MAX = 9,
  WHAT_MAX = CELL_TEXT_MAX + 64,
  CELLS_MAX = COSTS_CELLS * CALIBRATE_CHANNELS_MAX
};

/* All that may be tried. */
static struct profile_cell cells[CELLS_MAX];
static size_t cell_count;

/* ---- one collective ---- */

struct series {
  struct launch *launch;
  struct sample_file *samples; /* new and old */
  const char *id;              /* of everything that affects the measurement, except sizes */
  enum profile_collective collective;
  struct bench_json alone;             /* NCCL's own choice, in the first round */
  struct label_log offered, log;       /* what was open then; in the last launch */
  uint64_t sizes[CALIBRATE_SIZES_MAX]; /* of the next launch */
  size_t size_count;
};

static const char *name_of(const struct series *series) {
  return profile_collective_name(series->collective);
}

static const char *run_of(const struct series *series, int64_t round, char run[SAMPLE_WORD_MAX]) {
  snprintf(run, SAMPLE_WORD_MAX, "%s-%" PRId64, series->id, round);
  return run;
}

/* ---- what is still to be done ---- */

static bool is_measured(const struct series *series, uint64_t bytes, int64_t round,
                        const struct profile_cell *cell) {
  char run[SAMPLE_WORD_MAX];
  run_of(series, round, run);
  for (size_t i = 0; i < series->samples->count; i++) {
    const struct sample *sample = &series->samples->samples[i];
    bool is_cell = cell ? !sample->is_default && memcmp(&sample->cell, cell, sizeof *cell) == 0
                        : sample->is_default;
    if (is_cell && sample->collective == series->collective && sample->bytes == bytes &&
        strcmp(sample->run, run) == 0) {
      return true;
    }
  }
  return false;
}

/* The sizes, as the benchmark made them of those that were asked for, that are not measured and to
 * which the cell is open. */
static size_t list_due(struct series *series, int64_t round, const struct profile_cell *cell) {
  series->size_count = 0;
  for (size_t i = 0; i < series->alone.count && i < CALIBRATE_SIZES_MAX; i++) {
    uint64_t bytes = series->alone.rows[i].bytes;
    const struct label_entry *entry = label_find(&series->offered, series->collective, bytes);
    if ((!cell || (entry && label_is_open(entry, cell))) &&
        !is_measured(series, bytes, round, cell)) {
      series->sizes[series->size_count++] = bytes;
    }
  }
  return series->size_count;
}

/* ---- samples ---- */

static int fail_to_write(int error) {
  return cli_fail("%s cannot be written: %s", options.samples,
                  error == -EINVAL ? "its last line is no sample" : strerror(-error));
}

/* False if nobody can tell what the calls of the size have used. */
static bool take_size(struct series *series, const struct bench_json *bench, int64_t round,
                      const struct profile_cell *cell, uint64_t bytes) {
  const struct bench_json_row *row = bench_json_find(bench, series->collective, bytes);
  const struct label_entry *entry = label_find(&series->log, series->collective, bytes);
  struct sample sample;
  const char *objection =
      row && entry ? label_row(row, entry, cell, &sample) : "the tuner logged nothing about it";
  if (objection) {
    cli_fail("%s, %" PRIu64 " bytes not taken: %s", name_of(series), bytes, objection);
    return false;
  }
  sample.time = (uint64_t)time(NULL);
  run_of(series, round, sample.run);
  snprintf(sample.topology, sizeof sample.topology, "%s", series->log.topology);
  return sample_file_add(series->samples, &sample) == 0;
}

static int take_launch(struct series *series, int64_t round, const struct profile_cell *cell,
                       const struct bench_json *bench) {
  if (series->log.count == 0) {
    return cli_fail("%s: not calibrated: %s", name_of(series), label_why_none(&series->log));
  }
  if (series->log.is_mixed) {
    cli_say("the ranks' machines have different topologies (stratus doctor shows each), so the "
            "samples name none");
  }
  size_t taken = 0, before = series->samples->count;
  for (size_t i = 0; i < series->size_count; i++) {
    taken += take_size(series, bench, round, cell, series->sizes[i]);
  }
  if (taken == 0 && series->size_count > 0) {
    return cli_fail("no samples could be written");
  }
  int error = sample_file_append(options.samples, series->samples->samples + before,
                                 series->samples->count - before);
  return error ? fail_to_write(error) : CLI_OK;
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

/* `bench` gets the results. */
static int launch_cell(struct series *series, int64_t round, const struct profile_cell *cell,
                       const uint64_t *sizes, size_t size_count, struct bench_json *bench) {
  char text[CELL_TEXT_MAX] = "default", plan[WHAT_MAX], what[WHAT_MAX];
  const char *const ours[] = { "STRATUS_TUNER=1", plan, NULL };
  if (cell) {
    cell_format(*cell, text);
  }
  snprintf(plan, sizeof plan, "STRATUS_CALIBRATE=%s", text);
  snprintf(what, sizeof what, "%s, round %" PRId64 " of %" PRId64,
           cell ? text : "NCCL's own choice", round, options.rounds);
  struct launch_job job = { .what = what,
                            .collective = series->collective,
                            .sizes = sizes,
                            .size_count = size_count,
                            .iterations = (uint64_t)launch_options.iterations,
                            .ours = ours,
                            .take = take_label,
                            .to = &series->log };
  return launch_run(series->launch, &job, bench);
}

static int run_due(struct series *series, int64_t round, const struct profile_cell *cell) {
  struct bench_json bench = { 0 };
  if (list_due(series, round, cell) == 0) {
    return CLI_OK;
  }
  int status = launch_cell(series, round, cell, series->sizes, series->size_count, &bench);
  if (status == CLI_OK) {
    status = take_launch(series, round, cell, &bench);
  }
  bench_json_free(&bench);
  return status;
}

/* It shows the sizes and which cells are open to them, and so runs even where its samples are
 * there. */
static int run_first(struct series *series) {
  const struct launch *launch = series->launch;
  int status = launch_cell(series, 1, NULL, launch->sizes, launch->size_count, &series->alone);
  if (status == CLI_OK) {
    series->offered = series->log;
    list_due(series, 1, NULL);
    status = take_launch(series, 1, NULL, &series->alone);
  }
  return status;
}

/* How long one takes, the first has just told. */
static void say_rounds(const struct series *series) {
  size_t open = 0;
  for (size_t c = 0; c < cell_count; c++) {
    bool is_open = false;
    for (size_t i = 0; i < series->offered.count; i++) {
      is_open |= label_is_open(&series->offered.entries[i], &cells[c]);
    }
    open += is_open;
  }
  cli_say("%s: %zu cells beside NCCL's own choice: %" PRIu64 " launches at most follow",
          name_of(series), open, (uint64_t)options.rounds * (1 + open) - 1);
}

/* Each round begins with another cell. */
static int run_series(struct series *series) {
  int status = run_first(series);
  if (status == CLI_OK) {
    say_rounds(series);
  }
  for (int64_t round = 1; status == CLI_OK && round <= options.rounds; round++) {
    status = run_due(series, round, NULL);
    for (size_t i = 0; status == CLI_OK && i < cell_count; i++) {
      status = run_due(series, round, &cells[(i + (size_t)round - 1) % cell_count]);
    }
  }
  bench_json_free(&series->alone);
  return status;
}

static int calibrate_collective(struct launch *launch, struct sample_file *samples, const char *id,
                                enum profile_collective collective) {
  static struct series series; /* too large for the stack */
  series =
      (struct series){ .launch = launch, .samples = samples, .id = id, .collective = collective };
  return run_series(&series);
}

/* ---- all of them ---- */

/* CollNet takes NCCL's own number alone. */
static int choose_cells(void) {
  char word[QUANTITY_WORD_MAX];
  size_t channel_count = 0;
  bool is_good = true;
  for (const char *list = options.channels; is_good && quantity_next_word(&list, word);) {
    int64_t channels = 0;
    is_good = channel_count++ < CALIBRATE_CHANNELS_MAX &&
              quantity_parse_int(word, &channels) == 0 && channels >= 0 &&
              channels <= PROFILE_CHANNELS_MAX;
    for (unsigned place = 0; is_good && place < COSTS_CELLS; place++) {
      if (channels == 0 ||
          guard_bound_channels(cell_of_costs(place, 0).algorithm, (unsigned)channels, 0) > 0) {
        cells[cell_count++] = cell_of_costs(place, (uint32_t)channels);
      }
    }
  }
  return is_good && cell_count > 0
             ? CLI_OK
             : cli_fail_usage("--channels takes up to %d numbers from 0 to %d, as in 0,1,4",
                              CALIBRATE_CHANNELS_MAX, PROFILE_CHANNELS_MAX);
}

static void hash_text(struct hash_sha256 *hash, const char *text) {
  hash_sha256_update(hash, text, strlen(text) + 1);
}

static void identify(const struct launch *launch, char id[ID_MAX]) {
  static const char *const none[] = { NULL };
  uint8_t digest[HASH_SHA256_BYTES];
  struct hash_sha256 hash;
  char text[64];
  snprintf(text, sizeof text, "%" PRId64, launch_options.iterations);
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

/* Fails before minutes are spent. */
static int open_samples(struct sample_file *samples) {
  struct profile_error error;
  int result = sample_file_read(options.samples, samples, &error);
  if (result < 0 && result != -ENOENT) {
    return cli_fail("%s", error.text);
  }
  result = sample_file_mend(options.samples);
  return result ? fail_to_write(result) : CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  static struct launch launch;
  struct sample_file samples = { 0 };
  char id[ID_MAX];
  int status = choose_cells();
  status = status ? status : launch_open(&launch, argument_count, arguments);
  status = status ? status : open_samples(&samples);
  if (status == CLI_OK) {
    identify(&launch, id);
    cli_say("samples go to %s after each launch, and %s is written meanwhile; what is interrupted "
            "goes on by the same command",
            options.samples, launch.json_path);
  }
  for (size_t i = 0; status == CLI_OK && i < launch.collective_count; i++) {
    status = calibrate_collective(&launch, &samples, id, launch.collectives[i]);
  }
  if (status == CLI_OK) {
    cli_say("samples are in %s; `stratus fit` makes a profile of them", options.samples);
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
