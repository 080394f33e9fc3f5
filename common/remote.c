/* SPDX-License-Identifier: Apache-2.0 */
/* remote: one process for each host, in a process group of its own so that all of it can be ended.
 */
#include "common/remote.h"

#include <ctype.h>
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

#include "common/clock.h"
#include "common/plain.h"
#include "common/quantity.h"

enum { AT_ONCE = 64, WORDS_MAX = 320, STATUS_NOT_FOUND = 127, STATUS_SSH_FAILED = 255 };

/* ---- the command ---- */

struct words {
  char *words[WORDS_MAX + 1]; /* NULL at the end */
  int count;
  bool is_for_shell; /* the other host's shell reads what follows */
};

static char *quote(const char *text) {
  char *quoted = malloc(4 * strlen(text) + 3), *to = quoted;
  if (!quoted) {
    return NULL;
  }
  *to++ = '\'';
  for (; *text; text++) {
    if (*text == '\'') {
      to = stpcpy(to, "'\\''");
    } else {
      *to++ = *text;
    }
  }
  strcpy(to, "'");
  return quoted;
}

static void remote_add_word(struct words *words, const char *text) {
  if (words->count < WORDS_MAX) {
    words->words[words->count++] = words->is_for_shell ? quote(text) : strdup(text);
  }
}

static void add_split(struct words *words, const char *text) {
  for (size_t length; *(text += strspn(text, " \t")); text += length) {
    length = strcspn(text, " \t");
    if (words->count < WORDS_MAX) {
      words->words[words->count++] = strndup(text, length);
    }
  }
}

static void make_command(const struct remote_command *how, const char *host, struct words *words) {
  if (strncmp(host, "ns:", 3) == 0) {
    add_split(words, "ip netns exec");
    remote_add_word(words, host + 3);
  } else if (strcmp(host, "local") != 0) {
    add_split(words, how->ssh);
    remote_add_word(words, host);
    words->is_for_shell = true;
  }
  remote_add_word(words, "env");
  for (const char *const *name = how->variables; *name; name++) {
    char text[4096];
    const char *value = getenv(*name);
    if (value && snprintf(text, sizeof text, "%s=%s", *name, value) < (int)sizeof text) {
      remote_add_word(words, text);
    }
  }
  remote_add_word(words, how->tool);
  for (const char *const *argument = how->arguments; *argument; argument++) {
    remote_add_word(words, *argument);
  }
}

/* ---- processes ---- */

__attribute__((noreturn)) static void become(char **words, const int ends[2]) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(ends[0], STDOUT_FILENO);
  dup2(ends[1], STDERR_FILENO);
  execvp(words[0], words);
  fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
  _exit(STATUS_NOT_FOUND);
}

static void remote_start(const struct remote_command *how, struct remote_result *answer) {
  struct words words = { 0 };
  int output[2] = { -1, -1 }, errors[2] = { -1, -1 };
  make_command(how, answer->host, &words);
  answer->child = -1;
  if (pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0) {
    answer->child = fork();
    if (answer->child == 0) {
      become(words.words, (int[]){ output[1], errors[1] });
    }
  }
  if (answer->child < 0) {
    snprintf(answer->why_not, sizeof answer->why_not, "cannot start a process: %s",
             strerror(errno));
  }
  answer->pipes[0] = output[0];
  answer->pipes[1] = errors[0];
  close(output[1]);
  close(errors[1]);
  for (int i = 0; i < words.count; i++) {
    free(words.words[i]);
  }
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
    struct pollfd waiting[2 * AT_ONCE];
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
  for (int first = 0; first < count; first += AT_ONCE) {
    int batch = count - first < AT_ONCE ? count - first : AT_ONCE;
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

bool remote_is_host(const char *text) {
  if (text[0] == '-' || text[0] == '\0') {
    return false;
  }
  for (; *text; text++) {
    if (!isalnum((unsigned char)*text) && !strchr("._-@:%", *text)) {
      return false;
    }
  }
  return true;
}
