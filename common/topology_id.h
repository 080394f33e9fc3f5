/* SPDX-License-Identifier: Apache-2.0 */
/* topology_id: the fingerprint of a topology, apart from what reads one, for pure code.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_TOPOLOGY_ID_H
#define COMMON_TOPOLOGY_ID_H

#include <stdbool.h>
#include <stddef.h>

enum { TOPOLOGY_ID_DIGITS = 12, TOPOLOGY_ID_MAX = TOPOLOGY_ID_DIGITS + 1 };

/* Whether that many characters are one: digits 0-9 and a-f. */
bool topology_is_id(const char *text, size_t length);

#endif
