/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, variables, command line and results of a launch. */
#include "tuner_plugin/tools/calibrate/launch.h"

#include <argz.h>
#include <envz.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/launcher.h"
#include "common/nccl_conf.h"
#include "common/quantity.h"

struct launch_options launch_options = {
  .collectives = "allreduce,allgather,reducescatter",
  .min_bytes = 8,
  .max_bytes = 64 << 20,
  .factor = 2,
  .iterations = 20,
  .timeout_ns = 1800 * NS_PER_S,
  .work = ".",
};

/* ---- opening ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Place of the word that names the benchmark, or -1: the last one that looks like it. */
static int find_benchmark(const struct launch *launch) {
  for (int i = launch->command_count - 1; i >= 0; i--) {
    const char *name = base_name(launch->command[i]);
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, "_perf") == 0) {
      return i;
    }
  }
  return -1;
}

/* A rank that another launcher has started would run a job of its own beside the others. */
static int choose_command(struct launch *launch) {
  struct launcher_place place;
  char error[256];
  int program = find_benchmark(launch);
  if (program < 0) {
    return cli_fail_usage("a command is wanted after -- that runs one of nccl-tests, whose names "
                          "end in _perf, on all ranks, as in -- mpirun -np 16 -N 8 "
                          "all_reduce_perf");
  }
  if (program == 0 && launcher_find(&place, error, sizeof error) > 0 && place.size > 1) {
    return cli_fail_usage("this is rank %d of %d that %s started: start stratus once, with %s "
                          "behind --",
                          place.rank, place.size, place.launcher, place.launcher);
  }
  launch->is_open_mpi = program > 0 && launcher_is_open_mpi(launch->command[0]);
  return CLI_OK;
}

static int take_collectives(struct launch *launch) {
  char word[QUANTITY_WORD_MAX];
  for (const char *list = launch_options.collectives; quantity_next_word(&list, word);) {
    int found = quantity_find_word(PROFILE_COLLECTIVE_WORDS, word);
    bool is_new = found >= 0;
    for (size_t i = 0; i < launch->collective_count; i++) {
      is_new &= (int)launch->collectives[i] != found;
    }
    if (!is_new) {
      return cli_fail_usage("--coll takes some of %s, separated by commas, not \"%s\"",
                            PROFILE_COLLECTIVE_WORDS, word);
    }
    launch->collectives[launch->collective_count++] = (enum profile_collective)found;
  }
  return CLI_OK;
}

/* Elements of four bytes. */
static int take_sizes(struct launch *launch) {
  const struct launch_options *o = &launch_options;
  if (o->min_bytes == 0 || o->max_bytes < o->min_bytes) {
    return cli_fail_usage("-b must be above 0, and -e not below it");
  }
  for (uint64_t bytes = o->min_bytes;
       bytes <= o->max_bytes && launch->size_count < CALIBRATE_SIZES_MAX;
       bytes *= (uint64_t)o->factor) {
    uint64_t rounded = bytes / 4 * 4;
    if (rounded > 0 &&
        (launch->size_count == 0 || rounded > launch->sizes[launch->size_count - 1])) {
      launch->sizes[launch->size_count++] = rounded;
    }
  }
  return CLI_OK;
}

int launch_open(struct launch *launch, int argument_count, char **arguments) {
  char absolute[PROFILE_PATH_MAX / 2];
  *launch = (struct launch){ .command = arguments, .command_count = argument_count };
  int status = choose_command(launch);
  status = status ? status : take_collectives(launch);
  status = status ? status : take_sizes(launch);
  if (status == CLI_OK && !realpath(launch_options.work, absolute)) {
    status = cli_fail("%s: %s", launch_options.work, strerror(errno));
  }
  if (status == CLI_OK) {
    snprintf(launch->json_path, sizeof launch->json_path, "%s/stratus.%d.json", absolute,
             (int)getpid());
    nccl_conf_withdraw();        /* each host of the benchmark reads its own files */
    unsetenv("NCCL_DEBUG_FILE"); /* the tuner's lines must come out of the ranks */
  }
  return status;
}

void launch_close(struct launch *launch) {
  if (launch->json_path[0]) {
    unlink(launch->json_path);
  }
}

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void add(struct launch_words *list, const char *format,
                                                      ...) {
  char *word = NULL;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&word, format, arguments);
  va_end(arguments);
  if (length < 0 || argz_add(&list->words, &list->bytes, word) != 0) {
    exit(cli_fail("out of memory"));
  }
  free(word);
}

