/* SPDX-License-Identifier: Apache-2.0 */
/* agent: what every host of a probe runs: does what the coordinator says, one thing at a time,
 * until that hangs up. Owns: nothing when it has ended.  Threads: the main thread.  Blocks: until
 * the end. Fails: with a message and CLI_FAILED; a measurement that did not work is told to the
 * coordinator, and is no failure. */
#ifndef NET_PLUGIN_TOOLS_PROBE_AGENT_H
#define NET_PLUGIN_TOOLS_PROBE_AGENT_H

/* Takes the socket over. */
int agent_run(int fd);

#endif
