/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of abort.h, as a table. */
#include <errno.h>
#include <string.h>

#include "tests/coll/stress/abort.h"
#include "tests/coll/stress/stress.h"
#include "tests/coll/message.h"
#include "tests/coll/report.h"

static void print_head(FILE *table, const struct job *job) {
  report_print_library(table);
  report_print_ranks(table, job);
  fprintf(table, "#%6s %12s %5s %14s %11s %8s %9s %9s %7s %7s %6s %8s %5s %7s %9s\n", "round",
          "pattern", "first", "operation", "bytes", "launches", "wait(ms)", "abort(ms)", "moved%",
          "noticed", "#wrong", "#touched", "fds", "threads", "RSS(MiB)");
}

static void print_round(FILE *table, const struct abort_round *r) {
  fprintf(table, "%7d %12s %5d %14s %11zu %8d %9.1f %9.1f %7.1f %7d %6llu %8llu %5d %7d %9.1f\n",
          r->number, abort_pattern_names[r->pattern], r->first, operation_infos[r->operation].name,
          r->bytes, r->launches, r->wait_ms, r->abort_ms, r->moved_percent, r->noticed,
          (unsigned long long)(r->wrong + r->out_of_bounds), (unsigned long long)r->touched,
          r->most.descriptors, r->most.threads, r->most.memory_mib);
  fflush(table);
}

static void print_sum(FILE *table, const struct abort_result *r) {
  fprintf(table,
          "# %d aborts, %d with a part of the result written: %.1f ms at most, %d too slow\n",
          r->rounds, r->middle, r->max_abort_ms, r->slow);
  fprintf(table, "# %llu wrong, %llu bytes written that were freed, %d errors not noticed\n",
          (unsigned long long)(r->wrong + r->out_of_bounds), (unsigned long long)r->touched,
          r->unnoticed);
  fprintf(table, "# since round %d: %+d descriptors, %+d threads, %+.1f MiB: %s\n",
          r->baseline_round, r->growth.descriptors, r->growth.threads, r->growth.memory_mib,
          r->is_good ? "OK" : "FAILED");
  if (fflush(table))
    message_fail("standard output: %s", strerror(errno));
}

bool abort_run(struct job *job, FILE *table) {
  struct abort_test *test = abort_open(job);
  struct abort_result result;
  if (table)
    print_head(table, job);
  for (int i = 0; i < stress.abort_rounds; i++) {
    struct abort_round round;
    abort_run_round(test, &round);
    if (table)
      print_round(table, &round);
  }
  abort_close(test, &result);
  if (table)
    print_sum(table, &result);
  return result.is_good;
}
