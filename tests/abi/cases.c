/* SPDX-License-Identifier: Apache-2.0 */
/* See cases.h. */
#include "tests/abi/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

struct one {
  const struct cases_host *host;
  int release, which;
  char name[64];
};

const char *cases_plugin(const struct cases_host *host) {
  const char *path = getenv(host->plugin_variable);
  return path ? path : host->plugin;
}

static int run_here(const struct cases_host *host, const char *release, const char *which,
                    const char *path) {
  for (int r = 0; r < host->releases; r++) {
    for (int c = 0; c < host->cases; c++) {
      if (!strcmp(host->release_name(r), release) && !strcmp(host->case_name(c), which)) {
        host->run(r, c, path);
        return 0;
      }
    }
  }
  fprintf(stderr, "no such release or case: %s %s\n", release, which);
  return 2;
}

static void run_there(void **state) {
  const struct one *one = *state;
  const struct cases_host *host = one->host;
  char *arguments[] = { program_invocation_short_name, (char *)host->release_name(one->release),
                        (char *)host->case_name(one->which), (char *)cases_plugin(host), NULL };
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

int cases_main(const struct cases_host *host, int argc, char **argv) {
  if (argc >= 3) {
    return run_here(host, argv[1], argv[2], argc > 3 ? argv[3] : cases_plugin(host));
  }
  size_t count = (size_t)(host->releases * host->cases);
  struct one *all = calloc(count, sizeof *all);
  struct CMUnitTest *tests = calloc(count, sizeof *tests);
  for (int i = 0; i < (int)count; i++) {
    struct one *one = &all[i];
    *one = (struct one){ .host = host, .release = i / host->cases, .which = i % host->cases };
    snprintf(one->name, sizeof one->name, "NCCL %s: %s", host->release_name(one->release),
             host->case_name(one->which));
    tests[i] = (struct CMUnitTest){ one->name, run_there, NULL, NULL, one };
  }
  int failed = _cmocka_run_group_tests(host->title, tests, count, NULL, NULL);
  free(tests);
  free(all);
  return failed;
}
