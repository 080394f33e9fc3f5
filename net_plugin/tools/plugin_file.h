/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file: opens a net plugin by its name in NCCL_NET_PLUGIN.
 * Owns: nothing; the library is the caller's.  Threads: the main thread.
 * Blocks: as dlopen does.  Fails: NULL, with dlerror() for the last name tried. */
#ifndef NET_PLUGIN_TOOLS_PLUGIN_FILE_H
#define NET_PLUGIN_TOOLS_PLUGIN_FILE_H

enum { PLUGIN_FILE_MAX = 4096 };

/* As NCCL does: a path, the name of a library, or its part after libnccl-net- (net.cc of NCCL).
 * `tried`: the last name tried. */
void *plugin_file_open(const char *name, char tried[PLUGIN_FILE_MAX]);

/* The path from which it was loaded. */
const char *plugin_file_path(void *library);

#endif
