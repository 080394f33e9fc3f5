/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune show: a profile as text or JSON: the named one, or the one that fits this machine.
 * With --nodes and --ppn the rows that the plugin derives for communicators of that shape. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile_schema.h"
#include "tuner_plugin/decide/compile.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  int64_t nodes; /* 0: not given */
  int64_t ppn;
} options;

static const struct cli_option option_rows[] = {
  { "nodes", 'n', CLI_INT, &options.nodes, "COUNT",
    "with --ppn: rows that match this number of nodes, extrapolated ones included", 1, 1000000 },
  { "ppn", 'r', CLI_INT, &options.ppn, "COUNT", "ranks on each node", 1, 1024 },
  { 0 },
};

/* The rows that match communicators of one shape. */
struct shape {
  uint32_t nodes, ppn;
  void *memory;
  struct decide_table table;
};

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

static void print_table(const struct profile_table *table) {
  char range[TUNE_RANGE_TEXT_MAX], channels[TUNE_CHANNELS_TEXT_MAX], chunk[QUANTITY_TEXT_MAX];
  printf("%s, %" PRIu32 " nodes x %" PRIu32 " ranks\n", profile_collective_name(table->collective),
         table->nodes, table->ppn);
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    printf("  %-20s %-13s %-7s %s", tune_format_range(row->bytes_lo, row->bytes_hi, range),
           profile_algorithm_name(row->algorithm), profile_protocol_name(row->protocol),
           tune_format_channels(row->channels, channels));
    if (row->chunk_bytes) {
      printf(", chunks of %s", quantity_format_size(row->chunk_bytes, chunk));
    }
    if (row->is_measured) {
      printf("; %.1f us where %s %s took %.1f", (double)row->choice_ns * 1e-3,
             profile_algorithm_name(row->over_algorithm), profile_protocol_name(row->over_protocol),
             (double)row->default_ns * 1e-3);
    }
    printf("\n");
  }
}

static void print_models(const struct profile *profile) {
  if (profile->model_count > 0) {
    printf("models, for other numbers of nodes\n");
  }
  for (size_t i = 0; i < profile->model_count; i++) {
    const struct profile_model *model = &profile->models[i];
    printf("  %-13s %-13s %-7s base %.1f us, step %.1f inside and %.1f between nodes, %.0f MB/s\n",
           profile_collective_name(model->collective), profile_algorithm_name(model->algorithm),
           profile_protocol_name(model->protocol), (double)model->base_ns * 1e-3,
           (double)model->intra_ns * 1e-3, (double)model->inter_ns * 1e-3,
           (double)model->bytes_per_ms * 1e-3);
  }
}

/* Is it in the profile's table for this shape, or extrapolated by a model? */
static bool is_carried(const struct profile *profile, const struct shape *shape, int coll) {
  return !profile_find_table(profile, (enum profile_collective)coll, shape->nodes, shape->ppn);
}

static void print_decide_row(const struct decide_row *row) {
  char range[TUNE_RANGE_TEXT_MAX], channels[TUNE_CHANNELS_TEXT_MAX], chunk[QUANTITY_TEXT_MAX];
  const struct decide_choice *choice = &row->choice;
  printf("  %-20s %-13s %-7s %s", tune_format_range(row->bytes_lo, row->bytes_hi, range),
         profile_algorithm_name(choice->algo), profile_protocol_name(choice->proto),
         tune_format_channels(choice->channels, channels));
  if (choice->chunk) {
    printf(", chunks of %s", quantity_format_size(choice->chunk, chunk));
  }
  if (choice->over != DECIDE_ANY_CELL) {
    printf("; where NCCL's own is %s %s",
           profile_algorithm_name(costs_cell_algorithm(choice->over)),
           profile_protocol_name(costs_cell_protocol(choice->over)));
  }
  printf("\n");
}

static void print_shape(const struct profile *profile, const struct shape *shape) {
  printf("holds on %" PRIu32 " nodes x %" PRIu32 " ranks, where NCCL offers it\n", shape->nodes,
         shape->ppn);
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    uint32_t first = shape->table.first[coll], end = shape->table.first[coll + 1];
    if (first < end) {
      printf("%s%s\n", profile_collective_name((enum profile_collective)coll),
             is_carried(profile, shape, coll) ? ", extrapolated from other numbers of nodes" : "");
    }
    for (uint32_t i = first; i < end; i++) {
      print_decide_row(&shape->table.rows[i]);
    }
  }
  if (shape->table.first[PROFILE_COLLECTIVE_COUNT] == 0) {
    printf("  no row: the choice is NCCL's own\n");
  }
}

