/* SPDX-License-Identifier: Apache-2.0 */
/* report: prints the results of a probe.
 * Owns: nothing.  Threads: the main thread.  Blocks: on stdout.  Fails: with an exit status. */
#ifndef NET_PLUGIN_TOOLS_PROBE_REPORT_H
#define NET_PLUGIN_TOOLS_PROBE_REPORT_H

#include "net_plugin/tools/probe/probe.h"

int report_table(const struct probe_report *report);
int report_json(const struct probe_report *report);
/* A complete profile, for STRATUS_PROFILE. */
int report_profile(const struct probe_report *report);

#endif
