/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: starts the ranks of --hosts, all on this machine, and ensures that all end.
 * Owns: the ranks' processes and the socket by which they meet.
 * Threads: one.  Blocks: until all ranks have ended.
 * Fails: never leaves a rank behind: when one fails, or on SIGINT, SIGTERM or --timeout, the others
 * get a moment to end by themselves, then SIGTERM, then SIGKILL; ranks end, too, when this process
 * does. */
#ifndef COLL_RANKS_H
#define COLL_RANKS_H

#include "tests/coll/options.h"

/* Returns the exit status of the program. The ranks are given this process's own arguments and
 * environment, with torchrun's variables and those of world.h. */
int ranks_run(const struct options *options, char **argv);

#endif
