/* SPDX-License-Identifier: Apache-2.0 */
/* The tools while each call fails in turn (each_failure.h): none crashes, hangs or leaks, and one
 * that does not succeed says why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/faulty_tool.h"
#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

static const char *command;

static void run_command(struct outcome *outcome) {
  faulty_tool_run(command, outcome);
}

static void survive_each_failing_call(const char *const *commands, size_t count) {
  for (size_t i = 0; i < count; i++) {
    command = commands[i];
    struct entry_point entry = { .name = command, .run = run_command, .arms_itself = true };
#ifdef __SANITIZE_ADDRESS__
    entry.is_slow = true; /* a process takes 0.1 s */
#endif
    assert_true(each_failure_of_all(&entry) > 0);
  }
}
#define SURVIVE(commands)                                                                          \
  survive_each_failing_call(commands, sizeof(commands) / sizeof(*(commands)))

static void stratus_net(void **state) {
  (void)state;
  static const char *const commands[] = {
    "stratus-net devices",
    "stratus-net params",
    "stratus-net stats --json",
  };
  SURVIVE(commands);
}

static void stratus_tune(void **state) {
  (void)state;
  static const char *const commands[] = {
    "stratus-tune check tuner_plugin/profiles/example.profile",
    "stratus-tune show tuner_plugin/profiles/example.profile",
    "stratus-tune import tuner_plugin/profiles/example.csv",
  };
  SURVIVE(commands);
}

static void stratus_coll(void **state) {
  (void)state;
  static const char *const commands[] = { "stratus-coll --replay resnet50 --replay-list 2" };
  SURVIVE(commands);
}

static void stratus_run_and_env(void **state) {
  (void)state;
  static const char *const commands[] = { "stratus-run true", "stratus-env" };
  SURVIVE(commands);
}

/* Before those without faults, which tool_set_up finds. */
static int set_up(void **state) {
  char path[4096];
  tool_set_up(state);
  const char *found = getenv("PATH");
  snprintf(path, sizeof path, "%.*s/../tests/faulty:%s", (int)strcspn(found, ":"), found, found);
  setenv("PATH", path, 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  return 0;
}

#define TOOL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tool_tear_down)

/* With an argument, as in 'stratus_net', the tests of that name. */
int main(int argc, char **argv) {
  cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
  const struct CMUnitTest tests[] = {
    TOOL_TEST(stratus_net),
    TOOL_TEST(stratus_tune),
    TOOL_TEST(stratus_coll),
    TOOL_TEST(stratus_run_and_env),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
