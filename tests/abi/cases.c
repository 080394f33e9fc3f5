/* SPDX-License-Identifier: Apache-2.0 */
/* See cases.h. */
#include "tests/abi/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TESTS_MAX = 256 };
extern char **environ;
const struct release *cases_release;
int cases_variant;

struct one {
  const struct cases_host *host;
  const struct release *release;
  const struct cases_case *which;
  char name[64];
};

void cases_fail(const char *file, int line, const char *condition, const char *format, ...) {
  va_list arguments;
  fprintf(stderr, "%s:%d: check failed: %s:", file, line, condition);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  _Exit(1);
}

/* ---- the log ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char own_log[CASES_LOG_BYTES];
char *cases_log_text = own_log;

void cases_log(enum nccl_log_level level, unsigned long flags, const char *file, int line,
               const char *format, ...) {
  bool is_net = strncmp(format, "NET/", 4) == 0;
  CHECK(flags == (unsigned long)(NCCL_SUBSYSTEM_INIT |
                                 (is_net ? NCCL_SUBSYSTEM_NET : NCCL_SUBSYSTEM_TUNING)));
  CHECK(file && line > 0);
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&log_lock);
  size_t used = strlen(cases_log_text), room = CASES_LOG_BYTES - used;
  CHECK(snprintf(cases_log_text + used, room, "%d %s\n", (int)level, text) < (int)room);
  pthread_mutex_unlock(&log_lock);
}

int cases_log_count(enum nccl_log_level level, const char *part) {
  int count = 0;
  pthread_mutex_lock(&log_lock);
  for (const char *line = cases_log_text, *end; (end = strchr(line, '\n')); line = end + 1) {
    count += *line == '0' + (char)level &&
             memmem(line, (size_t)(end - line), part, strlen(part)) != NULL;
  }
  pthread_mutex_unlock(&log_lock);
  return count;
}

/* ---- cases ---- */

const char *cases_net_plugin(void) {
  const char *path = getenv("STRATUS_TEST_NET_PLUGIN");
  return path ? path : "build/lib/libnccl-net-stratus.so";
}

const char *cases_tuner_plugin(void) {
  const char *path = getenv("STRATUS_TEST_TUNER_PLUGIN");
  return path ? path : "build/lib/libnccl-tuner-stratus.so";
}

static bool has_release(const struct cases_host *host, const struct release *release) {
  const struct release *last = &releases[RELEASES - 1];
  bool is_last_of_net = release == last || release[1].net != release->net;
  return release->net >= host->first_net && (!host->is_by_net || is_last_of_net) &&
         (!host->is_of_ends || release == releases || release == last);
}

static void run(const struct cases_host *host, const struct release *release,
                const struct cases_case *which) {
  cases_release = release;
  cases_variant = which->variant;
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  if (host->begin) {
    host->begin();
  }
  which->run();
  fputs(cases_log_text, stdout);
  if (host->end) {
    host->end();
  }
  if (host->leaves_threads && release->net < 11) {
    fflush(stdout);
    _Exit(0);
  }
}

static int run_here(const struct cases_host *host, const char *name, const char *of_case) {
  for (const struct release *release = releases; release < releases + RELEASES; release++) {
    for (const struct cases_case *which = host->cases; which->name; which++) {
      if (strcmp(release->name, name) == 0 && strcmp(which->name, of_case) == 0) {
        run(host, release, which);
        return 0;
      }
    }
  }
  fprintf(stderr, "no such release or case: %s %s\n", name, of_case);
  return 2;
}

static void run_there(void **state) {
  const struct one *one = *state;
  char *arguments[] = { program_invocation_short_name, (char *)one->host->name,
                        (char *)one->release->name, (char *)one->which->name, NULL };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child;
  assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == CASES_SKIP) {
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
}

static int run_all(const struct cases_host *host) {
  static struct one all[TESTS_MAX];
  static struct CMUnitTest tests[TESTS_MAX];
  size_t count = 0;
  for (const struct release *release = releases; release < releases + RELEASES; release++) {
    for (const struct cases_case *which = host->cases; which->name; which++) {
      if (has_release(host, release)) {
        CHECK(count < TESTS_MAX);
        struct one *one = &all[count];
        *one = (struct one){ .host = host, .release = release, .which = which };
        snprintf(one->name, sizeof one->name, "NCCL %s: %s", release->name, which->name);
        tests[count++] = (struct CMUnitTest){ one->name, run_there, NULL, NULL, one };
      }
    }
  }
  return _cmocka_run_group_tests(host->title, tests, count, NULL, NULL);
}

int main(int argc, char **argv) {
  static const struct cases_host *const hosts[] = { &collnet_host, &fork_host, &life_host,
                                                    &net_host, &tuner_host };
  const struct cases_host *host = NULL;
  for (size_t i = 0; argc > 1 && i < sizeof hosts / sizeof hosts[0]; i++) {
    host = strcmp(hosts[i]->name, argv[1]) == 0 ? hosts[i] : host;
  }
  if (!host || argc == 3) {
    fprintf(stderr, "usage: abi collnet|fork|life|net|tuner [RELEASE CASE]\n");
    return 2;
  }
  return argc > 3 ? run_here(host, argv[2], argv[3]) : run_all(host);
}