/* ---- variables ---- */

/* Or in a file, if that counts: ranks read it there, and a variable would count more. */
static bool has_name(const struct launch_words *list, const char *variable, bool counts_file) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(variable, "="), variable);
  return envz_entry(list->words, list->bytes, name) || (counts_file && nccl_conf_find(name).file);
}

struct launch_words launch_list_variables(const char *const *ours) {
  static const char *const always[] = { "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT",
                                        "STRATUS_LOG=info" };
  /* Compression is off: what benchmarks send becomes shorter than gradients do. */
  static const char *const unless_set[] = { "NCCL_TUNER_PLUGIN=libnccl-tuner-stratus.so",
                                            "STRATUS_COMPRESS=off" };
  struct launch_words list = { 0 };
  for (; *ours; ours++) {
    add(&list, "%s", *ours);
  }
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
    add(&list, "%s", always[i]);
  }
  for (char **each = environ; *each; each++) {
    /* NCCL_HOSTID is of one host, where all others are of the job. */
    bool is_wanted = (strncmp(*each, "NCCL_", 5) == 0 && strncmp(*each, "NCCL_HOSTID=", 12) != 0) ||
                     strncmp(*each, "LD_LIBRARY_PATH=", 16) == 0 ||
                     strncmp(*each, "STRATUS_", 8) == 0;
    if (is_wanted && !has_name(&list, *each, false)) {
      add(&list, "%s", *each);
    }
  }
  for (size_t i = 0; i < sizeof unless_set / sizeof unless_set[0]; i++) {
    if (!has_name(&list, unless_set[i], true)) {
      add(&list, "%s", unless_set[i]);
    }
  }
  return list;
}

/* ---- the command line ---- */

/* nccl-tests go from a first to a last size by a factor; a size that was not requested is measured
 * and ignored. */
static uint64_t factor_of(const struct launch_job *job) {
  uint64_t factor = 0;
  for (size_t i = 1; i < job->size_count; i++) {
    uint64_t step = job->sizes[i] / job->sizes[i - 1];
    factor = factor == 0 || step < factor ? step : factor;
  }
  return factor < 2 ? 2 : factor;
}

static void add_variables(struct launch_words *list, const struct launch_job *job) {
  struct launch_words variables = launch_list_variables(job->ours);
  const char *each = NULL;
  while ((each = argz_next(variables.words, variables.bytes, each))) {
    add(list, "-x");
    add(list, "%.*s", (int)strcspn(each, "="), each);
  }
  free(variables.words);
}

struct launch_words launch_build(const struct launch *launch, const struct launch_job *job) {
  struct launch_words list = { 0 };
  int program = find_benchmark(launch);
  for (int i = 0; i < launch->command_count; i++) {
    const char *word = launch->command[i];
    if (i == program) { /* by the name of the collective */
      add(&list, "%.*s%s_perf", (int)(base_name(word) - word), word,
          bench_json_operation(job->collective));
    } else {
      add(&list, "%s", word);
    }
    if (i == 0 && launch->is_open_mpi) {
      add_variables(&list, job);
    }
  }
  const struct {
    const char *option;
    uint64_t value;
  } options[] = {
    { "-b", job->sizes[0] },
    { "-e", job->sizes[job->size_count - 1] },
    { "-f", factor_of(job) },
    { "-n", job->iterations },
    { "-w", 0 },
    { "-c", job->is_checked },
    { "-I", 1 },
  };
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    add(&list, "%s", options[i].option);
    add(&list, "%" PRIu64, options[i].value);
  }
  add(&list, "-J");
  add(&list, "%s", launch->json_path);
  return list;
}

/* ---- output ---- */

enum { TAIL_LINES = 8 };

struct output {
  const struct launch_job *job;
  char tail[TAIL_LINES][256]; /* the last lines, for when it fails */
  size_t lines;
};

static void take_line(struct output *output, char *line) {
  line[strcspn(line, "\n")] = '\0';
  snprintf(output->tail[output->lines++ % TAIL_LINES], sizeof output->tail[0], "%.255s", line);
  if (output->job->take) {
    output->job->take(output->job->to, line);
  }
}

/* ---- running ---- */

static volatile pid_t child;           /* the leader of its group */
static volatile sig_atomic_t ended_by; /* a signal; SIGALRM: the time limit */

