/* SPDX-License-Identifier: Apache-2.0 */
/* stratus as people use it: help, examples that run as printed, wrong use. Those of perf and
 * probe, which want two processes, run in tests/netns. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

/* Whose examples are run: perf and probe take two processes, others a job, and those about
 * profiles are run in test_tuner_tool.c. */
static const char *const alone[] = { "doctor", "devices", "params", "stats" };

UNIT_TEST_WITH(help_lists_every_command_and_no_other, tool_set_up, tool_tear_down) {
  char listed[512] = "";
  assert_int_equal(tool_run("stratus -h"), 0);
  const char *line = strstr(tool.output, "commands:\n");
  assert_non_null(line);
  while (*(line = strchr(line, '\n') + 1) == ' ') {
    char name[32];
    assert_int_equal(sscanf(line, "%31s", name), 1);
    strcat(strcat(listed, " "), name);
  }
  assert_string_equal(listed, " run env doctor devices params stats perf probe show calibrate fit "
                              "verify compare");
}

/* doctor's status tells whether NCCL is there, which the tests' machines need not have. */
UNIT_TEST_WITH(examples_run_as_printed, tool_set_up, tool_tear_down) {
  for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
    char line[TOOL_LINE_MAX];
    tool_read_example(alone[i], line);
    int status = tool_run(line);
    if (strstr(tool.errors, "no usable interface")) {
      SKIP_BECAUSE("no network interface but lo");
    }
    if (status != 0 && !(status == 1 && strcmp(alone[i], "doctor") == 0)) {
      fail_msg("%s: status %d: %s", line, status, tool.errors);
    }
    assert_true(tool.output[0] != '\0' && tool.errors[0] == '\0');
  }
}

UNIT_TEST_WITH(doctor_knows_the_built_plugin, tool_set_up, tool_tear_down) {
  tool_run("LD_LIBRARY_PATH=\"$(dirname \"$(command -v stratus)\")/../lib\" stratus doctor");
  tool_assert_contains(tool.output, "ok    it exports ncclNetPlugin_v");
}

UNIT_TEST_WITH(wrong_use_is_status_2, tool_set_up, tool_tear_down) {
  static const struct {
    const char *command, *says;
  } cases[] = {
    { "stratus prof", "no command prof: did you mean perf?" }, /* the first of two */
    { "stratus devices eth0", "does not take \"eth0\"" },
    { "stratus stats x", "'x' is no process number" },
    { "stratus stats --watch x", "a time such as 250ms or 10s" },
    { "stratus perf", "either the HOST of a server or --listen" },
    { "stratus perf h --test speed", "bandwidth|latency|both-ways" },
    { "stratus perf h --bytes 3X", "such as 8,1K,512K" },
    { "stratus perf h --bytes 2G", "sizes up to 1G" },
    { "stratus perf h --time 1s --count 1", "either --time and --warmup or --count" },
    { "stratus perf h:99999", "a port is 1 to 65535" },
    { "stratus perf --listen --count 3", "the client chooses what to measure" },
    { "env -u RANK stratus probe", "by mpirun, srun or torchrun" },
    { "RANK=0 WORLD_SIZE=1 stratus probe", "by mpirun, srun or torchrun" },
    { "stratus perf fe80::2", "as in fe80::2%eth0" },
    { "RANK=0 WORLD_SIZE=2 stratus probe --root fe80::2", "as in fe80::2%eth0" },
    { "RANK=0 WORLD_SIZE=2 stratus probe --root h:70000", "a port is 1 to 65535" },
    { "stratus probe --time x", "a time such as 250ms or 10s" },
    { "stratus probe --time 0", "takes 1ms to 1m" },
    { "stratus probe --time 61s", "takes 1ms to 1m" },
    { "RANK=0 WORLD_SIZE=2 stratus probe", "give --root HOST[:PORT]" },
    { "RANK=2 WORLD_SIZE=2 stratus probe", "RANK=2 is not below WORLD_SIZE=2" },
    { "RANK=2 stratus probe", "RANK=2 is set, but WORLD_SIZE is not" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_assert_wrong_use(cases[i].command, cases[i].says);
  }
}

/* Short and long ones, of help, too. Without a stdout nothing else is taken for it. */
UNIT_TEST_WITH(output_that_is_lost_is_a_failure, tool_set_up, tool_tear_down) {
  static const char *const commands[] = {
    "--version",
    "-h",
    "perf -h",
    "doctor",
    "doctor --json",
    "devices",
    "params",
    "stats --json",
    "show tuner_plugin/profiles/example.profile",
  };
  TOOL_WARNS(tool_run("stratus -h >/dev/full"), 1, "the output: No space left on device\n");
  TOOL_WARNS(tool_run("stratus devices >&-"), 1, "the output: Bad file descriptor\n");
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    char line[TOOL_LINE_MAX];
    snprintf(line, sizeof line, "stratus %s >/dev/full", commands[i]);
    TOOL_WARNS(tool_run(line), 1, "stratus: cannot write the output");
    snprintf(line, sizeof line, "stratus %s >&-", commands[i]);
    TOOL_WARNS(tool_run(line), 1, "stratus: cannot write the output");
  }
}

UNIT_TEST_WITH(params_names_what_is_no_variable, tool_set_up, tool_tear_down) {
  TOOL_WARNS(tool_run("STRATUS_SPEED_LIMIT=5 stratus params"), 0,
             "STRATUS_SPEED_LIMIT is not a variable of stratus", "unset it");
}
