/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_perf: plays all_reduce_perf of nccl-tests in a job with one release of NCCL, as far as a
 * tuner plugin and stratus can see it, on an invented network. */
#ifndef TESTS_ABI_TUNER_PERF_H
#define TESTS_ABI_TUNER_PERF_H

#include "tests/abi/tuner_releases.h"

/* `arguments` are nccl-tests' own: -b -e -f -n -w -c -I -J, each with a value. */
int tuner_perf_run(const struct tuner_release *release, const char *path, int argument_count,
                   char **arguments);

#endif
