/* SPDX-License-Identifier: Apache-2.0 */
/* releases: what each release of NCCL looks for in plugins, and what it does with a tuner.
 * From NVIDIA/nccl at the tags: src/net.cc and src/misc/tuner.cc (to 2.25), src/plugin/net and
 * src/plugin/tuner.cc, plugin_open.cc (from 2.26; src/os/linux.cc in 2.30); size of the cost table
 * from NCCL_NUM_ALGORITHMS in src/include/nccl_common.h or nccl_tuner.h. The commits of releases
 * after 2.30: 8898068 (2.31.2), 12df1a1 (2.32.3), 2449986 (2.32.6). */
#ifndef TESTS_ABI_RELEASES_H
#define TESTS_ABI_RELEASES_H

#include <dlfcn.h>

/* Of the network plugin, and of CollNet, each looks for `net`, then for older ones down to 7; v6
 * and older are not offered by anything of today. */
struct release {
  const char *name;
  int version; /* as ncclGetVersion counts */
  int net;
  const char *tuners; /* versions looked up, in order */
  int algos;          /* rows of a tuner's cost table; 0: the interface has no table */
  int dlopen_flag;
};

/* Releases that do the same are one row, with the version of the last: a plugin sees no difference.
 */
static const struct release releases[] = {
  { "2.19.1-2.19.4", 21904, 7, "1", 0, RTLD_LAZY },
  { "2.20.3-2.20.5", 22005, 8, "1", 0, RTLD_LAZY },
  { "2.21.5", 22105, 8, "2", 0, RTLD_LAZY },
  { "2.22.3", 22203, 8, "32", 6, RTLD_LAZY },
  { "2.23.4", 22304, 8, "32", 7, RTLD_LAZY },
  { "2.24.3-2.25.1", 22501, 9, "432", 7, RTLD_LAZY },
  { "2.26.2-2.27.7", 22707, 10, "432", 7, RTLD_NOW },
  { "2.28.3-2.29.7", 22907, 11, "5432", 7, RTLD_NOW },
  { "2.30.3-2.32.3", 23203, 12, "65432", 7, RTLD_NOW },
  { "2.32.6", 23206, 12, "765432", 7, RTLD_NOW },
};
enum { RELEASES = sizeof releases / sizeof releases[0] };

#endif
