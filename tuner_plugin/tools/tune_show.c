/* SPDX-License-Identifier: Apache-2.0 */
/* stratus show: a profile as text or JSON: the named one, or the one that fits this machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile_schema.h"
#include "tuner_plugin/decide/guard.h"
#include "tuner_plugin/tools/tune.h"

static void print_section(const struct profile *profile, enum profile_section section,
                          const char *title) {
  bool has_title = false;
  for (size_t i = 0; i < profile_key_count; i++) {
    const struct profile_key *key = &profile_keys[i];
    char value[PROFILE_TEXT_MAX];
    if (key->section != section || !profile_key_value(profile, key, value) ||
        strcmp(key->name, "id") == 0) {
      continue;
    }
    if (!has_title && title) {
      printf("%s\n", title);
    }
    has_title = true;
    printf("  %-14s %s\n", key->name, value);
  }
}

static bool is_fit_empty(const struct profile_fit *fit) {
  static const struct profile_fit empty;
  return memcmp(fit, &empty, sizeof empty) == 0;
}

/* What the tuner makes of the row: it leaves out those whose gain may be noise. */
static bool holds(const struct profile_row *row) {
  return !row->is_measured || guard_is_worth(row->default_ns, row->choice_ns, row->noise_permille);
}

static void print_table(const struct profile_table *table) {
  char range[TUNE_RANGE_TEXT_MAX], channels[TUNE_CHANNELS_TEXT_MAX];
  printf("%s, %" PRIu32 " nodes x %" PRIu32 " ranks\n", profile_collective_name(table->collective),
         table->nodes, table->ppn);
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    printf("  %-20s %-13s %-7s %s", tune_format_range(row->bytes_lo, row->bytes_hi, range),
           profile_algorithm_name(row->algorithm), profile_protocol_name(row->protocol),
           tune_format_channels(row->channels, channels));
    if (row->is_measured) {
      printf("; %.1f us where %s %s took %.1f%s", (double)row->choice_ns * 1e-3,
             profile_algorithm_name(row->over_algorithm), profile_protocol_name(row->over_protocol),
             (double)row->default_ns * 1e-3, holds(row) ? "" : ": too little, left to NCCL");
    }
    printf("\n");
  }
}

static int print_profile(const struct profile *profile, const char *path) {
  char hash[TUNE_HASH_TEXT_MAX], topology[TUNE_TOPOLOGY_TEXT_MAX];
  printf("profile %s, hash %s, from %s\n", profile->meta.id, tune_format_hash(profile, hash), path);
  print_section(profile, PROFILE_SECTION_META, NULL);
  if (is_fit_empty(&profile->fit)) {
    printf("fits no machine by itself: used where STRATUS_PROFILE names it\n");
  }
  print_section(profile, PROFILE_SECTION_MATCH, "fits machines with");
  if (tune_format_topology(profile, topology)[0]) {
    printf("  %-14s which is %s\n", "", topology);
  }
  print_section(profile, PROFILE_SECTION_NET, "links");
  for (size_t i = 0; i < profile->table_count; i++) {
    print_table(&profile->tables[i]);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static json_t *json_row(const struct profile_row *row) {
  json_t *json = json_pack(
      "{s:o, s:o, s:s, s:s, s:I, s:b}", "bytes_lo", tune_json_bytes(row->bytes_lo), "bytes_hi",
      tune_json_bytes(row->bytes_hi), "algo", profile_algorithm_name(row->algorithm), "proto",
      profile_protocol_name(row->protocol), "channels", (json_int_t)row->channels, "holds",
      (int)holds(row));
  if (row->is_measured) {
    json_object_update_new(json, json_pack("{s:s, s:s, s:f, s:f, s:f}", "over_algo",
                                           profile_algorithm_name(row->over_algorithm),
                                           "over_proto", profile_protocol_name(row->over_protocol),
                                           "default_us", (double)row->default_ns * 1e-3,
                                           "choice_us", (double)row->choice_ns * 1e-3, "noise_pct",
                                           (double)row->noise_permille * 0.1));
  }
  return json;
}

static json_t *json_table(const struct profile_table *table) {
  json_t *rows = json_array();
  for (size_t i = 0; i < table->row_count; i++) {
    json_array_append_new(rows, json_row(&table->rows[i]));
  }
  return json_pack("{s:s, s:I, s:I, s:o}", "collective", profile_collective_name(table->collective),
                   "nodes", (json_int_t)table->nodes, "ppn", (json_int_t)table->ppn, "rows", rows);
}

/* What is not given is 0 or empty. */
static json_t *json_key(const struct profile *profile, const struct profile_key *key) {
  const char *field = (const char *)profile + key->offset;
  uint32_t number;
  if (key->capacity > 0) {
    return json_string(field);
  }
  memcpy(&number, field, sizeof number);
  return json_integer(number);
}

static json_t *json_profile(const struct profile *profile, const char *path) {
  char hash[TUNE_HASH_TEXT_MAX];
  json_t *all = json_pack("{s:s, s:s}", "file", path, "hash", tune_format_hash(profile, hash));
  for (size_t i = 0; i < profile_key_count; i++) {
    const char *section = profile_section_names[profile_keys[i].section];
    if (!json_object_get(all, section)) {
      json_object_set_new(all, section, json_object());
    }
    json_object_set_new(json_object_get(all, section), profile_keys[i].name,
                        json_key(profile, &profile_keys[i]));
  }
  json_t *tables = json_array();
  for (size_t i = 0; i < profile->table_count; i++) {
    json_array_append_new(tables, json_table(&profile->tables[i]));
  }
  json_object_set_new(all, "tables", tables);
  return all;
}

static int run(int argument_count, char **arguments, bool is_json) {
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(argument_count > 0 ? arguments[0] : NULL, &profile, path);
  if (status == CLI_OK) {
    status =
        is_json ? tune_print_json(json_profile(&profile, path)) : print_profile(&profile, path);
    profile_free(&profile);
  }
  return status;
}

const struct cli_command command_show = {
  .name = "show",
  .summary = "print a profile: the one that fits this machine, or FILE",
  .arguments = "[FILE]",
  .max_arguments = 1,
  .example = "stratus show tuner_plugin/profiles/example.profile",
  .has_json = true,
  .run = run,
};
