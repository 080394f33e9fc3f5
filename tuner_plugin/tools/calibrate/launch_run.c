/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a benchmark as a process group of its own, and reads what comes out of it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "tuner_plugin/tools/calibrate/launch.h"

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
