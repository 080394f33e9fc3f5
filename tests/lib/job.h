/* SPDX-License-Identifier: Apache-2.0 */
/* job: a small job from init to finalize over loopback, both ends in this process, driven as NCCL
 * drives a plugin. Whatever fails on the way is reported, and all of it is cleaned up.
 * Owns: nothing after job_run.  Threads: one job at a time.
 * Blocks: until the job is over, at most JOB_PATIENCE_NS and what finalize takes.
 * Fails: as told in the result. */
#ifndef TESTS_LIB_JOB_H
#define TESTS_LIB_JOB_H

#include <stdbool.h>

#define JOB_PATIENCE_NS (50ull * 1000000000) /* less than the plugin's own time limits */

struct job_result {
  int error;         /* the first negative errno that a call returned; 0: all went well */
  const char *stage; /* what was being done when it came, or at last */
  bool is_hung;      /* nothing more happened */
  bool is_wrong;     /* a message differs from what was sent */
};

struct job_options {
  void (*connected)(void); /* called when the connection stands; NULL: nothing */
  bool cuts_flows;         /* in the middle, all but one of the flows are cut; later all of them */
};

/* What the parameters must be for a job to be quick; STRATUS_PROGRESS as given. */
void job_set_parameters(const char *progress);
void job_run(const struct job_options *options, struct job_result *result);

/* Open descriptors of this process. */
unsigned job_descriptors(void);

#endif
