/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_words: the command line with which a launcher passes variables on to other hosts.
 *
 * srun and MPICH's mpirun pass on the whole environment, torchrun runs on this host. Open MPI's
 * mpirun passes on what -x names, stratus-coll --hosts what --env gives.
 *
 * Owns: nothing.  Threads: the main thread.
 * Blocks: while `mpirun --version` runs, to tell Open MPI from others.  Fails: without memory, with
 * a message, and the command stays as it is, as does one that is not known. */
#ifndef COMMON_TOOLS_LAUNCHER_WORDS_H
#define COMMON_TOOLS_LAUNCHER_WORDS_H

/* The words of `command`, with options that pass on those of `variables` (names, which stay the
 * caller's; NULL at the end of both) that are set in this process. One that the command line passes
 * on by itself stays as it is. The result is the process's until it ends. */
char **launcher_words(char **command, const char *const *variables);

#endif
