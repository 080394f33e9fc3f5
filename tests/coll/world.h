/* SPDX-License-Identifier: Apache-2.0 */
/* world: rank and size of this process, and where the ranks meet, from the environment; and the
 * start of the ranks of --hosts. Owns: nothing.  Threads: one, before others start. Blocks: never.
 * Fails: with a message naming the variable at fault.
 *
 * Rank and size are those of mpirun (Open MPI), srun, or torchrun, whose variables --hosts sets,
 * too. Rank 0 listens at COLL_ADDR if it is set; at a Unix socket if all ranks are on this machine;
 * else at MASTER_ADDR, one port after MASTER_PORT, which torchrun itself uses. */
#ifndef COLL_WORLD_H
#define COLL_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/coll/options.h"

#define WORLD_ADDRESS "COLL_ADDR"
/* Of --hosts alone: this host's name, and whether no host has a network of its own. */
#define WORLD_HOST "COLL_HOST"
#define WORLD_IS_LOCAL "COLL_LOCAL"

enum { WORLD_ADDRESS_MAX = 256, WORLD_NAME_MAX = 192 };

struct world {
  int rank, size, local_rank, local_size; /* of processes: one may have several of NCCL's ranks */
  char address[WORLD_ADDRESS_MAX];        /* "HOST:PORT" or "unix:PATH"; empty when size is 1 */
  char host[128];                         /* this host's name in messages */
  bool is_local; /* every rank is on this machine, without network namespaces between */
  bool is_ours;  /* started by --hosts */
};

int world_read(struct world *world, char *error, size_t error_size);

/* A Unix socket for the ranks of one machine whose parent is this process. */
void world_own_address(char address[WORLD_ADDRESS_MAX], int parent);
void world_forget_address(const char *address);

/* What messages call a process with `gpus` GPUs: "rank 3 on b", or "ranks 6 to 7 on b". */
void world_name_process(char name[WORLD_NAME_MAX], int process, int gpus, const char *host);

/* Starts the ranks of --hosts, all on this machine, and ensures that all end. Never leaves a rank
 * behind: when one fails, or on SIGINT, SIGTERM or --timeout, the others get a moment to end by
 * themselves, then SIGTERM, then SIGKILL; ranks end, too, when this process does.
 * Owns: the ranks' processes and the socket by which they meet.  Blocks: until all have ended.
 * Returns the exit status of the program. The ranks are given this process's own arguments
 * and environment, with torchrun's variables and those of world.h. */
int ranks_run(const struct options *options, char **argv);

#endif
