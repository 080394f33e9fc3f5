/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file: finds and opens a net plugin by the name that NCCL_NET_PLUGIN would have.
 * Owns: nothing; the caller closes what it gets, or keeps it.  Threads: the main thread.
 * Blocks: while the loader works.  Fails: NULL, with dlerror() for the last name tried. */
#ifndef NET_PLUGIN_TOOLS_PLUGIN_FILE_H
#define NET_PLUGIN_TOOLS_PLUGIN_FILE_H

enum { PLUGIN_FILE_MAX = 4096 };

/* As NCCL does: a path, a library's name, or what comes after libnccl-net- (net.cc of NCCL).
 * `tried`: the last name that was tried. */
void *plugin_file_open(const char *name, char tried[PLUGIN_FILE_MAX]);

/* Where the loader found it. */
const char *plugin_file_path(void *library);

#endif
