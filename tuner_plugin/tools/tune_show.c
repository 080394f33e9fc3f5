/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune show: a profile for people, or as JSON: the named one, or the one that fits here. */
#include <inttypes.h>
#include <stdio.h>

#include "tuner_plugin/tools/tune.h"

/* 22105 -> 2.21.5, and 23099 -> 2.30: the third number was not given. */
static const char *format_release(int version, char text[16]) {
  int patch = version % 100;
  if (patch == PROFILE_VERSION_PATCH_MAX) {
    snprintf(text, 16, "%d.%d", version / 10000, version / 100 % 100);
  } else {
    snprintf(text, 16, "%d.%d.%d", version / 10000, version / 100 % 100, patch);
  }
  return text;
}

static void print_text(const char *name, const char *value) {
  if (value[0]) {
    printf("  %-14s %s\n", name, value);
  }
}

static void print_number(const char *name, uint32_t value) {
  if (value) {
    printf("  %-14s %" PRIu32 "\n", name, value);
  }
}

static void print_meta(const struct profile_meta *meta) {
  char first[16], last[16];
  print_text("created", meta->created);
  print_text("source", meta->source);
  if (meta->nccl_min || meta->nccl_max) {
    printf("  %-14s %s to %s\n", "nccl",
           meta->nccl_min ? format_release(meta->nccl_min, first) : "any",
           meta->nccl_max ? format_release(meta->nccl_max, last) : "any");
  }
}

static void print_fit(const struct profile_fit *fit) {
  printf("fits machines with\n");
  print_text("cloud", fit->cloud);
  print_text("instance_type", fit->instance_type);
  print_text("gpu", fit->gpu);
  print_number("gpu_count", fit->gpu_count);
  print_text("nic", fit->nic);
  print_number("nic_count", fit->nic_count);
  print_number("nic_mbps", fit->nic_mbps);
}

static bool is_fit_empty(const struct profile_fit *fit) {
  return !fit->cloud[0] && !fit->instance_type[0] && !fit->gpu[0] && !fit->nic[0] &&
         !fit->gpu_count && !fit->nic_count && !fit->nic_mbps;
}

static void print_table(const struct profile_table *table) {
  char range[TUNE_RANGE_TEXT_MAX], channels[TUNE_CHANNELS_TEXT_MAX];
  printf("%s, %" PRIu32 " nodes x %" PRIu32 " ranks\n", profile_collective_name(table->collective),
         table->nodes, table->ppn);
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    printf("  %-20s %-13s %-7s %s\n", tune_format_range(row->bytes_lo, row->bytes_hi, range),
           profile_algorithm_name(row->algorithm), profile_protocol_name(row->protocol),
           tune_format_channels(row->channels, channels));
  }
}

static int print_profile(const struct profile *profile, const char *path) {
  char hash[TUNE_HASH_TEXT_MAX];
  printf("profile %s, hash %s, from %s\n", profile->meta.id, tune_format_hash(profile, hash), path);
  print_meta(&profile->meta);
  if (is_fit_empty(&profile->fit)) {
    printf("fits no machine by itself: used where STRATUS_PROFILE names it\n");
  } else {
    print_fit(&profile->fit);
  }
  if (profile->net.flows || profile->net.chunk_bytes || profile->net.speed_mbps ||
      profile->net.latency_us) {
    printf("links\n");
  }
  print_number("flows", profile->net.flows);
  print_number("chunk_bytes", profile->net.chunk_bytes);
  print_number("speed_mbps", profile->net.speed_mbps);
  print_number("latency_us", profile->net.latency_us);
  for (size_t i = 0; i < profile->table_count; i++) {
    print_table(&profile->tables[i]);
  }
  return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

static json_t *json_table(const struct profile_table *table) {
  json_t *rows = json_array();
  for (size_t i = 0; i < table->row_count; i++) {
    const struct profile_row *row = &table->rows[i];
    json_array_append_new(rows, json_pack("{s:o, s:o, s:s, s:s, s:I}", "bytes_lo",
                                          tune_json_bytes(row->bytes_lo), "bytes_hi",
                                          tune_json_bytes(row->bytes_hi), "algo",
                                          profile_algorithm_name(row->algorithm), "proto",
                                          profile_protocol_name(row->protocol), "channels",
                                          (json_int_t)row->channels));
  }
  return json_pack("{s:s, s:I, s:I, s:o}", "collective", profile_collective_name(table->collective),
                   "nodes", (json_int_t)table->nodes, "ppn", (json_int_t)table->ppn, "rows", rows);
}

static json_t *json_profile(const struct profile *profile, const char *path) {
  const struct profile_meta *meta = &profile->meta;
  const struct profile_fit *fit = &profile->fit;
  const struct profile_net *net = &profile->net;
  char hash[TUNE_HASH_TEXT_MAX];
  json_t *tables = json_array();
  for (size_t i = 0; i < profile->table_count; i++) {
    json_array_append_new(tables, json_table(&profile->tables[i]));
  }
  return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:i, s:i},"
                   " s:{s:s, s:s, s:s, s:s, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I}, s:o}",
                   "file", path, "hash", tune_format_hash(profile, hash), "meta", "id", meta->id,
                   "created", meta->created, "source", meta->source, "nccl_min", meta->nccl_min,
                   "nccl_max", meta->nccl_max, "match", "cloud", fit->cloud, "instance_type",
                   fit->instance_type, "gpu", fit->gpu, "nic", fit->nic, "gpu_count",
                   (json_int_t)fit->gpu_count, "nic_count", (json_int_t)fit->nic_count, "nic_mbps",
                   (json_int_t)fit->nic_mbps, "net", "flows", (json_int_t)net->flows, "chunk_bytes",
                   (json_int_t)net->chunk_bytes, "speed_mbps", (json_int_t)net->speed_mbps,
                   "latency_us", (json_int_t)net->latency_us, "tables", tables);
}

int tune_show(int argument_count, char **arguments, bool is_json) {
  struct profile profile;
  char path[PROFILE_PATH_MAX];
  int status = tune_load(argument_count > 0 ? arguments[0] : NULL, &profile, path);
  if (status != CLI_OK) {
    return status;
  }
  status = is_json ? tune_print_json(json_profile(&profile, path)) : print_profile(&profile, path);
  profile_free(&profile);
  return status;
}
