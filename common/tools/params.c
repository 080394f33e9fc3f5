/* SPDX-License-Identifier: Apache-2.0 */
/* stratus params: the table of the variables. */
#include <stdio.h>
#include <unistd.h>

#include "common/param.h"
#include "common/tools/commands.h"

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  param_warn_unknown(environ);
  param_print(stdout);
  return CLI_OK;
}

const struct cli_command command_params = {
  .name = "params",
  .summary = "list the STRATUS_ variables and their effective values",
  .arguments = "",
  .example = "STRATUS_FLOWS=8 stratus params",
  .run = run,
};
