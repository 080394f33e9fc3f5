/* SPDX-License-Identifier: Apache-2.0 */
/* exact: a ring of up to NETWORK_HOSTS_MAX hosts in one simulation: all their connections, and
 * every message when it is posted. Nothing is summed up as in schedule.h, which is checked with it.
 *
 * A channel of a host does one thing after the other, as NCCL's kernel: it takes what has arrived,
 * reduces it, and sends it on. Flows and what was learned live as long as the struct.
 *
 * Owns: a struct exact, from exact_new to exact_free.  Threads: one.  Blocks: never.
 * Fails: without memory, or when messages do not arrive any more, the program ends. */
#ifndef TESTS_SCALE_EXACT_H
#define TESTS_SCALE_EXACT_H

#include "tests/scale/schedule.h"

struct exact;

/* config->gpus: 1. transport->connections: channels; its network's hosts: all of them. */
struct exact *exact_new(const struct schedule_config *config,
                        const struct transport_config *transport);
void exact_free(struct exact *exact);

/* As schedule_run with a ring; returns the bytes that left all hosts. */
uint64_t exact_run(struct exact *exact, enum operation operation, uint64_t bytes,
                   const double *start_ns, double *end_ns);

#endif
