/* SPDX-License-Identifier: Apache-2.0 */
/* stratus: the command beside the plugins. */
#include <stddef.h>

#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/tools/commands.h"
#include "common/version.h"

/* What NCCL reads from its files counts for a command as it does for a job. These two are about the
 * environment itself, and read the files where they need to. */
static int prepare(const struct cli_command *command) {
  bool is_of_environment = command->run == command_run.run || command->run == command_env.run;
  return is_of_environment || nccl_conf_apply(nccl_version_installed) == 0
             ? CLI_OK
             : cli_fail("out of memory");
}

int main(int argc, char **argv) {
  const struct cli_command commands[] = {
    command_run,   command_env,    command_doctor,  command_devices,  command_params,
    command_stats, command_perf,   command_probe,   command_show,     command_calibrate,
    command_fit,   command_verify, command_compare, { .name = NULL },
  };
  const struct cli_tool tool = {
    .name = "stratus",
    .summary = "Runs jobs with the plugins of stratus, and finds out what they do.",
    .version = STRATUS_VERSION,
    .commands = commands,
    .prepare = prepare,
  };
  return cli_main(&tool, argc, argv);
}
