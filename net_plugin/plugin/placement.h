/* SPDX-License-Identifier: Apache-2.0 */
/* placement: on which CPUs the threads of a NIC's engines run.
 *
 * Bytes that a NIC delivers are in the memory and caches of its NUMA node, so that is where the
 * threads belong; NCCL's threads, which make them, are near the GPU instead. The process's own CPUs
 * are the limit: what the user, a batch system or a container gave is never left, and a process
 * that was given few CPUs was placed on purpose.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: cannot; a bad STRATUS_THREAD_CPUS is one LOG_WARN, and means nothing. */
#ifndef NET_PLUGIN_PLUGIN_PLACEMENT_H
#define NET_PLUGIN_PLUGIN_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>

enum { PLACEMENT_TEXT_MAX = 256 };

/* "0-3,8". False: that is none, or a CPU is beyond CPU_SETSIZE. */
bool placement_parse(const char *text, cpu_set_t *cpus);
/* The same backwards; a longer text ends in dots. Returns text. */
const char *placement_format(const cpu_set_t *cpus, char text[PLACEMENT_TEXT_MAX]);

/* parameter: STRATUS_THREAD_CPUS; allowed: the process's CPUs; near: the NIC's. *cpus: where the
 * thread goes, none if it stays as it is made. Returns why, for people. */
const char *placement_decide(const char *parameter, const cpu_set_t *allowed, const cpu_set_t *near,
                             cpu_set_t *cpus);

#endif
