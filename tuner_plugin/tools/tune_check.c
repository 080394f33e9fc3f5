/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune check: is each file a profile that the plugins accept? */
#include <errno.h>
#include <stdio.h>

#include "tuner_plugin/tools/tune.h"

static size_t count_rows(const struct profile *profile) {
  size_t count = 0;
  for (size_t i = 0; i < profile->table_count; i++) {
    count += profile->tables[i].row_count;
  }
  return count;
}

static void print_good(const char *path, const struct profile *profile) {
  char hash[TUNE_HASH_TEXT_MAX], topology[TUNE_TOPOLOGY_TEXT_MAX];
  tune_format_topology(profile, topology);
  printf("%s: good, profile %s, hash %s, %zu tables, %zu rows%s%s\n", path, profile->meta.id,
         tune_format_hash(profile, hash), profile->table_count, count_rows(profile),
         topology[0] ? ", for " : "", topology);
}

static json_t *json_good(const char *path, const struct profile *profile) {
  char hash[TUNE_HASH_TEXT_MAX];
  return json_pack("{s:s, s:b, s:s, s:s, s:s, s:I, s:I}", "file", path, "good", 1, "id",
                   profile->meta.id, "hash", tune_format_hash(profile, hash), "topology",
                   profile->fit.topology, "tables", (json_int_t)profile->table_count, "rows",
                   (json_int_t)count_rows(profile));
}

static json_t *json_bad(const char *path, const struct profile_error *error) {
  return json_pack("{s:s, s:b, s:i, s:i, s:s}", "file", path, "good", 0, "line", error->line,
                   "column", error->column, "error", error->text);
}

/* Checks one file; adds to `results` or, if that is NULL, prints. */
static bool check_file(const char *path, json_t *results) {
  struct profile profile;
  struct profile_error error = { 0 };
  int result = profile_read(path, &profile, &error);
  if (result != 0) {
    char text[sizeof error];
    if (results) {
      json_array_append_new(results, json_bad(path, &error));
    } else {
      fprintf(stderr, "%s\n", profile_error_format(&error, text, sizeof text));
    }
    return false;
  }
  if (results) {
    json_array_append_new(results, json_good(path, &profile));
  } else {
    print_good(path, &profile);
  }
  profile_free(&profile);
  return true;
}

static int run(int argument_count, char **arguments, bool is_json) {
  json_t *results = is_json ? json_array() : NULL;
  bool is_all_good = true;
  for (int i = 0; i < argument_count; i++) {
    is_all_good &= check_file(arguments[i], results);
  }
  int status = is_json ? tune_print_json(results) : CLI_OK;
  return is_all_good ? status : CLI_FAILED;
}

const struct cli_command tune_check = {
  .name = "check",
  .summary = "check profiles; errors name line and column",
  .arguments = "FILE...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus-tune check tuner_plugin/profiles/example.profile",
  .has_json = true,
  .run = run,
};
