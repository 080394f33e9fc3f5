/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net as people use it: help, examples that run as printed, wrong use. Those of perf and
 * probe, which want two processes, run in tests/netns. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/tool.h"
#include "tests/lib/unit.h"

static const char *const commands[] = { "devices", "params", "perf", "probe", "stats", "doctor" };
enum { COMMANDS = sizeof commands / sizeof commands[0] };

UNIT_TEST_WITH(help_lists_every_command, tool_set_up, tool_tear_down) {
  assert_int_equal(tool_run("stratus-net -h"), 0);
  for (int i = 0; i < COMMANDS; i++) {
    char line[64];
    snprintf(line, sizeof line, "\n  %s ", commands[i]);
    tool_assert_contains(tool.output, line);
  }
}

/* doctor's status tells whether NCCL is there, which the tests' machines need not have. */
UNIT_TEST_WITH(examples_run_as_printed, tool_set_up, tool_tear_down) {
  for (int i = 0; i < COMMANDS; i++) {
    char line[TOOL_LINE_MAX];
    tool_read_example("stratus-net", commands[i], line);
    if (strcmp(commands[i], "perf") == 0 || strcmp(commands[i], "probe") == 0) {
      continue;
    }
    int status = tool_run(line);
    if (strstr(tool.errors, "no usable interface")) {
      SKIP_BECAUSE("no network interface but lo");
    }
    if (status != 0 && !(status == 1 && strcmp(commands[i], "doctor") == 0)) {
      fail_msg("%s: status %d: %s", line, status, tool.errors);
    }
    assert_true(tool.output[0] != '\0' && tool.errors[0] == '\0');
  }
}

UNIT_TEST_WITH(wrong_use_is_status_2, tool_set_up, tool_tear_down) {
  static const struct {
    const char *command, *says;
  } cases[] = {
    { "stratus-net", "a command is missing" },
    { "stratus-net device", "no command device" },
    { "stratus-net devices eth0", "does not take \"eth0\"" },
    { "stratus-net devices --yaml", "no option --yaml" },
    { "stratus-net params FLOWS", "does not take \"FLOWS\"" },
    { "stratus-net doctor now", "does not take \"now\"" },
    { "stratus-net stats x", "'x' is no process number" },
    { "stratus-net stats --watch x", "a time such as 250ms or 10s" },
    { "stratus-net perf", "either the HOST of a server or --listen" },
    { "stratus-net perf h --test speed", "bandwidth|latency|rate|both-ways" },
    { "stratus-net perf h --bytes 3X", "such as 8,1K,512K" },
    { "stratus-net perf h --time", "--time needs a value" },
    { "env -u RANK stratus-net probe", "either the HOSTs to probe or --listen" },
    { "stratus-net probe h --listen", "either the HOSTs to probe or --listen" },
    { "stratus-net probe h --port 0", "--port takes 1 to 65535, not 0" },
    { "stratus-net probe h:70000", "or a port (1024 to 65535)" },
    { "stratus-net probe 'h 2'", "\"h 2\" is not a host" },
    { "stratus-net probe local", "a name or an address is wanted" },
    { "stratus-net probe h[1-500]", "at most 255 other hosts" },
    { "stratus-net perf fe80::2", "as in fe80::2%eth0" },
    { "stratus-net probe fe80::2", "as in fe80::2%eth0" },
    { "stratus-net probe h --time x", "a time such as 250ms or 10s" },
    { "stratus-net probe h --time 0", "takes 1ms to 60s" },
    { "stratus-net probe h --time 61s", "takes 1ms to 60s" },
    { "RANK=0 WORLD_SIZE=2 stratus-net probe", "give --root HOST[:PORT]" },
    { "RANK=2 WORLD_SIZE=2 stratus-net probe", "RANK=2 is not below WORLD_SIZE=2" },
    { "RANK=2 stratus-net probe", "RANK=2 is set, but WORLD_SIZE is not" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tool_assert_wrong_use("stratus-net", cases[i].command, cases[i].says);
  }
}

UNIT_MAIN(NULL, NULL)
