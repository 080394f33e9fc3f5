/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_job: a job as the tuner sees it: 32 ranks on 4 nodes, a directory with its profiles that is
 * the machine's root, too, and NCCL's table of costs.
 * Owns: the directory and the captured log, from set_up to tear_down.  Threads: the test's; call
 * any.  Blocks: as the tuner does.  Fails: the test. */
#ifndef TESTS_LIB_TUNER_JOB_H
#define TESTS_LIB_TUNER_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/lib/tree.h"
#include "tuner_plugin/plugin/tuner.h"

extern struct tree tuner_job_tree;
extern const struct tuner_host tuner_job_host;
extern const struct tuner_shape tuner_job_shape;

int tuner_job_set_up(void **state);
int tuner_job_tear_down(void **state);
#define TUNER_JOB_TEST(test) UNIT_TEST_WITH(test, tuner_job_set_up, tuner_job_tear_down)

/* Parameters as the plugin would read them: the profile, a file below the tree or none if empty,
 * and one more, as in "STRATUS_TUNER=0", or none if empty. */
void tuner_job_set(const char *profile_file, const char *other);

struct tuner *tuner_job_open(void);
struct tuner *tuner_job_open_as(struct tuner_host host, struct tuner_shape shape);

/* One call of a collective for which NCCL prefers tree to ring; was ring chosen? */
bool tuner_job_call(struct tuner *tuner, int coll, size_t bytes, int *channels);

#endif
