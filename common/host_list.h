/* SPDX-License-Identifier: Apache-2.0 */
/* host_list: the hosts that a user names, as every tool takes them: a list separated by commas, or
 * a file with a line for each host, as other launchers have it.
 *
 *   NAME            a host for ssh, or the network namespace of that name, if there is one
 *   ssh:NAME        a host for ssh
 *   ns:NAME         a network namespace of this machine (ip netns exec)
 *   local, local:N  this machine, as one host, or as N
 *   cmd:WORDS...    a command that runs its arguments on a host: cmd:docker exec -i c1
 *   PATH WORDS...   the same; what has a "/" in its first word is no name
 *
 * A NAME may be USER@NAME, an IPv6 address, bare or in brackets, or Slurm's form of many names,
 * node[01-16] (node_list.h). How many processes a host takes may follow: NAME:8 (MPICH), NAME*8
 * (Slurm), NAME slots=8 (Open MPI); a host that is named again takes as many more. The number after
 * a colon is a port from 1024 on. Other attributes: max_slots=N, user=NAME. What is after # on a
 * line is not read, nor a byte order mark, nor a carriage return.
 *
 * Owns: the array of a struct host_list, until host_list_free.  Threads: one.
 * Blocks: while a file is read.  Fails: -EINVAL with a text that names the entry, and the file and
 * line that it is in; what is not understood is refused. */
#ifndef COMMON_HOST_LIST_H
#define COMMON_HOST_LIST_H

#include <stdbool.h>

enum host_kind { HOST_LOCAL, HOST_NAMESPACE, HOST_SSH, HOST_COMMAND };

enum {
  HOST_NAME_MAX_BYTES = 512, /* twice what DNS allows, for a user's name or a command */
  HOST_WORDS_MAX = 32,       /* of a command */
  HOST_SLOTS_MAX = 1023,     /* the ports that anybody may listen on begin above */
  HOST_LIST_MAX = 4096,
  HOST_LIST_ERROR_MAX = 1024
};

struct host {
  enum host_kind kind;
  char name[HOST_NAME_MAX_BYTES]; /* ssh's destination, namespace, or the command's words; of this
                                     machine one to show */
  int slots;                      /* processes that it takes; 0: not said */
  int port;                       /* 0: not said */
};

struct host_list {
  struct host *hosts;
  int count;
};

/* Adds those of a list, or of the file of that name. At first `list` is zeroed. */
int host_list_read(struct host_list *list, const char *argument, char error[HOST_LIST_ERROR_MAX]);
void host_list_free(struct host_list *list);

/* The same hosts in one form, a line for each, which host_list_read reads as a list; allocated,
 * NULL without memory. */
char *host_list_write(const struct host_list *list);

/* True if every host runs on this machine and sees its files. */
bool host_list_is_one_machine(const struct host_list *list);

/* What follows USER@ in the name of a host for ssh. */
const char *host_address(const struct host *host);

#endif
