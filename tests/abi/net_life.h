/* SPDX-License-Identifier: Apache-2.0 */
/* net_life: the net and CollNet tables in NCCL's order, and what is left of them in the process.
 * Owns: nothing.  Threads: the main one.  Blocks: while messages are exchanged.  Fails: ends the
 * process. */
#ifndef TESTS_ABI_NET_LIFE_H
#define TESTS_ABI_NET_LIFE_H

#include "tests/abi/net_calls.h"

/* What a process has of threads and sockets. */
struct life_count {
  int threads, sockets;
};
struct life_count life_count(void);

/* A communicator of a job that does not use CollNet: NCCL inits the net table and asks it for
 * devices, then the same of the CollNet table, and later ends the net table alone. */
void life_communicator(const struct host *host, ncclDebugLogger_t logger,
                       ncclProfilerCallback_t profiler, const size_t *sizes, int count);

#endif
