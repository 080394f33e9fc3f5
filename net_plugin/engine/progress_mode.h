/* SPDX-License-Identifier: Apache-2.0 */
/* progress_mode: who moves the bytes of an engine, NCCL's threads or its own, and how many engines
 * a NIC has. The mode is fixed when an engine starts. Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot. */
#ifndef NET_PLUGIN_ENGINE_PROGRESS_MODE_H
#define NET_PLUGIN_ENGINE_PROGRESS_MODE_H

enum progress_mode {
  PROGRESS_INLINE, /* NCCL's threads post and poll; the engine's keeps off meanwhile */
  PROGRESS_THREAD, /* NCCL's threads only post; the engine's takes every event as it comes */
};

/* Where the user does not say: THREAD if the process may use CPUs enough for the threads of so many
 * engines next to NCCL's. */
enum progress_mode progress_mode_choose(unsigned cpus, unsigned engines);

/* How many engines a NIC gets where the user does not say: the process may use so many CPUs, and
 * uses so many NICs. At least one; together not more than PROGRESS_ENGINES_MAX, if the NICs are
 * not. */
unsigned progress_mode_engines(unsigned cpus, unsigned nics);

#endif
