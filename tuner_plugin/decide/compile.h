/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the rows of a profile that hold for one shape of communicator, flat and ready to search.
 * Owns: nothing; fills the caller's memory.  Threads: any.  Blocks: never.
 * Fails: cannot; a shape that the profile says nothing about gets an empty table. */
#ifndef TUNER_PLUGIN_DECIDE_COMPILE_H
#define TUNER_PLUGIN_DECIDE_COMPILE_H

#include <stddef.h>

#include "common/profile.h"
#include "tuner_plugin/decide/decide.h"

/* Memory that compile_table will need for `ranks` ranks spread evenly over `nodes` nodes: for the
 * rows of the profile's table for that shape, where it has one, but for measured ones that gain too
 * little; else for what transfer.h makes of its tables for other numbers of nodes. 0 if there are
 * no rows: for one node, where profiles measured over the network say nothing, and for uneven
 * spreads, which none was measured with. */
size_t compile_bytes(const struct profile *profile, size_t ranks, size_t nodes);

/* Fills `memory`, so many bytes as malloc aligns them, and makes `table` of it. */
void compile_table(const struct profile *profile, size_t ranks, size_t nodes, void *memory,
                   struct decide_table *table);

#endif
