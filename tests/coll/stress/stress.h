/* SPDX-License-Identifier: Apache-2.0 */
/* stress: what coll-stress takes besides the options of coll.
 * Owns: nothing.  Threads: any, as it is constant once main has read it.
 * Blocks: never.  Fails: cannot. */
#ifndef TESTS_COLL_STRESS_STRESS_H
#define TESTS_COLL_STRESS_STRESS_H

#include <stdint.h>

struct stress {
  uint64_t soak_ns;     /* --soak */
  int abort_rounds;     /* --abort */
  int unmade_rounds;    /* --unmade */
  const char *command;  /* --command; NULL: none */
  uint64_t patience_ns; /* --patience */
  int seed;             /* --seed */
  const char *log_path; /* --log; NULL: none */
};
extern struct stress stress;

#endif
