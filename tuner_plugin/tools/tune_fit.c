/* SPDX-License-Identifier: Apache-2.0 */
/* stratus fit: samples -> a profile: its tables, and the topology on which it fits. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/plain.h"
#include "common/tools/commands.h"
#include "tuner_plugin/model/fit.h"
#include "tuner_plugin/model/sample_file.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *output;
  const char *id;
} options = {
  .id = "fitted",
};

static const struct cli_option option_rows[] = {
  { "output", 'o', CLI_STRING, &options.output, "FILE", "write the profile to it", 0, 0 },
  { "id", 0, CLI_STRING, &options.id, "NAME", "id of the new profile", 0, 0 },
  { 0 },
};

static int read_samples(int count, char **paths, struct sample_file *file) {
  for (int i = 0; i < count; i++) {
    struct profile_error error;
    if (sample_file_read(paths[i], file, &error) < 0) {
      return cli_fail("%s", error.text);
    }
  }
  return file->count > 0 ? CLI_OK : cli_fail("there is no sample");
}

/* Releases and date of the samples; the tables hold for the last release's patches, too. */
static void fill_meta(const struct sample_file *file, struct profile_meta *meta) {
  uint64_t newest = 0;
  for (size_t i = 0; i < file->count; i++) {
    const struct sample *sample = &file->samples[i];
    newest = sample->time > newest ? sample->time : newest;
    if (sample->nccl > 0 && (meta->nccl_min == 0 || sample->nccl < meta->nccl_min)) {
      meta->nccl_min = sample->nccl;
    }
    meta->nccl_max = sample->nccl > meta->nccl_max ? sample->nccl : meta->nccl_max;
  }
  if (meta->nccl_max > 0) {
    meta->nccl_max = meta->nccl_max / 100 * 100 + 99; /* and its later patches */
  }
  snprintf(meta->source, sizeof meta->source, "stratus fit, %zu samples of run %s", file->count,
           file->samples[0].run);
  time_t seconds = (time_t)newest;
  struct tm date;
  if (newest > 0 && gmtime_r(&seconds, &date)) {
    strftime(meta->created, sizeof meta->created, "%Y-%m-%d", &date);
  }
}

/* Samples of another topology are not comparable; samples without one are accepted with a message.
 * The profile requires the topology that the samples were measured on. */
static int take_topology(const struct sample_file *file, struct profile_fit *fit) {
  const char *found = "";
  size_t unnamed = 0;
  for (size_t i = 0; i < file->count; i++) {
    const char *topology = file->samples[i].topology;
    if (topology[0] && found[0] && strcmp(topology, found) != 0) {
      return cli_fail(
          "samples of machines of different topologies, %s and %s: a profile is for one", found,
          topology);
    }
    found = topology[0] ? topology : found;
    unnamed += !topology[0];
  }
  if (found[0] && unnamed > 0) {
    cli_say("%zu of %zu samples name no topology, and are taken to be of %s", unnamed, file->count,
            found);
  }
  if (found[0]) {
    snprintf(fit->topology, sizeof fit->topology, "%s", found);
  }
  return CLI_OK;
}

/* A profile that has an id alone, as the reader takes it. */
static int begin_profile(struct profile *profile) {
  struct profile_error error;
  char id[2 * PROFILE_ID_MAX];
  snprintf(id, sizeof id, "%s", options.id);
  json_t *root = json_pack("{s:i, s:s}", "schema", PROFILE_SCHEMA, "id", plain_text(id));
  char *text = json_dumps(root, 0);
  int result = profile_parse(text ? text : "", text ? strlen(text) : 0, profile, &error);
  free(text);
  json_decref(root);
  return result ? cli_fail_usage("--id: %s", error.text) : CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  struct sample_file file = { 0 };
  struct profile profile = { 0 };
  struct profile_error error = { 0 };
  struct fit_counts counts;
  int status = begin_profile(&profile);
  status = status ? status : read_samples(argument_count, arguments, &file);
  status = status ? status : take_topology(&file, &profile.fit);
  if (status == CLI_OK && fit_profile(file.samples, file.count, &profile, &counts, &error) < 0) {
    status = cli_fail("%s", error.text[0] ? error.text : "out of memory");
  }
  if (status == CLI_OK) {
    fill_meta(&file, &profile.meta);
    status = tune_write(&profile, options.output);
  }
  if (status == CLI_OK && options.output) {
    printf("%zu samples, %zu collectives and shapes, %zu sizes: in %zu of them %zu rows are better "
           "than NCCL's own choice\n",
           file.count, counts.shapes, counts.points, counts.won, counts.rows);
  }
  sample_file_free(&file);
  profile_free(&profile);
  return status;
}

const struct cli_command command_fit = {
  .name = "fit",
  .summary =
      "make a profile from samples: rows where another choice is reliably faster than NCCL's",
  .arguments = "SAMPLES...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus fit tests/data/samples/example.jsonl",
  .options = option_rows,
  .run = run,
};
