/* SPDX-License-Identifier: Apache-2.0 */
/* stats_source: the processes that can be asked how they are doing, and their answers.
 * Owns: the list.  Threads: main.  Blocks: a few seconds on a process that does not answer.
 * Fails: as stated. */
#ifndef NET_PLUGIN_TOOLS_STATS_SOURCE_H
#define NET_PLUGIN_TOOLS_STATS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stats_source {
  pid_t pid;
  char path[320]; /* of its socket */
};

struct stats_sources {
  struct stats_source *list; /* by process number */
  size_t count;
};

/* All of this user, or, for root, of all users. Sockets of dead processes are removed. 0 or
 * -ENOMEM. */
int stats_sources_find(bool has_other_users, struct stats_sources *sources);
void stats_sources_free(struct stats_sources *sources);

/* What the process says to this question ("json", "prometheus"); *answer ends with 0 and is the
 * caller's. 0 or negative errno. */
int stats_source_ask(const struct stats_source *source, const char *question, char **answer);

#endif
