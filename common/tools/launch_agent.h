/* SPDX-License-Identifier: Apache-2.0 */
/* launch_agent: how variables of a job reach ranks that Open MPI or PRRTE starts on other hosts.
 *
 * A rank there has what the daemon of its host has in its environment, and over it what the user
 * passes on (-x, mca_base_env_list, prun). So the command that starts daemons, the launch agent,
 * becomes `env NAME=value... orted`: for all app contexts, whatever the user passes on, in any
 * script that runs mpirun (or prte, whose daemons then serve prun), and without a word in a command
 * line of mpirun. The other ways end jobs:
 * Open MPI 4 takes no -x beside an mca_base_env_list of the environment or of a file
 * (orte/mca/schizo/ompi/schizo_ompi.c, parse_env, at v4.1.4), and one of the environment hides the
 * file's.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.  Fails: false, with a
 * text; what it could set is set. */
#ifndef COMMON_TOOLS_LAUNCH_AGENT_H
#define COMMON_TOOLS_LAUNCH_AGENT_H

#include <stdbool.h>
#include <stddef.h>

enum { LAUNCH_AGENT_WHY_MAX = 512 };

/* Of `names` those that are set, with their values. `directory`: put before what LD_LIBRARY_PATH is
 * on the other host; NULL: it stays. Keeps an agent that the user has set, behind ours. */
bool launch_agent_set(const char *const *names, size_t count, const char *directory,
                      char why_not[LAUNCH_AGENT_WHY_MAX]);

/* The word of a command line that names another agent, which counts more; NULL: none does. */
const char *launch_agent_overruled(char *const *command);

#endif
