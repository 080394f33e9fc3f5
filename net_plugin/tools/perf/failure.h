/* SPDX-License-Identifier: Apache-2.0 */
/* failure: prints an error and keeps its text, so that it can be sent to the other side.
 * Owns: the last text.  Threads: the main thread.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_FAILURE_H
#define NET_PLUGIN_TOOLS_PERF_FAILURE_H

/* As cli_fail. */
int failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The first failure, since later ones follow from it; never NULL. */
const char *failure_text(void);

#endif
