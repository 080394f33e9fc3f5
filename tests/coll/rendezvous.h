/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous: how the processes of a run exchange small things: NCCL's unique id, barriers, times.
 * Owns: one connection from each process to process 0, over TCP or a Unix socket.
 * Threads: one; rendezvous_find_lost also from another.
 * Blocks: until every process has reached the same step; opening at most timeout_ns.
 * Fails: ends the process with a message naming the process and its host that is gone or disagrees.
 *
 * For a laboratory: who reaches the address is believed. A Unix socket also works between network
 * namespaces, without traffic on the network that is being measured. */
#ifndef COLL_RENDEZVOUS_H
#define COLL_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/coll/world.h"

enum { RENDEZVOUS_BYTES_MAX = 64 << 20 };

struct rendezvous;

/* Process 0 listens, the others connect and try again until it does. `gpus` of each process: for
 * names in messages. */
struct rendezvous *rendezvous_open(const struct world *world, int gpus, uint64_t timeout_ns);
void rendezvous_close(struct rendezvous *rendezvous);

/* `bytes` from each process, in order, at process 0: `all` is used there only. */
void rendezvous_gather(struct rendezvous *rendezvous, const void *mine, void *all, size_t bytes);

/* Process 0's `bytes` at every process. */
void rendezvous_broadcast(struct rendezvous *rendezvous, void *data, size_t bytes);

/* All processes' blocks at all processes. `all` has room for size * bytes. */
void rendezvous_exchange(struct rendezvous *rendezvous, const void *mine, void *all, size_t bytes);

void rendezvous_barrier(struct rendezvous *rendezvous);

/* In place of each number, at every process, the sum or the largest of all processes'. */
void rendezvous_sum(struct rendezvous *rendezvous, double *numbers, size_t count);
void rendezvous_most(struct rendezvous *rendezvous, double *numbers, size_t count);

/* A process whose connection is gone, or -1. Any thread. */
int rendezvous_find_lost(struct rendezvous *rendezvous);

/* "rank 3 on b" */
const char *rendezvous_name(const struct rendezvous *rendezvous, int process);

#endif
