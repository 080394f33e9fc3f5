/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, variables, progress and files of a series of launches. */
#include "tuner_plugin/tools/calibrate/campaign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/hex.h"
#include "common/nccl_conf.h"
#include "common/quantity.h"

struct campaign_options campaign_options = {
  .collectives = "allreduce,allgather,reducescatter",
  .min_bytes = 8,
  .max_bytes = 64 << 20,
  .factor = 2,
  .iterations = 20,
  .timeout_ns = 1800 * NS_PER_S,
  .work = ".",
};

static bool is_quiet; /* a rank that is not the first */

void campaign_say(const char *format, ...) {
  if (is_quiet) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  fputs("stratus: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

/* ---- variables ---- */

static bool has_name(const char *const *variables, size_t count, const char *variable) {
  size_t length = strcspn(variable, "=") + 1;
  for (size_t i = 0; i < count; i++) {
    if (strncmp(variables[i], variable, length) == 0) {
      return true;
    }
  }
  return false;
}

/* Ranks read it there: a variable would count more. */
static bool is_in_file(const char *variable) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(variable, "="), variable);
  return nccl_conf_find(name).file != NULL;
}

static const char *const *list_variables(struct campaign *campaign, const char *const *ours) {
  static const char *const always[] = { "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT",
                                        "STRATUS_LOG=info" };
  /* Compression is off: what benchmarks send becomes shorter than gradients do. */
  static const char *const unless_set[] = { "NCCL_TUNER_PLUGIN=libnccl-tuner-stratus.so",
                                            "STRATUS_COMPRESS=off" };
  static const size_t unless_set_count = sizeof unless_set / sizeof unless_set[0];
  size_t count = 0;
  for (; *ours; ours++) {
    campaign->variables[count++] = *ours;
  }
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
    campaign->variables[count++] = always[i];
  }
  for (char **each = environ; *each && count < CAMPAIGN_VARIABLES_MAX - unless_set_count; each++) {
    /* Of one host, where all others are of the job. */
    bool is_ours = strncmp(*each, "NCCL_HOSTID=", 12) == 0;
    bool is_wanted = (strncmp(*each, "NCCL_", 5) == 0 && !is_ours) ||
                     strncmp(*each, "LD_LIBRARY_PATH=", 16) == 0 ||
                     strncmp(*each, "STRATUS_", 8) == 0;
    if (is_wanted && !has_name(campaign->variables, count, *each)) {
      campaign->variables[count++] = *each;
    }
  }
  for (size_t i = 0; i < unless_set_count; i++) {
    if (!has_name(campaign->variables, count, unless_set[i]) && !is_in_file(unless_set[i])) {
      campaign->variables[count++] = unless_set[i];
    }
  }
  campaign->variables[count] = NULL;
  return campaign->variables;
}

/* ---- opening ---- */

static int take_collectives(struct campaign *campaign) {
  for (const char *text = campaign_options.collectives;;) {
    char word[32];
    size_t length = strcspn(text, ",");
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    int found = quantity_find_word(PROFILE_COLLECTIVE_WORDS, word);
    bool is_new = found >= 0;
    for (size_t i = 0; i < campaign->collective_count; i++) {
      is_new &= (int)campaign->collectives[i] != found;
    }
    if (!is_new) {
      return cli_fail_usage("--coll takes some of %s, separated by commas, not \"%s\"",
                            PROFILE_COLLECTIVE_WORDS, text);
    }
    campaign->collectives[campaign->collective_count++] = (enum profile_collective)found;
    if (text[length] == '\0') {
      return CLI_OK;
    }
    text += length + 1;
  }
}

static void write_id(char id[CAMPAIGN_ID_MAX], const struct hash_sha256 *of) {
  struct hash_sha256 hash = *of;
  uint8_t digest[HASH_SHA256_BYTES];
  hash_sha256_final(&hash, digest);
  hex_write(digest, (CAMPAIGN_ID_MAX - 1) / 2, id);
}

static void hash_text(struct hash_sha256 *hash, const char *text) {
  hash_sha256_update(hash, text, strlen(text) + 1);
}

static void identify(struct campaign *campaign, const char *settings) {
  const struct campaign_options *o = &campaign_options;
  static const char *const none[] = { NULL };
  char numbers[32];
  snprintf(numbers, sizeof numbers, "%" PRId64, o->iterations);
  struct hash_sha256 hash;
  hash_sha256_init(&hash);
  hash_text(&hash, settings);
  hash_text(&hash, numbers);
  for (int i = 0; i < campaign->launch.command_count; i++) {
    hash_text(&hash, campaign->launch.command[i]);
  }
  for (const char *const *v = list_variables(campaign, none); *v; v++) {
    hash_text(&hash, *v);
  }
  write_id(campaign->id, &hash);
}

static int check_options(const struct campaign *campaign) {
  const struct campaign_options *o = &campaign_options;
  char absolute[PROFILE_PATH_MAX / 2];
  if (o->min_bytes == 0 || o->max_bytes < o->min_bytes) {
    return cli_fail_usage("-b must be above 0, and -e not below it");
  }
  if (!realpath(o->work, absolute)) {
    return cli_fail("%s: %s", o->work, strerror(errno));
  }
  snprintf((char *)campaign->json_path, sizeof campaign->json_path, "%s/stratus.%d.json", absolute,
           campaign->launch.rank == 0 ? (int)getpid() : 0);
  return CLI_OK;
}

