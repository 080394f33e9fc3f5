/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog: ends the process when the run cannot continue: a rank is gone, NCCL reports an
 * asynchronous error, or time is up. The main thread may then be waiting for a stream that never
 * ends.
 * Owns: one thread.  Threads: called from the main thread.
 * Blocks: watchdog_stop, for one poll.  Fails: watchdog_start ends the process without a thread. */
#ifndef COLL_WATCHDOG_H
#define COLL_WATCHDOG_H

#include <stdint.h>

#include "tests/coll/libs.h"
#include "tests/coll/rendezvous.h"

/* `timeout_ns` is counted from here; 0 = no limit. After a process has gone, NCCL has `grace_ns` to
 * report an error of its own. */
void watchdog_start(struct rendezvous *rendezvous, uint64_t timeout_ns, uint64_t grace_ns);

/* Watches this communicator too, until watchdog_forget or watchdog_stop. */
void watchdog_watch(ncclComm_t comm);

/* Stops watching communicators: they may fail, or be aborted. */
void watchdog_forget(void);

/* What the run is doing, for the message: "all_reduce float sum, 65536 bytes". */
__attribute__((format(printf, 1, 2))) void watchdog_set_place(const char *format, ...);

void watchdog_stop(void);

#endif
