/* SPDX-License-Identifier: Apache-2.0 */
/* plain_run: what flows of plain TCP carry: bytes that repeat after a period which is no power of
 * two, so that a piece in the wrong place shows.
 * Owns: nothing.  Threads: the main thread.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_PERF_PLAIN_RUN_H
#define NET_PLUGIN_TOOLS_PERF_PLAIN_RUN_H

#include <stddef.h>
#include <stdint.h>

enum { PLAIN_PERIOD_BYTES = 65521 };

void plain_run_fill(uint8_t *contents, size_t bytes);

#endif
