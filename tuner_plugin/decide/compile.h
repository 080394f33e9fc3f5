/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the rows of a profile that match one shape of communicator, as a flat table for fast
 * search.
 * Owns: nothing; fills the caller's memory.  Threads: any.  Blocks: never.
 * Fails: cannot; a shape without a table in the profile gets an empty one. */
#ifndef TUNER_PLUGIN_DECIDE_COMPILE_H
#define TUNER_PLUGIN_DECIDE_COMPILE_H

#include <stddef.h>

#include "common/profile.h"
#include "tuner_plugin/decide/decide.h"

/* Memory that compile_table will need for `ranks` ranks spread evenly over `nodes` nodes. The rows
 * are those of the profile's table for that shape, without measured ones that gain too little. 0 if
 * there are no rows: for one node, as profiles are measured over the network, and if the nodes have
 * different numbers of ranks, as that was never measured. */
size_t compile_bytes(const struct profile *profile, size_t ranks, size_t nodes);

/* Fills `memory`, of that many bytes and aligned as malloc does, and makes `table` of it. */
void compile_table(const struct profile *profile, size_t ranks, size_t nodes, void *memory,
                   struct decide_table *table);

#endif
