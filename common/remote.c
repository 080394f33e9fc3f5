/* SPDX-License-Identifier: Apache-2.0 */
/* remote: one process for each host, in a process group of its own so that all of it can be ended.
 */
#include "common/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/host_command.h"
#include "common/limits.h"
#include "common/plain.h"
#include "common/quantity.h"

enum { STATUS_NOT_FOUND = 127, STATUS_SSH_FAILED = 255 };

/* ---- the command ---- */

static void make_command(const struct remote_command *how, const struct host *host,
                         struct host_command *command) {
  host_command_begin(command, host, how->ssh);
  host_command_add(command, "env");
  for (const char *const *name = how->variables; *name; name++) {
    char text[4096];
    const char *value = getenv(*name);
    if (value && snprintf(text, sizeof text, "%s=%s", *name, value) < (int)sizeof text) {
      host_command_add(command, text);
    }
  }
  host_command_add(command, how->tool);
  for (const char *const *argument = how->arguments; *argument; argument++) {
    host_command_add(command, *argument);
  }
}

/* ---- processes ---- */

/* `ends`: its standard input, output and errors; -1: /dev/null. */
__attribute__((noreturn)) static void become(char **words, const int ends[3]) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3; i++) {
    dup2(ends[i] < 0 ? nothing : ends[i], i);
  }
  execvp(words[0], words);
  fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
  _exit(STATUS_NOT_FOUND);
}

/* The process, or negative errno. */
static pid_t start(const struct remote_command *how, const struct host *host, const int ends[3]) {
  struct host_command command;
  make_command(how, host, &command);
  pid_t child = command.has_failed ? -E2BIG : fork();
  if (child == 0) {
    become(command.words, ends);
  }
  child = child == -1 ? -errno : child;
  host_command_free(&command);
  return child;
}

static void remote_start(const struct remote_command *how, struct remote_result *answer) {
  int output[2] = { -1, -1 }, errors[2] = { -1, -1 };
  answer->child = pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0
                      ? start(how, answer->host, (int[]){ -1, output[1], errors[1] })
                      : -errno;
  if (answer->child < 0) {
    snprintf(answer->why_not, sizeof answer->why_not, "cannot start a process: %s",
             strerror(-answer->child));
  }
  answer->pipes[0] = output[0];
  answer->pipes[1] = errors[0];
  close(output[1]);
  close(errors[1]);
}

/* ---- output ---- */

/* Output that does not fit is discarded. */
static void read_some(struct remote_result *answer, int which) {
  char bytes[4096];
  char *to = which == 0 ? answer->output : answer->errors;
  size_t *length = which == 0 ? &answer->output_length : &answer->errors_length;
  size_t room = (which == 0 ? (size_t)REMOTE_OUTPUT_MAX : (size_t)REMOTE_ERROR_MAX) - 1 - *length;
  ssize_t n = read(answer->pipes[which], bytes, sizeof bytes);
  if (n <= 0) {
    close(answer->pipes[which]);
    answer->pipes[which] = -1;
    return;
  }
  size_t taken = (size_t)n < room ? (size_t)n : room;
  memcpy(to + *length, bytes, taken);
  *length += taken;
}

/* The last line that is not empty: ssh and shells print the error there. */
static char *last_line(char *text) {
  size_t length = strlen(text);
  while (length > 0 && strchr("\r\n \t", text[length - 1])) {
    text[--length] = '\0';
  }
  char *newline = strrchr(text, '\n');
  return newline ? newline + 1 : text;
}

static void remote_end(const struct remote_command *how, struct remote_result *answer,
                       bool is_late) {
  int status = 0;
  if (answer->child < 0) {
    return;
  }
  if (is_late) {
    kill(-answer->child, SIGKILL);
  }
  waitpid(answer->child, &status, 0);
  const char *said = plain_text(last_line(answer->errors));
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  char text[QUANTITY_TEXT_MAX];
  if (is_late) {
    snprintf(answer->why_not, sizeof answer->why_not, "no answer within %s",
             quantity_format_duration(how->timeout_ns, text));
  } else if (WIFSIGNALED(status)) {
    snprintf(answer->why_not, sizeof answer->why_not, "ended by signal %d", WTERMSIG(status));
  } else if (code == STATUS_NOT_FOUND && !strncmp(said, "env: ", 5)) {
    snprintf(answer->why_not, sizeof answer->why_not,
             "there is no %.200s there; give its path with --tool PATH", how->tool);
  } else if (code != 0) {
    snprintf(answer->why_not, sizeof answer->why_not, "%.280s%s%d", *said ? said : "",
             *said ? "; status " : "status ", code);
  }
}

static bool is_done(const struct remote_result *answer) {
  return answer->child < 0 || (answer->pipes[0] < 0 && answer->pipes[1] < 0);
}

/* Waits until all have closed their output, or the time is over. */
static void hear(struct remote_result *answers, int count, uint64_t deadline_ns) {
  for (;;) {
    struct pollfd waiting[2 * REMOTE_AT_ONCE];
    uint64_t now_ns = clock_now_ns();
    int left = 0;
    for (int i = 0; i < 2 * count; i++) {
      waiting[i] = (struct pollfd){ .fd = answers[i / 2].pipes[i % 2], .events = POLLIN };
      left += waiting[i].fd >= 0;
    }
    if (left == 0 || now_ns >= deadline_ns) {
      return;
    }
    poll(waiting, 2 * (nfds_t)count, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
    for (int i = 0; i < 2 * count; i++) {
      if (waiting[i].revents) {
        read_some(&answers[i / 2], i % 2);
      }
    }
  }
}

void remote_run_all(const struct remote_command *how, struct remote_result *answers, int count) {
  for (int first = 0; first < count; first += REMOTE_AT_ONCE) {
    int batch = count - first < REMOTE_AT_ONCE ? count - first : REMOTE_AT_ONCE;
    for (int i = first; i < first + batch; i++) {
      remote_start(how, &answers[i]);
    }
    hear(answers + first, batch, clock_now_ns() + how->timeout_ns);
    for (int i = first; i < first + batch; i++) {
      remote_end(how, &answers[i], !is_done(&answers[i]));
      for (int which = 0; which < 2; which++) {
        if (answers[i].pipes[which] >= 0) {
          close(answers[i].pipes[which]);
        }
      }
    }
  }
}

/* ---- conversations ---- */

int remote_talk(const struct remote_command *how, const struct host *host, pid_t *child) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return -errno;
  }
  *child = start(how, host, (int[]){ ends[1], ends[1], -1 });
  close(ends[1]);
  if (*child < 0) {
    close(ends[0]);
    return *child;
  }
  return ends[0];
}

void remote_hang_up(pid_t child) {
  kill(-child, SIGTERM);
  kill(child, SIGTERM); /* before it has a group of its own */
  waitpid(child, NULL, 0);
}