int campaign_open(struct campaign **campaign, int argument_count, char **arguments,
                  const char *settings) {
  struct campaign *opened = *campaign = calloc(1, sizeof *opened);
  if (!opened) {
    return cli_fail("out of memory");
  }
  char error[LAUNCH_ERROR_MAX];
  if (!launch_choose(&opened->launch, arguments, argument_count, error)) {
    return cli_fail_usage("%s", error);
  }
  is_quiet = opened->launch.rank > 0;
  nccl_conf_withdraw(); /* each host of the benchmark reads its own files */
  /* The lines that label the calls must come out of the ranks. */
  unsetenv("NCCL_DEBUG_FILE");
  int status = take_collectives(opened);
  if (status == CLI_OK) {
    status = check_options(opened);
    identify(opened, settings);
  }
  return status;
}

void campaign_close(struct campaign *campaign) {
  if (!campaign) {
    return;
  }
  if (campaign->launch.rank == 0 && campaign->json_path[0]) {
    unlink(campaign->json_path);
  }
  free(campaign);
}

size_t campaign_sizes(const struct campaign *campaign, enum profile_collective collective,
                      uint64_t sizes[PLAN_ENTRIES_MAX]) {
  const struct campaign_options *o = &campaign_options;
  bool is_shared = collective == PROFILE_ALLGATHER || collective == PROFILE_REDUCESCATTER;
  /* Elements of four bytes, the same number for each rank. */
  uint64_t unit =
      4 * (uint64_t)(is_shared && campaign->launch.size > 0 ? campaign->launch.size : 1);
  size_t count = 0;
  for (uint64_t bytes = o->min_bytes; bytes <= o->max_bytes && count < PLAN_ENTRIES_MAX;
       bytes *= (uint64_t)o->factor) {
    uint64_t rounded = bytes / unit * unit;
    if (rounded > 0 && (count == 0 || rounded > sizes[count - 1])) {
      sizes[count++] = rounded;
    }
  }
  return count;
}

struct launch_job campaign_job(struct campaign *campaign, enum profile_collective collective,
                               const uint64_t *sizes, size_t size_count, const char *const *ours) {
  return (struct launch_job){
    .collective = collective,
    .sizes = sizes,
    .size_count = size_count,
    .iterations = (uint64_t)campaign_options.iterations,
    .json_path = campaign->json_path,
    .variables = list_variables(campaign, ours),
    .timeout_ns = campaign_options.timeout_ns,
  };
}

/* ---- running ---- */

struct progress {
  const struct launch_job *job;
  const struct bench_json *alone;
  const char *what;
  launch_line_fn *take;
  void *to;
  size_t rows;
  uint64_t start_ns;
  uint64_t said_ns;
};

double campaign_expect_s(const struct bench_json *alone, enum profile_collective collective,
                         uint64_t bytes) {
  const struct bench_json_row *row = alone ? bench_json_find(alone, collective, bytes) : NULL;
  double call_us = row ? bench_json_time_us(row) : 0;
  return 2 * (double)campaign_options.iterations * call_us / 1e6;
}

static void say_progress(struct progress *progress) {
  double done_s = 0, left_s = 0;
  for (size_t i = 0; i < progress->job->size_count; i++) {
    *(i < progress->rows ? &done_s : &left_s) +=
        campaign_expect_s(progress->alone, progress->job->collective, progress->job->sizes[i]);
  }
  double spent_s = (double)(clock_now_ns() - progress->start_ns) / 1e9;
  /* Other cells are slower than NCCL's choice; by how much is learned during the run. */
  double factor = done_s > 0 && progress->alone ? spent_s / done_s : 1;
  char left[64] = "";
  if (progress->alone) {
    snprintf(left, sizeof left, ", about %.0f s left", left_s * factor);
  }
  campaign_say("%s, %s: %zu of %zu sizes%s", profile_collective_name(progress->job->collective),
               progress->what, progress->rows, progress->job->size_count, left);
}

/* A row of the benchmark's table begins with size and count; nothing else of its output does. */
static void take_line(void *to, const char *line) {
  struct progress *progress = to;
  if (progress->take) {
    progress->take(progress->to, line);
  }
  uint64_t bytes, count;
  char type[16];
  if (sscanf(line, " %" SCNu64 " %" SCNu64 " %15[a-z0-9]", &bytes, &count, type) == 3) {
    progress->rows++;
    uint64_t now_ns = clock_now_ns();
    if (now_ns - progress->said_ns > 5 * NS_PER_S && progress->rows < progress->job->size_count) {
      progress->said_ns = now_ns;
      say_progress(progress);
    }
  }
}

int campaign_tries(const struct campaign *campaign) {
  return campaign->launch.kind == LAUNCH_INSIDE ? 1 : 2;
}

static int read_results(const struct launch_job *job, struct bench_json *bench) {
  char error[BENCH_JSON_ERROR_MAX];
  if (bench_json_read(job->json_path, job->collective, bench, error) == 0) {
    return CLI_OK;
  }
  return cli_fail("%s (is --work on a file system that rank 0's host shares? are nccl-tests 2.19.2 "
                  "or later?)",
                  error);
}

int campaign_run(struct campaign *campaign, const struct launch_job *job, const char *what,
                 const struct bench_json *alone, launch_line_fn *take, void *to,
                 struct bench_json *bench) {
  uint64_t now_ns = clock_now_ns();
  struct progress progress = { job, alone, what, take, to, 0, now_ns, now_ns };
  bool is_first = campaign->launch.rank == 0;
  campaign_say("%s, %s: %zu sizes", profile_collective_name(job->collective), what,
               job->size_count);
  if (is_first) {
    unlink(job->json_path); /* a launch that writes none must not be taken for the one before */
  }
  int status = launch_run(&campaign->launch, job, take_line, &progress);
  if (status == CLI_OK) {
    campaign_say("%s, %s: done in %.1f s", profile_collective_name(job->collective), what,
                 (double)(clock_now_ns() - now_ns) / 1e9);
  }
  return status == CLI_OK && is_first ? read_results(job, bench) : status;
}
