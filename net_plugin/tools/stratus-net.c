/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net: the tool of the network plugin. */
#include <stdio.h>

#include "common/cli.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/param.h"
#include "common/version.h"
#include "net_plugin/tools/net_tool.h"

static bool is_markdown;

static const struct cli_option params_options[] = {
  { "markdown", 0, CLI_FLAG, &is_markdown, NULL, "print a table in Markdown", 0, 0 },
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
    .summary = "list the NICs presented to NCCL, and why other interfaces are not used",
    .arguments = "",
    .example = "NCCL_SOCKET_IFNAME=^docker,lo stratus-net devices",
    .has_json = true,
    .run = net_tool_devices },
  { .name = "params",
    .summary = "list the STRATUS_ variables and their effective values",
    .arguments = "",
    .example = "STRATUS_FLOWS=8 stratus-net params",
    .options = params_options,
    .run = params },
  { .name = "perf",
    .summary = "benchmark a net plugin between two hosts, driven as NCCL drives it",
    .arguments = "HOST[:PORT] | --listen [ADDRESS[:PORT]]",
    .max_arguments = 1,
    .example = "stratus-net perf --listen localhost & sleep 1; stratus-net perf localhost --bytes "
               "64K,512K --time 1s",
    .has_json = true,
    .options = net_tool_perf_options,
    .run = net_tool_perf },
  { .name = "probe",
    .summary = "measure the network between hosts with this plugin, and write a profile",
    .arguments = "[HOST...]",
    .max_arguments = -1,
    .example = "export STRATUS_SECRET=$(openssl rand -hex 16); stratus-net probe --listen & sleep "
               "1; stratus-net probe localhost --no-sweep",
    .has_json = true,
    .options = net_tool_probe_options,
    .run = net_tool_probe },
  { .name = "stats",
    .summary = "show statistics of running processes: NICs, connections, flows, stalls",
    .arguments = "[PID]",
    .max_arguments = 1,
    .example = "stratus-net stats --json",
    .has_json = true,
    .options = net_tool_stats_options,
    .run = net_tool_stats },
  { .name = "doctor",
    .summary = "check that NCCL will load the plugin, and the settings of this host",
    .arguments = "",
    .example = "NCCL_NET_PLUGIN=stratus stratus-net doctor",
    .has_json = true,
    .run = net_tool_doctor },
  { 0 },
};

int main(int argc, char **argv) {
  static const struct cli_tool tool = {
    .name = "stratus-net",
    .summary = "inspect, measure and diagnose the stratus network plugin",
    .version = STRATUS_VERSION,
    .commands = commands,
  };
  if (nccl_conf_apply(nccl_version_installed) != 0) {
    return cli_fail("out of memory");
  }
  return cli_main(&tool, argc, argv);
}
