/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file: opens a plugin by its name in NCCL_NET_PLUGIN or NCCL_TUNER_PLUGIN.
 * Owns: nothing; the library is the caller's.  Threads: the main thread.
 * Blocks: as dlopen does.  Fails: NULL, with dlerror() for the last name tried. */
#ifndef NET_PLUGIN_TOOLS_PLUGIN_FILE_H
#define NET_PLUGIN_TOOLS_PLUGIN_FILE_H

#include "common/plugin_name.h"

enum { PLUGIN_FILE_MAX = 4096 };

/* As this release of NCCL does (plugin_name.h). `tried`: the last name tried. */
void *plugin_file_open(enum plugin_kind kind, const char *name, int release,
                       char tried[PLUGIN_FILE_MAX]);

/* The path from which it was loaded. */
const char *plugin_file_path(void *library);

/* Its newest interface table, which begins with the name that the plugin has for NCCL; NULL: it is
 * no plugin of this kind. */
const void *plugin_file_table(enum plugin_kind kind, void *library, int *version);

#endif
