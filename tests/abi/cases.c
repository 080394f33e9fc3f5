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

static const char *plugin_of(const struct cases_host *host) {
  const char *path = getenv(host->plugin_variable);
  return path ? path : host->plugin;
}

void cases_leave_running(void) {
  fflush(stdout);
  _Exit(0);
}

static const char *name_of(const struct cases_list *list, int index) {
  const char *items = list->items;
  return *(const char *const *)(const void *)(items + (size_t)index * list->item_bytes);
}

static int index_of(const struct cases_list *list, const char *name) {
  int index = (int)list->count - 1;
  while (index >= 0 && strcmp(name_of(list, index), name) != 0) {
    index--;
  }
  return index;
}

static int run_here(const struct cases_host *host, const char *release, const char *which,
                    const char *path) {
  int r = index_of(&host->releases, release), c = index_of(&host->cases, which);
  if (r < 0 || c < 0) {
    fprintf(stderr, "no such release or case: %s %s\n", release, which);
    return 2;
  }
  host->run(r, c, path);
  return 0;
}

static void run_there(void **state) {
  const struct one *one = *state;
  const struct cases_host *host = one->host;
  char *arguments[] = { program_invocation_short_name,
                        (char *)host->name,
                        (char *)name_of(&host->releases, one->release),
                        (char *)name_of(&host->cases, one->which),
                        (char *)plugin_of(host),
                        NULL };
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
  size_t count = host->releases.count * host->cases.count;
  struct one *all = calloc(count, sizeof *all);
  struct CMUnitTest *tests = calloc(count, sizeof *tests);
  for (size_t i = 0; i < count; i++) {
    struct one *one = &all[i];
    *one = (struct one){ .host = host,
                         .release = (int)(i / host->cases.count),
                         .which = (int)(i % host->cases.count) };
    snprintf(one->name, sizeof one->name, "NCCL %s: %s", name_of(&host->releases, one->release),
             name_of(&host->cases, one->which));
    tests[i] = (struct CMUnitTest){ one->name, run_there, NULL, NULL, one };
  }
  int failed = _cmocka_run_group_tests(host->title, tests, count, NULL, NULL);
  free(tests);
  free(all);
  return failed;
}

int main(int argc, char **argv) {
  static const struct cases_host *const hosts[] = { &collnet_host, &fork_host, &life_host,
                                                    &net_host, &tuner_host };
  const struct cases_host *host = NULL;
  for (size_t i = 0; argc > 1 && i < sizeof hosts / sizeof hosts[0]; i++) {
    host = strcmp(hosts[i]->name, argv[1]) == 0 ? hosts[i] : host;
  }
  if (!host) {
    fprintf(stderr, "usage: abi collnet|fork|life|net|tuner [RELEASE CASE [PLUGIN]]\n");
    return 2;
  }
  return argc >= 4 ? run_here(host, argv[2], argv[3], argc > 4 ? argv[4] : plugin_of(host))
                   : run_all(host);
}
