/* SPDX-License-Identifier: Apache-2.0 */
/* remote: runs a tool on many hosts, 64 at once, and keeps the output of each; or on one, to talk
 * with.
 * Owns: nothing between calls, but for a conversation its process.  Threads: the main thread.
 * Blocks: until all have answered; each group of 64 hosts at most for the given time, after which
 * the rest is ended.  Fails: for a host, with a text; remote_talk with negative errno. */
#ifndef COMMON_REMOTE_H
#define COMMON_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/host_list.h"

struct remote_command {
  const char *ssh;              /* words before a host's name, separated by blanks */
  const char *tool;             /* what to run there */
  const char *const *arguments; /* NULL at the end */
  const char *const *variables; /* names of environment variables to pass on */
  uint64_t timeout_ns;
};

enum { REMOTE_OUTPUT_MAX = 65536, REMOTE_ERROR_MAX = 4096, REMOTE_WHY_MAX = 320 };

struct remote_result {
  const struct host *host;
  char why_not[REMOTE_WHY_MAX]; /* empty: it succeeded, and `output` is its output */
  char output[REMOTE_OUTPUT_MAX];
  /* Internal. */
  char errors[REMOTE_ERROR_MAX];
  size_t output_length;
  size_t errors_length;
  int pipes[2]; /* its output and errors; -1 when it has closed them */
  pid_t child;
};

/* `host` of each answer is set. */
void remote_run_all(const struct remote_command *how, struct remote_result *answers, int count);

/* Runs it on one host, to talk with: returns the other end of its standard input and output, which
 * is the caller's, or negative errno. `child` is for remote_hang_up. */
int remote_talk(const struct remote_command *how, const struct host *host, pid_t *child);
/* Ends it with all that it has started here; what runs there ends when its input does. */
void remote_hang_up(pid_t child);

#endif
