/* SPDX-License-Identifier: Apache-2.0 */
/* record: STRATUS_RECORD: times of a job's own calls, as samples for stratus-tune suggest, and
 * their sequence for stratus-tune workload. Owns: one communicator's newest calls.  Threads: any;
 * one lock. Blocks: on that lock; close writes two files.  Fails: open returns NULL, close logs one
 * WARN.
 *
 * It only observes: no choice depends on its times, as they differ between ranks. A tuner sees only
 * the start of a call, so a call's time is measured until the next call of its communicator starts.
 * In a benchmark, or where calls wait for each other, that is the call's time; with computation in
 * between it is longer. */
#ifndef TUNER_PLUGIN_PLUGIN_RECORD_H
#define TUNER_PLUGIN_PLUGIN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner_plugin/decide/decide.h"
#include "tuner_plugin/plugin/tuner.h"

struct record;

/* `directory` empty: NULL. */
struct record *record_open(const char *directory, struct tuner_host host, struct tuner_shape shape);
/* Appends one sample for each collective and size to DIRECTORY/HOST.PID.jsonl, with the topology of
 * this machine; that of the others is unknown. Appends the newest calls to
 * DIRECTORY/HOST.PID.calls, one line of JSON for the communicator:
 *
 *   {"format":"stratus-calls","version":1,"ranks":32,"nodes":4,"nccl":22809,"dropped":0,
 *    "calls":[[1000.250,"allreduce",4194304],[1812.400,"allgather",65536]]}
 *
 * A call: when it began, in microseconds of a clock that the communicators of a host share
 * (CLOCK_MONOTONIC); the collective; bytes as samples count them. `dropped` older ones are gone. */
void record_close(struct record *record);

/* A call that begins now; `costs` as NCCL will see them, is_ours if a profile chose. */
void record_call(struct record *record, int coll, size_t bytes, struct decide_costs costs,
                 int channels, bool is_ours);
/* The profile's chunk for the call that has just begun. */
void record_chunk(struct record *record, uint32_t chunk);

#endif
