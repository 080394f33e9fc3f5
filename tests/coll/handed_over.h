/* SPDX-License-Identifier: Apache-2.0 */
/* handed_over: variables that --hosts hands to a rank and that no command line may show: the run's
 * token and those of `--env NAME`. Each is NAME=VALUE, ended by a null character.
 * Owns: nothing.  Threads: one.  Blocks: handed_over_take, until the launcher has closed its end.
 * Fails: ends the process with a message; handed_over_add returns false. */
#ifndef COLL_HANDED_OVER_H
#define COLL_HANDED_OVER_H

#include <stdbool.h>
#include <stddef.h>

#define HANDED_OVER_TOKEN "COLL_TOKEN"
/* Set for ranks that read them from standard input; the others inherit them. */
#define HANDED_OVER_STDIN "COLL_STDIN"

/* Half of what a pipe takes (64 KiB, pipe(7)), so that writing does not block. */
enum { HANDED_OVER_MAX = 32768 };

struct handed_over {
  char text[HANDED_OVER_MAX];
  size_t length;
};

/* False if it does not fit; nothing without a value. */
bool handed_over_add(struct handed_over *all, const char *name, const char *value);
/* A descriptor to read all of them from, or -1 with errno. */
int handed_over_pipe(const struct handed_over *all);

/* In a rank, if HANDED_OVER_STDIN is set: puts what comes into the environment, and /dev/null in
 * the place of standard input. Names other than STRATUS_* and NCCL_* are ignored. */
void handed_over_take(void);

#endif
