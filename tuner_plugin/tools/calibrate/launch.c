/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the command line for each way to start ranks. */
#include "tuner_plugin/tools/calibrate/launch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/launcher.h"

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ---- which way ---- */

/* Place of the word that names the benchmark, or -1: the last one that looks like it. */
static int find_benchmark(char *const *command, int count, enum bench_json_kind *kind) {
  for (int i = count - 1; i >= 0; i--) {
    const char *name = base_name(command[i]);
    size_t length = strlen(name);
    if (strcmp(name, "stratus-coll") == 0) {
      *kind = BENCH_JSON_STRATUS_COLL;
      return i;
    }
    if (length > 5 && strcmp(name + length - 5, "_perf") == 0) {
      *kind = BENCH_JSON_NCCL_TESTS;
      return i;
    }
  }
  return -1;
}

/* This process is a rank already. The processes of an MPICH job have nothing in common but their
 * parent, which the benchmark, a child of this process, cannot see. */
static bool choose_inside(struct launch *launch, char error[LAUNCH_ERROR_MAX]) {
  struct launcher_place place;
  launch->kind = LAUNCH_INSIDE;
  int found = launcher_find(&place, error, LAUNCH_ERROR_MAX);
  if (found == 0) {
    snprintf(error, LAUNCH_ERROR_MAX,
             "nothing says how to start the ranks: give --hosts, or a command after --, or run "
             "this under mpirun, srun or torchrun");
  }
  launch->rank = place.rank;
  launch->size = place.size;
  if (found > 0 && place.local_size == place.size && !*place.job && !*place.first_host) {
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/stratus-coll-%u-%d", (unsigned)getuid(),
             (int)getppid());
    setenv("STRATUS_COLL_ADDR", address, 0);
  }
  return found > 0;
}

bool launch_choose(struct launch *launch, const char *hosts, char *const *command,
                   int command_count, char error[LAUNCH_ERROR_MAX]) {
  launch->bench = BENCH_JSON_STRATUS_COLL;
  launch->hosts = hosts;
  launch->command = command;
  launch->command_count = command_count;
  if (hosts) {
    launch->kind = LAUNCH_HOSTS;
    snprintf(error, LAUNCH_ERROR_MAX, "--hosts or a command, not both");
    return command_count == 0;
  }
  if (command_count == 0) {
    return choose_inside(launch, error);
  }
  snprintf(error, LAUNCH_ERROR_MAX,
           "the command has no program that ends in _perf or is stratus-coll");
  launch->kind = launcher_is_open_mpi(command[0]) ? LAUNCH_MPIRUN : LAUNCH_COMMAND;
  return find_benchmark(command, command_count, &launch->bench) >= 0;
}

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void add(struct launch_words *words,
                                                      const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *word = NULL;
  if (words->count == LAUNCH_WORDS_MAX || vasprintf(&word, format, arguments) < 0) {
    words->has_failed = true;
  } else {
    words->words[words->count++] = word;
  }
  va_end(arguments);
}

void launch_words_free(struct launch_words *words) {
  for (size_t i = 0; i < words->count; i++) {
    free(words->words[i]);
  }
  *words = (struct launch_words){ 0 };
}

static void add_sizes(const struct launch_job *job, struct launch_words *words) {
  char list[16384];
  size_t length = 0;
  for (size_t i = 0; i < job->size_count && length < sizeof list - 24; i++) {
    length += (size_t)snprintf(list + length, sizeof list - length, "%s%" PRIu64, i ? "," : "",
                               job->sizes[i]);
  }
  add(words, "%s", list);
}

static void add_coll_arguments(const struct launch_job *job, struct launch_words *words) {
  add(words, "--op");
  add(words, "%s", bench_json_operation(job->collective));
  add(words, "--sizes");
  add_sizes(job, words);
  add(words, "-n");
  add(words, "%" PRIu64, job->iterations);
  add(words, "-w");
  add(words, "1");
  add(words, "-c");
  add(words, "%" PRIu64, job->checks);
  if (job->min_time_ns > 0) {
    add(words, "--min-time");
    add(words, "%" PRIu64 "us", job->min_time_ns / 1000);
  }
  if (job->timeout_ns > 0) {
    add(words, "--timeout");
    add(words, "%" PRIu64 "ms", job->timeout_ns / 1000000);
  }
  if (job->has_call_times) {
    add(words, "--per-iteration");
  }
  add(words, "--json");
  add(words, "%s", job->json_path);
}

