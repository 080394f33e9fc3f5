/* SPDX-License-Identifier: Apache-2.0 */
/* checked_job: runs a command, and finds out whether all of its hosts use stratus.
 * Owns: the command's process.  Threads: the main thread, the only one.
 * Blocks: until the command has ended.  Fails: as an exit status. */
#ifndef COMMON_TOOLS_CHECKED_JOB_H
#define COMMON_TOOLS_CHECKED_JOB_H

#include <stdbool.h>

enum {
  CHECKED_FAILED = 3,   /* a host does not use stratus */
  CHECKED_NOT_USED = 4, /* the command succeeded, but NCCL was not used */
};

/* `pass_on` makes the words that run the command, once the job's variables are set. `goes_on`: a
 * job that failed the check is not ended. Returns the exit status: 3 if the check failed, else that
 * of the command, or 128 and its signal. */
int checked_job_run(char **command, char **(*pass_on)(char **command), bool goes_on);

#endif
