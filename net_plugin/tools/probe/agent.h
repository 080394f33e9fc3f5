/* SPDX-License-Identifier: Apache-2.0 */
/* agent: runs on every host of a probe and executes the coordinator's tasks, one at a time, until
 * the connection is closed. Owns: nothing after it returns.  Threads: the main thread.  Blocks:
 * until the end. Fails: with a message and CLI_FAILED; a failed measurement is reported to the
 * coordinator and is no failure of the agent. */
#ifndef NET_PLUGIN_TOOLS_PROBE_AGENT_H
#define NET_PLUGIN_TOOLS_PROBE_AGENT_H

/* The line before the first byte of an agent at a command's output, where login shells may have
 * printed something before. */
#define AGENT_BEGINS "stratus-net agent\n"

/* Takes ownership of the socket. */
int agent_run(int fd);

#endif
