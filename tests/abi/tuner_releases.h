/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_releases: what each release of NCCL does with a tuner plugin; every tag from 2.19 to 2.32.
 * Facts from NVIDIA/nccl at the tag: symbols and dlopen flag in src/misc/tuner.cc (to 2.25) or
 * src/plugin/tuner.cc and plugin_open.cc (src/os/linux.cc in 2.30); size of the cost table from
 * NCCL_NUM_ALGORITHMS in src/include/nccl_common.h or nccl_tuner.h. The commits of releases after
 * 2.30: 8898068 (2.31.2), 12df1a1 (2.32.3), 2449986 (2.32.6). */
#ifndef TESTS_ABI_TUNER_RELEASES_H
#define TESTS_ABI_TUNER_RELEASES_H

#include <dlfcn.h>

struct tuner_release {
  const char *name;
  int version;         /* as ncclGetVersion counts */
  const char *symbols; /* versions looked up, in order */
  int algos;           /* rows of the cost table; 0: the interface has no table */
  int dlopen_flag;
};

/* Releases that do the same are one row, with the version of the last: a plugin sees no difference.
 */
static const struct tuner_release tuner_releases[] = {
  { "2.19.1-2.20.5", 22005, "1", 0, RTLD_LAZY },   { "2.21.5", 22105, "2", 0, RTLD_LAZY },
  { "2.22.3", 22203, "32", 6, RTLD_LAZY },         { "2.23.4", 22304, "32", 7, RTLD_LAZY },
  { "2.24.3-2.25.1", 22501, "432", 7, RTLD_LAZY }, { "2.26.2-2.27.7", 22707, "432", 7, RTLD_NOW },
  { "2.28.3-2.29.7", 22907, "5432", 7, RTLD_NOW }, { "2.30.3-2.32.3", 23203, "65432", 7, RTLD_NOW },
  { "2.32.6", 23206, "765432", 7, RTLD_NOW },
};

#endif
