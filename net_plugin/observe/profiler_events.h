/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_events: which collective each communicator of this process entered last, as NCCL's
 * profiler events tell it. Entered means that the program has called it and NCCL has launched it;
 * sends and receives, and collectives of CUDA graphs when they are launched again, are not counted.
 *
 * Owns: a table of communicators, for the process.  Threads: any.  Blocks: never for longer than
 * another caller's copy.  Fails: profiler_events_open returns NULL when the table is full; that
 * communicator is then not told of. */
#ifndef NET_PLUGIN_OBSERVE_PROFILER_EVENTS_H
#define NET_PLUGIN_OBSERVE_PROFILER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/observe/limits.h"

#define PROFILER_FUNCTION_BYTES 24 /* "ReduceScatter" */

struct profiler_progress {
  uint64_t communicator; /* NCCL's hash, the same on all ranks */
  int rank, ranks;       /* ranks 0: NCCL did not tell (before 2.27) */
  uint64_t entered;      /* collectives so far; 0: the rest says nothing */
  uint64_t sequence;     /* NCCL's number of the last one, from 0, for each function of its own */
  uint64_t entered_ns;
  char function[PROFILER_FUNCTION_BYTES];
};

struct profiler_communicator;

struct profiler_communicator *profiler_events_open(uint64_t communicator, int rank, int ranks);
/* What NCCL before 2.27 tells with each event only. */
void profiler_events_identify(struct profiler_communicator *communicator, uint64_t hash, int rank);
void profiler_events_entered(struct profiler_communicator *communicator, const char *function,
                             uint64_t sequence, uint64_t now_ns);
void profiler_events_close(struct profiler_communicator *communicator);

/* Copies those that have an identity; how many. */
size_t profiler_events_read(struct profiler_progress list[PROFILER_COMMUNICATORS_MAX]);

/* " This is rank 1 of 4, which entered AllReduce 17 of communicator 0x1234 5.0 s ago": the
 * collective that was entered last; "" if there is none. Returns text. */
enum { PROFILER_TEXT_MAX = 160 };
const char *profiler_events_describe(uint64_t now_ns, char text[PROFILER_TEXT_MAX]);

#endif