/* nccl-tests go from a first to a last size by a factor; a size that was not requested is measured
 * and ignored. */
static void add_nccl_tests_arguments(const struct launch_job *job, struct launch_words *words) {
  uint64_t factor = 0;
  for (size_t i = 1; i < job->size_count; i++) {
    uint64_t step = job->sizes[i] / job->sizes[i - 1];
    factor = factor == 0 || step < factor ? step : factor;
  }
  add(words, "-b");
  add(words, "%" PRIu64, job->sizes[0]);
  add(words, "-e");
  add(words, "%" PRIu64, job->sizes[job->size_count - 1]);
  add(words, "-f");
  add(words, "%" PRIu64, factor < 2 ? 2 : factor);
  add(words, "-n");
  add(words, "%" PRIu64, job->iterations);
  add(words, "-w");
  add(words, "0");
  add(words, "-c");
  add(words, "%" PRIu64, job->checks);
  if (job->has_call_times) {
    add(words, "-I");
    add(words, "1");
  }
  add(words, "-J");
  add(words, "%s", job->json_path);
}

/* The user's program, by the name of the collective where it is one of nccl-tests'. */
static void add_program(const struct launch *launch, const struct launch_job *job, const char *word,
                        struct launch_words *words) {
  if (launch->bench == BENCH_JSON_STRATUS_COLL) {
    add(words, "%s", word);
  } else {
    add(words, "%.*s%s_perf", (int)(base_name(word) - word), word,
        bench_json_operation(job->collective));
  }
}

static void add_command(const struct launch *launch, const struct launch_job *job,
                        struct launch_words *words) {
  enum bench_json_kind kind;
  int program = find_benchmark(launch->command, launch->command_count, &kind);
  for (int i = 0; i < launch->command_count; i++) {
    if (i == program) {
      add_program(launch, job, launch->command[i], words);
    } else {
      add(words, "%s", launch->command[i]);
    }
    for (size_t v = 0; i == 0 && launch->kind == LAUNCH_MPIRUN && job->variables[v]; v++) {
      add(words, "-x");
      add(words, "%.*s", (int)strcspn(job->variables[v], "="), job->variables[v]);
    }
    if (i == 0 && launch->kind == LAUNCH_MPIRUN && getenv("STRATUS_COLL_ADDR")) {
      add(words, "-x");
      add(words, "STRATUS_COLL_ADDR");
    }
  }
}

static void add_hosts(const struct launch *launch, const struct launch_job *job,
                      struct launch_words *words) {
  add(words, "%s", launch->program);
  add(words, "--hosts");
  add(words, "%s", launch->hosts);
  if (launch->ppn > 0) {
    add(words, "--ppn");
    add(words, "%" PRId64, launch->ppn);
  }
  if (launch->is_split_cpus) {
    add(words, "--split-cpus");
  }
  for (size_t v = 0; job->variables[v]; v++) {
    /* Everybody can read command lines: stratus-coll takes this one from its environment. */
    bool is_secret = strncmp(job->variables[v], "STRATUS_SECRET=", 15) == 0;
    add(words, "--env");
    add(words, "%s", is_secret ? "STRATUS_SECRET" : job->variables[v]);
  }
}

void launch_build(const struct launch *launch, const struct launch_job *job,
                  struct launch_words *words) {
  *words = (struct launch_words){ 0 };
  switch (launch->kind) {
  case LAUNCH_HOSTS:
    add_hosts(launch, job, words);
    break;
  case LAUNCH_INSIDE:
    add(words, "%s", launch->program);
    break;
  case LAUNCH_MPIRUN:
  case LAUNCH_COMMAND:
    add_command(launch, job, words);
    break;
  }
  if (launch->bench == BENCH_JSON_STRATUS_COLL) {
    add_coll_arguments(job, words);
  } else {
    add_nccl_tests_arguments(job, words);
  }
}

/* stratus-coll: one warm-up, and one to learn how many it takes; nccl-tests: one to synchronise. */
uint64_t launch_calls_before(const struct launch *launch, const struct launch_job *job) {
  return launch->bench == BENCH_JSON_STRATUS_COLL && job->min_time_ns > 0 ? 2 : 1;
}

uint64_t launch_calls_after(const struct launch *launch, const struct launch_job *job) {
  (void)launch;
  return job->checks;
}
