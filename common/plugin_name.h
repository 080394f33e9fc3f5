/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_name: to which files a value of NCCL_NET_PLUGIN or NCCL_TUNER_PLUGIN leads, in a release
 * of NCCL. Each release reads them in its own way (src/net.cc, src/misc/tuner.cc, from 2.26.2 on
 * src/plugin/plugin_open.cc and src/plugin/net.cc):
 *
 *   net      to 2.20.5      libnccl-net-VALUE.so
 *   tuner    to 2.20.5      VALUE
 *   both     2.21.5 on      VALUE, then libnccl-net-VALUE.so or libnccl-tuner-VALUE.so
 *            2.27.3         VALUE if it is lib*.so, and else the other alone
 *            2.27.5 on      VALUE; the other, unless VALUE has a '/' or is lib*.so
 *   net      2.27.3 on      VALUE is a list with commas, each name as above
 *
 * An unknown release, 0, is taken for a new one.
 *
 * Owns: nothing.  Threads: any.  Blocks: on the file system, where it says so.  Fails: cannot. */
#ifndef COMMON_PLUGIN_NAME_H
#define COMMON_PLUGIN_NAME_H

#include <limits.h>
#include <stdbool.h>

#define PLUGIN_NET "libnccl-net-stratus.so"
#define PLUGIN_TUNER "libnccl-tuner-stratus.so"

enum plugin_kind { PLUGIN_KIND_NET, PLUGIN_KIND_TUNER };
enum { PLUGIN_FILES_MAX = 2 };

struct plugin_files {
  int count;
  char names[PLUGIN_FILES_MAX][PATH_MAX]; /* for dlopen, in this order */
};

/* For one name, not a list. */
void plugin_name_files(enum plugin_kind kind, const char *name, int release,
                       struct plugin_files *files);

/* Whether the value leads to stratus; of a list, one of its names. */
bool plugin_name_is_stratus(enum plugin_kind kind, const char *value, int release);

/* Why a value that is meant for stratus does not lead there, and what would; false: it is another
 * name, or leads there. Looks whether the file of a path is there. */
enum { PLUGIN_NAME_TEXT_MAX = 256 };
bool plugin_name_why_not(enum plugin_kind kind, const char *value, int release,
                         char text[PLUGIN_NAME_TEXT_MAX]);

#endif
