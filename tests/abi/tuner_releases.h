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

static const struct tuner_release tuner_releases[] = {
  { "2.19.1", 21901, "1", 0, RTLD_LAZY },    { "2.19.3", 21903, "1", 0, RTLD_LAZY },
  { "2.19.4", 21904, "1", 0, RTLD_LAZY },    { "2.20.3", 22003, "1", 0, RTLD_LAZY },
  { "2.20.5", 22005, "1", 0, RTLD_LAZY },    { "2.21.5", 22105, "2", 0, RTLD_LAZY },
  { "2.22.3", 22203, "32", 6, RTLD_LAZY },   { "2.23.4", 22304, "32", 7, RTLD_LAZY },
  { "2.24.3", 22403, "432", 7, RTLD_LAZY },  { "2.25.1", 22501, "432", 7, RTLD_LAZY },
  { "2.26.2", 22602, "432", 7, RTLD_NOW },   { "2.26.3", 22603, "432", 7, RTLD_NOW },
  { "2.26.5", 22605, "432", 7, RTLD_NOW },   { "2.26.6", 22606, "432", 7, RTLD_NOW },
  { "2.27.3", 22703, "432", 7, RTLD_NOW },   { "2.27.5", 22705, "432", 7, RTLD_NOW },
  { "2.27.6", 22706, "432", 7, RTLD_NOW },   { "2.27.7", 22707, "432", 7, RTLD_NOW },
  { "2.28.3", 22803, "5432", 7, RTLD_NOW },  { "2.28.7", 22807, "5432", 7, RTLD_NOW },
  { "2.28.9", 22809, "5432", 7, RTLD_NOW },  { "2.29.2", 22902, "5432", 7, RTLD_NOW },
  { "2.29.3", 22903, "5432", 7, RTLD_NOW },  { "2.29.7", 22907, "5432", 7, RTLD_NOW },
  { "2.30.3", 23003, "65432", 7, RTLD_NOW }, { "2.30.4", 23004, "65432", 7, RTLD_NOW },
  { "2.30.7", 23007, "65432", 7, RTLD_NOW }, { "2.31.2", 23102, "65432", 7, RTLD_NOW },
  { "2.32.3", 23203, "65432", 7, RTLD_NOW }, { "2.32.6", 23206, "765432", 7, RTLD_NOW },
};
enum { TUNER_RELEASE_COUNT = sizeof tuner_releases / sizeof tuner_releases[0] };

#endif