/* Whoever does not heed the first signal is killed by the next. */
static void end_launch(int number) {
  kill(-child, ended_by ? SIGKILL : SIGTERM);
  ended_by = number;
}

static void become(const struct launch_job *job, char *const *words, int output) {
  struct launch_words variables = launch_list_variables(job->ours);
  char *each = NULL;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  while ((each = argz_next(variables.words, variables.bytes, each))) {
    putenv(each);
  }
  if (!freopen("/dev/null", "r", stdin) || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0) {
    _exit(127);
  }
  execvp(words[0], words);
  fprintf(stderr, "cannot run %s: %s\n", words[0], strerror(errno));
  _exit(127);
}

/* Until all ranks have closed their output. Returns the exit status of the child, or -1. */
static int run_words(const struct launch_job *job, char *const *words, struct output *output) {
  static const int numbers[] = { SIGINT, SIGTERM, SIGALRM };
  struct sigaction action = { .sa_handler = end_launch, .sa_flags = SA_RESTART }, old[3];
  int ends[2], status = -1;
  sigset_t all, before; /* a signal waits until there is a group that it ends */
  if (pipe2(ends, O_CLOEXEC) < 0) {
    return -1;
  }
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    become(job, words, ends[1]);
  }
  close(ends[1]);
  FILE *from = fdopen(ends[0], "r");
  if (child > 0 && from) {
    setpgid(child, child); /* whichever of both comes first */
    for (int i = 0; i < 3; i++) {
      sigaction(numbers[i], &action, &old[i]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    /* Half a minute more than the benchmark's own limit, whose message says more. */
    alarm(launch_options.timeout_ns ? (unsigned)(launch_options.timeout_ns / NS_PER_S) + 30 : 0);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, from) > 0) {
      take_line(output, line);
    }
    free(line);
    alarm(0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < 3; i++) {
      sigaction(numbers[i], &old[i], NULL);
    }
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (from) {
    fclose(from);
  }
  return status;
}

static int tell_failure(const char *program, int status, const struct output *output) {
  if (ended_by) {
    return cli_fail("%s was ended: %s", program,
                    ended_by == SIGALRM ? "no time left" : "interrupted");
  }
  size_t first = output->lines > TAIL_LINES ? output->lines - TAIL_LINES : 0;
  for (size_t i = first; i < output->lines; i++) {
    fprintf(stderr, "  %s\n", output->tail[i % TAIL_LINES]);
  }
  return cli_fail("%s failed (%s %d); its last lines are above", program,
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int read_results(const struct launch *launch, const struct launch_job *job,
                        struct bench_json *bench) {
  char error[BENCH_JSON_ERROR_MAX];
  return bench_json_read(launch->json_path, job->collective, bench, error) == 0
             ? CLI_OK
             : cli_fail("%s (is --work on a file system that rank 0's host shares? are nccl-tests "
                        "2.19.2 or later?)",
                        error);
}

static int try_once(struct launch *launch, const struct launch_job *job, struct bench_json *bench) {
  uint64_t now_ns = clock_now_ns();
  struct output output = { .job = job };
  struct launch_words list = launch_build(launch, job);
  char **words = calloc(argz_count(list.words, list.bytes) + 1, sizeof *words);
  if (!words) {
    free(list.words);
    return cli_fail("out of memory");
  }
  argz_extract(list.words, list.bytes, words);
  cli_say("%s, %s: %zu sizes", profile_collective_name(job->collective), job->what,
          job->size_count);
  unlink(launch->json_path); /* nccl-tests do not overwrite a file, and an old one is not theirs */
  if (job->take) {
    job->take(job->to, NULL);
  }
  ended_by = 0;
  int exit_status = run_words(job, words, &output);
  int status = exit_status == 0 && !ended_by ? read_results(launch, job, bench)
                                             : tell_failure(words[0], exit_status, &output);
  free(words);
  free(list.words);
  if (status == CLI_OK) {
    cli_say("%s, %s: done in %.1f s", profile_collective_name(job->collective), job->what,
            (double)(clock_now_ns() - now_ns) / 1e9);
  }
  return status;
}

int launch_run(struct launch *launch, const struct launch_job *job, struct bench_json *bench) {
  int status = try_once(launch, job, bench);
  return status == CLI_OK || ended_by ? status : try_once(launch, job, bench);
}
