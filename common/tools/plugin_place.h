/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_place: where the two plugins are, seen from this program.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: on the file system; plugin_place_load as dlopen does.  Fails: false, with a text. */
#ifndef COMMON_TOOLS_PLUGIN_PLACE_H
#define COMMON_TOOLS_PLUGIN_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "common/plugin_name.h"

enum { PLUGIN_WHY_MAX = PATH_MAX + 512 };

/* An absolute path without symbolic links of a directory that has both. It goes into
 * LD_LIBRARY_PATH, so one with nothing else in it is taken where there is one: PREFIX/lib/stratus.
 */
bool plugin_place_find(char directory[PATH_MAX], char why_not[PLUGIN_WHY_MAX]);

/* Loads both, as NCCL will. They stay loaded. */
bool plugin_place_load(const char *directory, char why_not[PLUGIN_WHY_MAX]);

/* True if NCCL finds these plugins by name without LD_LIBRARY_PATH; nothing may have been loaded
 * before. */
bool plugin_place_is_known_to_loader(const char *directory);

#endif
