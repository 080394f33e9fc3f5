/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the command line for each way to start ranks, runs it as a process group of its own, and
 * reads what comes out of it. */
#include "tuner_plugin/tools/calibrate/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
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
#include "tuner_plugin/tools/calibrate/bench_json.h"

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ---- which way ---- */

/* Place of the word that names the benchmark, or -1: the last one that looks like it. */
static int find_benchmark(char *const *command, int count) {
  for (int i = count - 1; i >= 0; i--) {
    const char *name = base_name(command[i]);
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, "_perf") == 0) {
      return i;
    }
  }
  return -1;
}

bool launch_choose(struct launch *launch, char *const *command, int command_count,
                   char error[LAUNCH_ERROR_MAX]) {
  struct launcher_place place;
  launch->command = command;
  launch->command_count = command_count;
  int program = find_benchmark(command, command_count);
  if (program < 0) {
    snprintf(
        error, LAUNCH_ERROR_MAX,
        "a command is wanted after -- that runs one of nccl-tests, whose names end in _perf, on "
        "all ranks, as in -- mpirun -np 16 -N 8 all_reduce_perf");
    return false;
  }
  launch->kind = launcher_is_open_mpi(command[0]) ? LAUNCH_MPIRUN : LAUNCH_COMMAND;
  int found = program == 0 ? launcher_find(&place, error, LAUNCH_ERROR_MAX) : 0;
  if (found > 0 && place.size > 1) { /* this process is a rank, and starts its part */
    launch->kind = LAUNCH_INSIDE;
    launch->rank = place.rank;
    launch->size = place.size;
  }
  return found >= 0;
}

/* ---- words ---- */

static void add_word(struct launch_words *words, const char *word) {
  char *copy = words->count < LAUNCH_WORDS_MAX ? strdup(word) : NULL;
  words->has_failed |= !copy;
  if (copy) {
    words->words[words->count++] = copy;
  }
}

void launch_words_free(struct launch_words *words) {
  for (int i = 0; i < words->count; i++) {
    free(words->words[i]);
  }
  *words = (struct launch_words){ 0 };
}

/* An option and its value. */
__attribute__((format(printf, 3, 4))) static void add(struct launch_words *words,
                                                      const char *option, const char *format, ...) {
  char value[16384];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  words->has_failed |= length >= (int)sizeof value;
  add_word(words, option);
  add_word(words, value);
}

/* nccl-tests go from a first to a last size by a factor; a size that was not requested is measured
 * and ignored. */
static void add_arguments(const struct launch_job *job, struct launch_words *words) {
  uint64_t factor = 0;
  for (size_t i = 1; i < job->size_count; i++) {
    uint64_t step = job->sizes[i] / job->sizes[i - 1];
    factor = factor == 0 || step < factor ? step : factor;
  }
  add(words, "-b", "%" PRIu64, job->sizes[0]);
  add(words, "-e", "%" PRIu64, job->sizes[job->size_count - 1]);
  add(words, "-f", "%" PRIu64, factor < 2 ? 2 : factor);
  add(words, "-n", "%" PRIu64, job->iterations);
  add(words, "-w", "0");
  add(words, "-c", "%" PRIu64, job->checks);
  add(words, "-I", "1");
  add(words, "-J", "%s", job->json_path);
}

/* The user's program, by the name of the collective. */
static void add_program(const struct launch_job *job, const char *word,
                        struct launch_words *words) {
  char program[PATH_MAX];
  snprintf(program, sizeof program, "%.*s%s_perf", (int)(base_name(word) - word), word,
           bench_json_operation(job->collective));
  add_word(words, program);
}

void launch_build(const struct launch *launch, const struct launch_job *job,
                  struct launch_words *words) {
  *words = (struct launch_words){ 0 };
  int program = find_benchmark(launch->command, launch->command_count);
  for (int i = 0; i < launch->command_count; i++) {
    if (i == program) {
      add_program(job, launch->command[i], words);
    } else {
      add_word(words, launch->command[i]);
    }
    for (size_t v = 0; i == 0 && launch->kind == LAUNCH_MPIRUN && job->variables[v]; v++) {
      add(words, "-x", "%.*s", (int)strcspn(job->variables[v], "="), job->variables[v]);
    }
  }
  add_arguments(job, words);
}

uint64_t launch_calls_after(const struct launch_job *job) {
  return job->checks;
}

/* ---- running ---- */

enum { TAIL_LINES = 8, LINE_MAX_BYTES = 4096 };

