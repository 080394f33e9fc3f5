/* SPDX-License-Identifier: Apache-2.0 */
/* run: the whole program. With --hosts this process starts the ranks; otherwise it is one of them.
 * Owns: the process.  Threads: the main thread.  Blocks: until the run is over.
 * Fails: returns an exit status (message.h), or ends the process with a message. */
#ifndef COLL_RUN_H
#define COLL_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/coll/job.h"

/* What ranks do instead of measuring; tests/coll/stress has some. */
struct run_mode {
  void (*prepare)(void); /* before any library is loaded; may be NULL */
  /* True: all is right. `table`, for results, is NULL but at process 0. */
  bool (*run)(struct job *job, FILE *table);
};

/* `given` are the options, as options.h takes them; ranks are started with `argv`. NULL `mode`:
 * the table, or --replay. */
int run_program(int argc, char **given, char **argv, const struct run_mode *mode);

#endif
