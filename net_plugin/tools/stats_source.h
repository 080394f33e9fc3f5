/* SPDX-License-Identifier: Apache-2.0 */
/* stats_source: finds processes with statistics and reads their documents.
 *
 * Directories and sockets of other users are theirs to fill: only sockets of a directory's owner
 * are connected to, in a directory that is closed to all others, and what they answer is bounded in
 * time and size.
 * Owns: the list.  Threads: main.  Blocks: up to STATS_ANSWERS_NS for those that do not answer.
 * Fails: as stated. */
#ifndef NET_PLUGIN_TOOLS_STATS_SOURCE_H
#define NET_PLUGIN_TOOLS_STATS_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stats_source {
  pid_t pid;
  char directory[256]; /* of its socket */
  char path[320];
  json_t *document; /* NULL: none */
  int error;        /* negative errno, why there is none; what is not JSON: -EBADMSG */
  int fd;           /* while it is asked */
};

struct stats_sources {
  struct stats_source *list; /* by pid */
  size_t count;
};

/* All of this user, or, for root, of all users; of them the one that is wanted, or, for 0, all are
 * asked. Sockets of this user's dead processes are removed. 0 or -ENOMEM. */
int stats_sources_read(bool has_other_users, pid_t wanted, struct stats_sources *sources);
void stats_sources_free(struct stats_sources *sources);

#endif
