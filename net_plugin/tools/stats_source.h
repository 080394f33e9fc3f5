/* SPDX-License-Identifier: Apache-2.0 */
/* stats_source: finds processes with statistics and requests them.
 * Owns: the list.  Threads: main.  Blocks: up to 6 s for a process that does not answer.
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
  struct stats_source *list; /* by pid */
  size_t count;
};

/* All of this user, or, for root, of all users. Sockets of dead processes are removed. 0 or
 * -ENOMEM. */
int stats_sources_find(bool has_other_users, struct stats_sources *sources);
void stats_sources_free(struct stats_sources *sources);

/* Requests "json" or "prometheus". *answer is NUL-terminated and the caller's. 0 or negative errno.
 */
int stats_source_ask(const struct stats_source *source, const char *question, char **answer);

#endif
