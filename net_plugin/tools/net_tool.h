/* SPDX-License-Identifier: Apache-2.0 */
/* net_tool: the subcommands of stratus-net; each returns the exit status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_NET_TOOL_H
#define NET_PLUGIN_TOOLS_NET_TOOL_H

#include <stdbool.h>

#include "common/cli.h"

int net_tool_devices(int argument_count, char **arguments, bool is_json);
int net_tool_doctor(int argument_count, char **arguments, bool is_json);
int net_tool_perf(int argument_count, char **arguments, bool is_json);
int net_tool_probe(int argument_count, char **arguments, bool is_json);
extern const struct cli_option net_tool_perf_options[];
extern const struct cli_option net_tool_probe_options[];
int net_tool_stats(int argument_count, char **arguments, bool is_json);
extern const struct cli_option net_tool_stats_options[];

#endif
