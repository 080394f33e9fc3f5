/* SPDX-License-Identifier: Apache-2.0 */
/* commands: the subcommands of stratus. Each is defined where its code is, in the tools/ of common,
 * net_plugin or tuner_plugin. Owns: option values, one set per process.  Threads: the main thread.
 * Blocks: as each says.  Fails: with a message on stderr and the exit status (common/cli.h). */
#ifndef COMMON_TOOLS_COMMANDS_H
#define COMMON_TOOLS_COMMANDS_H

#include "common/cli.h"

extern const struct cli_command command_run, command_env, command_doctor, command_devices,
    command_params, command_stats, command_perf, command_probe, command_calibrate, command_fit,
    command_verify, command_show, command_compare;

#endif
