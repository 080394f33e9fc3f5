/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net: what the network plugin sees and does on this machine. */
#include <stdio.h>

#include "common/cli.h"
#include "common/param.h"
#include "common/version.h"
#include "net_plugin/tools/net_tool.h"

static bool is_markdown;

static const struct cli_option params_options[] = {
  { .name = "markdown",
    .type = CLI_FLAG,
    .value = &is_markdown,
    .help = "the table of docs/parameters.md" },
  { 0 },
};

static int params(int argument_count, char **arguments, bool is_json) {
  (void)argument_count;
  (void)arguments;
  (void)is_json;
  param_print(stdout, is_markdown ? PARAM_FORMAT_MARKDOWN : PARAM_FORMAT_LIST);
  return CLI_OK;
}

static const struct cli_command commands[] = {
  { .name = "devices",
    .summary = "list the NICs that NCCL will see, and why other interfaces are not used",
    .arguments = "",
    .example = "NCCL_SOCKET_IFNAME=^docker,lo stratus-net devices",
    .has_json = true,
    .run = net_tool_devices },
  { .name = "params",
    .summary = "list the STRATUS_ variables with the values in force",
    .arguments = "",
    .example = "STRATUS_FLOWS=8 stratus-net params",
    .options = params_options,
    .run = params },
  { .name = "perf",
    .summary = "measure a net plugin between two hosts, driven as NCCL drives it",
    .arguments = "HOST[:PORT] | --listen [ADDRESS[:PORT]]",
    .max_arguments = 1,
    .example = "stratus-net perf --listen & sleep 1; stratus-net perf localhost --bytes 64K,512K "
               "--time 1s",
    .has_json = true,
    .options = net_tool_perf_options,
    .run = net_tool_perf },
  { .name = "probe",
    .summary = "measure the network between hosts, with this transport",
    .arguments = "[HOST...]",
    .max_arguments = -1,
    .example = "stratus-net probe --listen & sleep 1; stratus-net probe localhost --no-sweep",
    .has_json = true,
    .options = net_tool_probe_options,
    .run = net_tool_probe },
  { .name = "stats",
    .summary = "show what processes that use the plugin are doing: NICs, connections, flows, waits",
    .arguments = "[PID]",
    .max_arguments = 1,
    .example = "stratus-net stats --json",
    .has_json = true,
    .options = net_tool_stats_options,
    .run = net_tool_stats },
  { .name = "doctor",
    .summary = "check that NCCL will find and load the plugin",
    .arguments = "",
    .example = "NCCL_NET_PLUGIN=stratus stratus-net doctor",
    .has_json = true,
    .run = net_tool_doctor },
  { 0 },
};

int main(int argc, char **argv) {
  static const struct cli_tool tool = {
    .name = "stratus-net",
    .summary = "what the stratus network plugin sees and does on this machine",
    .version = STRATUS_VERSION,
    .commands = commands,
  };
  return cli_main(&tool, argc, argv);
}