static int print_profile(const struct profile *profile, const char *path,
                         const struct shape *shape) {
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
  print_section(profile, PROFILE_SECTION_ENV, "sets for NCCL, unless the user does");
  for (size_t i = 0; !shape && i < profile->table_count; i++) {
    print_table(&profile->tables[i]);
  }
  if (shape) {
    print_shape(profile, shape);
  } else {
    print_models(profile);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static json_t *json_row(const struct profile_row *row) {
  json_t *json = json_pack(
      "{s:o, s:o, s:s, s:s, s:I, s:I}", "bytes_lo", tune_json_bytes(row->bytes_lo), "bytes_hi",
      tune_json_bytes(row->bytes_hi), "algo", profile_algorithm_name(row->algorithm), "proto",
      profile_protocol_name(row->protocol), "channels", (json_int_t)row->channels, "chunk_bytes",
      (json_int_t)row->chunk_bytes);
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

static json_t *json_models(const struct profile *profile) {
  json_t *models = json_array();
  for (size_t i = 0; i < profile->model_count; i++) {
    const struct profile_model *model = &profile->models[i];
    json_array_append_new(
        models,
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "collective",
                  profile_collective_name(model->collective), "algo",
                  profile_algorithm_name(model->algorithm), "proto",
                  profile_protocol_name(model->protocol), "base_us", (double)model->base_ns * 1e-3,
                  "intra_us", (double)model->intra_ns * 1e-3, "inter_us",
                  (double)model->inter_ns * 1e-3, "mb_per_s", (double)model->bytes_per_ms * 1e-3,
                  "spread_pct", (double)model->spread_permille * 0.1));
  }
  return models;
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

static json_t *json_decide_row(const struct decide_row *row) {
  const struct decide_choice *choice = &row->choice;
  json_t *json =
      json_pack("{s:o, s:o, s:s, s:s, s:I, s:I}", "bytes_lo", tune_json_bytes(row->bytes_lo),
                "bytes_hi", tune_json_bytes(row->bytes_hi), "algo",
                profile_algorithm_name(choice->algo), "proto", profile_protocol_name(choice->proto),
                "channels", (json_int_t)choice->channels, "chunk_bytes", (json_int_t)choice->chunk);
  if (choice->over != DECIDE_ANY_CELL) {
    const char *algorithm = profile_algorithm_name(costs_cell_algorithm(choice->over));
    const char *protocol = profile_protocol_name(costs_cell_protocol(choice->over));
    json_object_set_new(json, "over_algo", json_string(algorithm));
    json_object_set_new(json, "over_proto", json_string(protocol));
  }
  return json;
}

/* All collectives, those without rows too. */
static json_t *json_shape(const struct profile *profile, const struct shape *shape) {
  json_t *tables = json_array();
  for (int coll = 0; coll < PROFILE_COLLECTIVE_COUNT; coll++) {
    json_t *rows = json_array();
    for (uint32_t i = shape->table.first[coll]; i < shape->table.first[coll + 1]; i++) {
      json_array_append_new(rows, json_decide_row(&shape->table.rows[i]));
    }
    bool carried = json_array_size(rows) > 0 && is_carried(profile, shape, coll);
    json_array_append_new(tables, json_pack("{s:s, s:b, s:o}", "collective",
                                            profile_collective_name((enum profile_collective)coll),
                                            "is_carried", (int)carried, "rows", rows));
  }
  return json_pack("{s:I, s:I, s:o}", "nodes", (json_int_t)shape->nodes, "ppn",
                   (json_int_t)shape->ppn, "tables", tables);
}

static json_t *json_profile(const struct profile *profile, const char *path,
                            const struct shape *shape) {
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
  json_object_set_new(all, "models", json_models(profile));
  if (shape) {
    json_object_set_new(all, "shape", json_shape(profile, shape));
  }
  return all;
}

static int compile_shape(const struct profile *profile, struct shape *shape) {
  shape->nodes = (uint32_t)options.nodes;
  shape->ppn = (uint32_t)options.ppn;
  size_t ranks = (size_t)shape->nodes * shape->ppn;
  shape->memory = malloc(compile_bytes(profile, ranks, shape->nodes) + 1);
  if (!shape->memory) {
    return cli_fail("out of memory");
  }
  compile_table(profile, ranks, shape->nodes, shape->memory, &shape->table);
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  bool has_shape = options.nodes > 0;
  if (has_shape != (options.ppn > 0)) {
    return cli_fail_usage("--nodes and --ppn belong together");
  }
  int status = tune_load(argument_count > 0 ? arguments[0] : NULL, &profile, path);
  if (status != CLI_OK) {
    return status;
  }
  struct shape compiled = { 0 }, *shape = has_shape ? &compiled : NULL;
  if (shape) {
    status = compile_shape(&profile, shape);
  }
  if (status == CLI_OK) {
    status = is_json ? tune_print_json(json_profile(&profile, path, shape))
                     : print_profile(&profile, path, shape);
  }
  free(compiled.memory);
  profile_free(&profile);
  return status;
}

const struct cli_command tune_show = {
  .name = "show",
  .summary = "print a profile: the one that fits this machine, or FILE",
  .arguments = "[FILE]",
  .max_arguments = 1,
  .example = "stratus-tune show tuner_plugin/profiles/example.profile",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
