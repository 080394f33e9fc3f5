/* SPDX-License-Identifier: Apache-2.0 */
/* job: a small job from init to finalize over loopback, both ends in this process, driven as NCCL
 * drives a plugin, through the newest table. Whatever fails on the way is reported, and all of it
 * is cleaned up. Owns: nothing after job_run.  Threads: one job at a time. Blocks: until the job is
 * over, at most JOB_PATIENCE_NS and what finalize takes. Fails: as told in the outcome; its error
 * is an ncclResult_t. */
#ifndef TESTS_LIB_JOB_H
#define TESTS_LIB_JOB_H

#include <stdbool.h>

#include "net_plugin/abi/net_abi.h"
#include "tests/lib/each_failure.h"

#define JOB_PATIENCE_NS (50ull * 1000000000) /* less than the plugin's own time limits */

/* What NCCL hands to plugins that log; the messages go to log_capture. */
void job_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

struct job_options {
  void (*connected)(void); /* called when the connection stands; NULL: nothing */
  bool cuts_flows;         /* in the middle, all but one of the flows are cut; later all of them */
};

/* What the parameters must be for a job to be quick, and before them these two, as in
 * "STRATUS_FLOWS=2", or NULL. */
void job_set_parameters(const char *one, const char *other);
void job_run(const struct job_options *options, struct outcome *outcome);

#endif
