/* SPDX-License-Identifier: Apache-2.0 */
/* verify: fills buffers with a pattern and compares results with what they must be. Host memory.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_VERIFY_H
#define COLL_VERIFY_H

#include <stddef.h>

#include "tuner_plugin/tools/coll/pattern.h"

/* Stands for "the reduction over all ranks" where a source rank is asked for. */
enum { VERIFY_REDUCED = -1 };

/* `count` elements of what `rank` sends, from `place` on. */
void verify_fill(const struct pattern *pattern, int rank, uint64_t place, void *to, size_t count);

/* Number of elements that differ from what `source` sent at `place` and after, or from the
 * reduction. `first_wrong`, if not NULL, receives the index of the first. */
uint64_t verify_compare(const struct pattern *pattern, int source, uint64_t place, const void *data,
                        size_t count, size_t *first_wrong);

/* Guards are bytes around a buffer that nothing may write. */
enum { VERIFY_GUARD_BYTES = 4096 };
void verify_fill_guard(unsigned char guard[VERIFY_GUARD_BYTES]);
uint64_t verify_compare_guard(const unsigned char guard[VERIFY_GUARD_BYTES]); /* bytes changed */

#endif
