/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and writing that the subcommands share. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/profile_match.h"
#include "tuner_plugin/tools/tune.h"

int tune_load(const char *name, struct profile *profile, char path[PROFILE_PATH_MAX]) {
  struct profile_error error = { 0 };
  int result;
  if (name) {
    snprintf(path, PROFILE_PATH_MAX, "%s", name);
    result = profile_read(name, profile, &error);
  } else {
    result = profile_match_load(profile, path, &error);
  }
  return result == 0 ? CLI_OK : cli_fail("%s", error.text);
}

int tune_write(const struct profile *profile, const char *path) {
  if (!path) {
    profile_write(profile, stdout); /* whether that is lost, cli_main sees */
    return CLI_OK;
  }
  FILE *to = fopen(path, "we");
  int error = to ? profile_write(profile, to) : -errno;
  if (to && fclose(to) != 0) {
    error = -errno;
  }
  return error ? cli_fail("%s: %s", path, strerror(-error)) : CLI_OK;
}
