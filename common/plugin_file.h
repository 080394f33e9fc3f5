/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file: opens a plugin by its name in NCCL_NET_PLUGIN or NCCL_TUNER_PLUGIN, and knows where
 * our two are, seen from this program.
 * Owns: nothing; libraries are the caller's, or stay loaded.  Threads: the main thread.
 * Blocks: on the file system, and as dlopen does.  Fails: NULL, with dlerror() for the last name
 * tried; false, with a text. */
#ifndef COMMON_PLUGIN_FILE_H
#define COMMON_PLUGIN_FILE_H

#include "common/plugin_name.h"

enum { PLUGIN_FILE_MAX = PATH_MAX + 128 };

/* As this release of NCCL does (plugin_name.h). `tried`: the last name tried. */
void *plugin_file_open(enum plugin_kind kind, const char *name, int release,
                       char tried[PLUGIN_FILE_MAX]);

/* The path from which it was loaded. */
const char *plugin_file_path(void *library);

/* Its newest interface table, of the versions that ours export (version.h), which begins with the
 * name that the plugin has for NCCL; NULL: it is no plugin of this kind. */
const void *plugin_file_table(enum plugin_kind kind, void *library, int *version);

/* ---- ours ---- */

enum { PLUGIN_WHY_MAX = PATH_MAX + 512 };

/* An absolute path without symbolic links of a directory that has both. It goes into
 * LD_LIBRARY_PATH, so one with nothing else in it is taken where there is one: PREFIX/lib/stratus.
 */
bool plugin_file_find_ours(char directory[PATH_MAX], char why_not[PLUGIN_WHY_MAX]);

/* Loads both, as NCCL will. They stay loaded. */
bool plugin_file_load_ours(const char *directory, char why_not[PLUGIN_WHY_MAX]);

/* True if NCCL finds these plugins by name without LD_LIBRARY_PATH; nothing may have been loaded
 * before. */
bool plugin_file_is_known_to_loader(const char *directory);

#endif