/* The last lines, for when it fails. */
struct tail {
  char lines[TAIL_LINES][256];
  size_t count;
};

struct output {
  launch_line_fn *take;
  void *to;
  struct tail tail;
  char line[LINE_MAX_BYTES];
  size_t length;
};

static volatile sig_atomic_t is_interrupted;

static void note_signal(int number) {
  (void)number;
  is_interrupted = 1;
}

static void become(const struct launch_job *job, struct launch_words *words, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (size_t v = 0; job->variables[v]; v++) {
    putenv((char *)job->variables[v]);
  }
  if (!freopen("/dev/null", "r", stdin) || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0) {
    _exit(127);
  }
  close(output);
  execvp(words->words[0], words->words);
  fprintf(stderr, "cannot run %s: %s\n", words->words[0], strerror(errno));
  _exit(127);
}

static void end_line(struct output *output) {
  output->line[output->length] = '\0';
  output->length = 0;
  output->take(output->to, output->line);
  snprintf(output->tail.lines[output->tail.count++ % TAIL_LINES], sizeof output->tail.lines[0],
           "%.255s", output->line);
}

static void take_bytes(struct output *output, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] == '\n') {
      end_line(output);
    } else if (output->length < sizeof output->line - 1) {
      output->line[output->length++] = bytes[i];
    }
  }
}

/* Until all ranks have closed their output; false when it was ended from here. */
static bool read_all(int from, pid_t child, uint64_t end_ns, struct output *output) {
  bool is_ended = false;
  for (;;) {
    struct pollfd waiting = { .fd = from, .events = POLLIN };
    int ready = poll(&waiting, 1, 200);
    if (!is_ended && (is_interrupted || (end_ns > 0 && clock_now_ns() > end_ns))) {
      is_ended = true;
      kill(-child, SIGTERM);
    }
    if (ready <= 0) {
      continue;
    }
    char bytes[65536];
    ssize_t count = read(from, bytes, sizeof bytes);
    if (count <= 0) {
      return !is_ended;
    }
    take_bytes(output, bytes, (size_t)count);
  }
}

static int tell_failure(const char *program, int status, const struct tail *tail) {
  size_t first = tail->count > TAIL_LINES ? tail->count - TAIL_LINES : 0;
  for (size_t i = first; i < tail->count; i++) {
    fprintf(stderr, "  %s\n", tail->lines[i % TAIL_LINES]);
  }
  return cli_fail("%s failed (%s %d); its last lines are above", program,
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int run_words(const struct launch_job *job, struct launch_words *words, launch_line_fn *take,
                     void *to) {
  int ends[2];
  struct output *output = calloc(1, sizeof *output);
  if (!output || pipe2(ends, O_CLOEXEC) < 0) {
    free(output);
    return cli_fail("cannot start %s: %s", words->words[0], strerror(errno));
  }
  output->take = take;
  output->to = to;
  struct sigaction action = { .sa_handler = note_signal }, old[2];
  sigaction(SIGINT, &action, &old[0]);
  sigaction(SIGTERM, &action, &old[1]);
  pid_t child = fork();
  if (child == 0) {
    become(job, words, ends[1]);
  }
  close(ends[1]);
  int status = -1;
  /* Half a minute more than the benchmark's own limit, whose message says more. */
  uint64_t end_ns = job->timeout_ns ? clock_now_ns() + job->timeout_ns + 30 * NS_PER_S : 0;
  bool is_whole = child > 0 && read_all(ends[0], child, end_ns, output);
  close(ends[0]);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  sigaction(SIGINT, &old[0], NULL);
  sigaction(SIGTERM, &old[1], NULL);
  int result = CLI_OK;
  if (!is_whole) {
    result = cli_fail("%s was ended: %s", words->words[0],
                      is_interrupted ? "interrupted" : "no time left");
  } else if (status != 0) {
    result = tell_failure(words->words[0], status, &output->tail);
  }
  free(output);
  return result;
}

int launch_run(const struct launch *launch, const struct launch_job *job, launch_line_fn *take,
               void *to) {
  struct launch_words words;
  if (is_interrupted) {
    return CLI_FAILED; /* already reported when it ended the launch before */
  }
  launch_build(launch, job, &words);
  unlink(job->json_path); /* nccl-tests do not overwrite a file that exists */
  int result = words.has_failed ? cli_fail("the command line has too many words")
                                : run_words(job, &words, take, to);
  launch_words_free(&words);
  return result;
}
