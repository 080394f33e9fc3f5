/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune check: is each file a profile that the plugins accept? */
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

static bool check_file(const char *path) {
  struct profile profile;
  struct profile_error error = { 0 };
  if (profile_read(path, &profile, &error) != 0) {
    char text[sizeof error];
    fprintf(stderr, "%s\n", profile_error_format(&error, text, sizeof text));
    return false;
  }
  print_good(path, &profile);
  profile_free(&profile);
  return true;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  bool is_all_good = true;
  for (int i = 0; i < argument_count; i++) {
    is_all_good &= check_file(arguments[i]);
  }
  return is_all_good ? CLI_OK : CLI_FAILED;
}

const struct cli_command tune_check = {
  .name = "check",
  .summary = "check profiles; errors name line and column",
  .arguments = "FILE...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus-tune check tuner_plugin/profiles/example.profile",
  .run = run,
};
