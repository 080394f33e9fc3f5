/* SPDX-License-Identifier: Apache-2.0 */
/* name_distance: how much two names differ, to tell which one a user meant.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot.
 *
 * Of each name the first NAME_DISTANCE_MAX bytes count, so that a long one costs no more. */
#ifndef COMMON_NAME_DISTANCE_H
#define COMMON_NAME_DISTANCE_H

#include <stddef.h>

enum { NAME_DISTANCE_MAX = 64 }; /* bytes: twice the longest name that we have */

/* Letters to insert, to leave out, to replace, or neighbours to exchange; each counts one. */
int name_distance(const char *name, size_t length, const char *other);

/* The same between `word` and the part of `name` that is most like it; case does not count. */
int name_distance_within(const char *name, size_t length, const char *word);

#endif
