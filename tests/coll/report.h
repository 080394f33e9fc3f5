/* SPDX-License-Identifier: Apache-2.0 */
/* report: nccl-tests' table on stdout, and the JSON file.
 * Owns: the results until report_close.  Threads: rank 0's main thread.
 * Blocks: while it writes.  Fails: ends the process with a message when a file cannot be written.
 *
 * The JSON file, of whose results nccl-tests' (-J) have the same members but "op":
 *   {"version": 1, "nccl": "2.29.7", "gpu": "emulated" or the GPU's name,
 *    "ranks": N, "hosts": N,
 *    "results": [{"op": "all_reduce", "size": BYTES, "count": N, "type": "float", "redop": "sum" or
 *                 "none", "root": N or -1, "in_place": null or as follows,
 *                 "out_of_place": {"time": US, "alg_bw": GB/S, "bus_bw": GB/S, "iterations": N,
 *                                  "nwrong": N or null},
 *                 with -I 1 "out_of_place_per_iter", "in_place_per_iter": {"times_us": [US,
 * ...]}}], "out_of_bounds": N, "avg_bus_bw": GB/S} GB/s are 10^9 bytes per second. Nothing of the
 * environment is written. */
#ifndef COLL_REPORT_H
#define COLL_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "tests/coll/job.h"
#include "tests/coll/measure.h"

struct report;

/* `table` is where the table goes. */
struct report *report_open(FILE *table, const struct job *job);

/* Begins the table of another operation. */
void report_operation(struct report *report, enum operation operation);

void report_row(struct report *report, const struct operation_case *measure_case,
                const struct measure_result *out_of_place, const struct measure_result *in_place);

/* Prints the totals and writes the JSON file; frees everything. */
void report_close(struct report *report);

/* For other kinds of reports too: the library, and every rank. */
void report_print_ranks(FILE *table, const struct job *job);

/* A reader of the file sees all of it or nothing. */
void report_write_json(const json_t *all, const char *path);

#endif
