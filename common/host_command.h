/* SPDX-License-Identifier: Apache-2.0 */
/* host_command: the words that run a command on a host of a list (host_list.h).
 * Owns: the words, from host_command_begin to host_command_free.  Threads: any.
 * Blocks: never.  Fails: as `has_failed`: out of memory, or more than HOST_COMMAND_WORDS_MAX. */
#ifndef COMMON_HOST_COMMAND_H
#define COMMON_HOST_COMMAND_H

#include <stdbool.h>

#include "common/host_list.h"

/* What reaches a host for ssh: without questions, and within 10 s. */
#define HOST_COMMAND_SSH "ssh -o BatchMode=yes -o ConnectTimeout=10"

enum { HOST_COMMAND_WORDS_MAX = 640 };

struct host_command {
  char *words[HOST_COMMAND_WORDS_MAX + 1]; /* NULL at the end */
  int count;
  bool is_for_shell; /* the other host's shell reads what follows */
  bool has_failed;
};

/* The words before the command; none for this machine. `ssh`: those before the name of a host for
 * ssh, separated by blanks. */
void host_command_begin(struct host_command *command, const struct host *host, const char *ssh);
/* A word of the command, as it is to arrive there. */
void host_command_add(struct host_command *command, const char *word);
void host_command_free(struct host_command *command);

#endif
