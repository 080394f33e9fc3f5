/* SPDX-License-Identifier: Apache-2.0 */
/* fork_tuner: forks while threads of this process open and close tuners, which takes the tuner
 * plugin's locks; the children call everything, and must neither hang nor get a choice.
 * Owns: nothing.  Threads: its own.  Blocks: for a second or so.  Fails: ends the process. */
#ifndef TESTS_ABI_FORK_TUNER_H
#define TESTS_ABI_FORK_TUNER_H

/* net_version: the interface of the network plugin, which tells the release: 7 or 12. */
void fork_tuner(int net_version);

#endif
