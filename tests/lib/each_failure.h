/* SPDX-License-Identifier: Apache-2.0 */
/* each_failure: runs an entry point again and again, and in each run one call fails: the first of
 * its kind, the second, and so on, until a run comes to its end without a failure; of many of a
 * kind some are left to the night (unit_has_time).
 *
 * No run may end in a crash, hang, or leave anything behind: descriptors, threads and mappings are
 * counted, and in the address build LeakSanitizer is asked. A run that returns an error has to have
 * warned of it. The first run has no failure; what it leaves for the life of the process is not
 * counted.
 * Owns: the faults and the captured log meanwhile.  Threads: the test's.  Blocks: as the entry
 * point. Fails: the test, with entry point, kind, k and what was logged. */
#ifndef TESTS_LIB_EACH_FAILURE_H
#define TESTS_LIB_EACH_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/lib/fault.h"

struct outcome {
  int error;           /* what the entry point returned first; 0: it succeeded */
  const char *stage;   /* where that was, or the end; NULL: not said */
  const char *problem; /* what may never be, as in "hung" or "wrong data"; NULL: all right */
  bool is_told;        /* of the error, elsewhere than in the log */
};

struct entry_point {
  const char *name;
  void (*run)(struct outcome *outcome); /* cleans up as its user would */
  bool must_succeed;                    /* in spite of the failure */
  bool arms_itself;                     /* the calls are counted from run's each_failure_arm() on */
  bool is_slow;                         /* of each kind only some k: 1, 2, 4, 8, ... */
};

struct failure {
  enum fault_call call;
  int error;
};

/* One of each kind that the first run calls. Returns, and prints, how many calls failed. */
unsigned long each_failure_of_all(const struct entry_point *entry);
/* Only these. */
unsigned long each_failure(const struct entry_point *entry, const struct failure *failures,
                           size_t count);
#define EACH_FAILURE(entry, failures)                                                              \
  each_failure(entry, failures, sizeof(failures) / sizeof((failures)[0]))
void each_failure_arm(void);
/* What each_failure_arm arms, for a process of its own; *k 0: nothing. */
struct failure each_failure_pending(unsigned long *k);

#endif
