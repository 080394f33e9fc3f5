/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: the argument of --hosts, and the command that runs a rank on one of them.
 * Owns: copies of the names.  Threads: one.
 * Blocks: while a file is read.  Fails: with a message that names the entry.
 *
 * An entry of the list (separated by commas) or file (one per line, # begins a remark):
 *   ns:NAME     network namespace NAME (ip netns exec)
 *   local       this machine, as a host of its own; local:N counts for N of them
 *   ssh:HOST    ssh HOST
 *   NAME        the namespace, if there is one of that name, else ssh NAME
 *   COMMAND...  a command that runs its arguments on a host, of several words or with its path:
 *               "docker exec c1", "srun -w n1", "./on-a" */
#ifndef COLL_HOSTS_H
#define COLL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

enum { HOSTS_MAX = 256, HOSTS_WORDS_MAX = 32 };

enum host_kind { HOST_LOCAL, HOST_NAMESPACE, HOST_SSH, HOST_COMMAND };

struct host {
  enum host_kind kind;
  char name[128]; /* in messages */
  char text[256]; /* namespace, ssh host, or the command's words, each ended by a null character */
  int words;
};

struct hosts {
  struct host *hosts;
  int count;
};

/* `argument` is a file if one of that name exists. */
int hosts_parse(struct hosts *hosts, const char *argument, char *error, size_t error_size);
void hosts_free(struct hosts *hosts);

/* True if every host runs on this machine and sees its files. */
bool hosts_is_one_machine(const struct hosts *hosts);

/* Puts the words that go before a command to run on the host into `argv`, and returns how many:
 * at most HOSTS_WORDS_MAX. */
int hosts_prefix(struct host *host, char **argv);

/* A word as the host's shell must be given it; allocated. Only ssh has a shell in between. */
char *hosts_quote(const struct host *host, const char *word);

#endif
