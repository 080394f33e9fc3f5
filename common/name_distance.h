/* SPDX-License-Identifier: Apache-2.0 */
/* name_distance: edit distance of names, to suggest corrections.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot.
 *
 * Only the first NAME_DISTANCE_MAX bytes of each name count. */
#ifndef COMMON_NAME_DISTANCE_H
#define COMMON_NAME_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_DISTANCE_MAX = 64 }; /* bytes: twice the longest name that we have */

/* Damerau-Levenshtein distance: insertions, deletions, replacements and exchanged neighbours.
 * is_part: of the most similar part of `name`, ignoring case. */
int name_distance(const char *name, size_t length, const char *other, bool is_part);

#endif
