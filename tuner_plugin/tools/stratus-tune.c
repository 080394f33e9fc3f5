/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune: tuning profiles and measurements. The table of its subcommands. */
#include <stddef.h>

#include "common/cli.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

int main(int argc, char **argv) {
  const struct cli_command commands[] = {
    tune_show, tune_calibrate, tune_fit, tune_verify, tune_compare, { .name = NULL },
  };
  const struct cli_tool tool = {
    .name = "stratus-tune",
    .summary = "Makes and shows tuning profiles, and measures for them.",
    .version = STRATUS_VERSION,
    .commands = commands,
  };
  if (nccl_conf_apply(nccl_version_installed) != 0) {
    return cli_fail("out of memory");
  }
  return cli_main(&tool, argc, argv);
}
