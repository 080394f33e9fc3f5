/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and formatting that the subcommands share. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/profile_match.h"
#include "common/topology.h"
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
  if (result == 0) {
    return CLI_OK;
  }
  char text[sizeof error];
  return cli_fail("%s", profile_error_format(&error, text, sizeof text));
}

int tune_write(const struct profile *profile, const char *path) {
  FILE *to = path ? fopen(path, "we") : stdout;
  if (!to) {
    return cli_fail("%s: %s", path, strerror(errno));
  }
  int error = profile_write(profile, to);
  if (path && fclose(to) != 0) {
    error = -errno;
  }
  return error ? cli_fail("%s: %s", path ? path : "stdout", strerror(-error)) : CLI_OK;
}

const char *tune_format_range(uint64_t bytes_lo, uint64_t bytes_hi,
                              char text[TUNE_RANGE_TEXT_MAX]) {
  char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
  quantity_format_size(bytes_lo, low);
  if (bytes_hi == UINT64_MAX) {
    snprintf(text, TUNE_RANGE_TEXT_MAX, "%s and more", low);
  } else {
    snprintf(text, TUNE_RANGE_TEXT_MAX, "%s to under %s", low,
             quantity_format_size(bytes_hi, high));
  }
  return text;
}

const char *tune_format_channels(uint32_t channels, char text[TUNE_CHANNELS_TEXT_MAX]) {
  if (channels == 0) {
    return strcpy(text, "NCCL's number of channels");
  }
  snprintf(text, TUNE_CHANNELS_TEXT_MAX, "at most %" PRIu32 " channel%s", channels,
           channels == 1 ? "" : "s");
  return text;
}

const char *tune_format_hash(const struct profile *profile, char text[TUNE_HASH_TEXT_MAX]) {
  snprintf(text, TUNE_HASH_TEXT_MAX, "%016" PRIx64, profile_hash(profile));
  return text;
}

const char *tune_format_topology(const struct profile *profile, char text[TUNE_TOPOLOGY_TEXT_MAX]) {
  char here[TOPOLOGY_ID_MAX];
  topology_identify(here);
  text[0] = '\0';
  if (profile_match_has_topology(&profile->fit, here)) {
    snprintf(text, TUNE_TOPOLOGY_TEXT_MAX, "this machine's topology");
  } else if (profile->fit.topology[0]) {
    snprintf(text, TUNE_TOPOLOGY_TEXT_MAX, "another topology than this machine's, %s",
             here[0] ? here : "which is not known");
  }
  return text;
}

json_t *tune_json_bytes(uint64_t bytes) {
  return bytes > INT64_MAX ? json_null() : json_integer((json_int_t)bytes);
}

int tune_print_json(json_t *value) {
  int result = value ? json_dumpf(value, stdout, JSON_INDENT(2)) : -1;
  putchar('\n');
  json_decref(value);
  return result == 0 && fflush(stdout) == 0 ? CLI_OK : cli_fail("cannot write JSON");
}
