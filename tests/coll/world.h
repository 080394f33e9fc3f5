/* SPDX-License-Identifier: Apache-2.0 */
/* world: rank and size of this process, from the launcher's environment.
 * Owns: nothing.  Threads: one, before others start.
 * Blocks: on a file with a secret; without a secret, while rank 0's name is resolved.  Fails: with
 * a message naming the variable at fault, or saying that a secret is needed.
 *
 * Launchers and their variables: common/launcher.h.
 *
 * Rank 0 listens at: COLL_ADDR (or --address) if set; a Unix socket if all ranks are known
 * to be on this machine; the first host of Slurm's node list; MASTER_ADDR with the port after
 * MASTER_PORT, which torchrun itself uses. */
#ifndef COLL_WORLD_H
#define COLL_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/peer_proof.h"

struct world {
  int rank, size, local_rank, local_size; /* of processes: one may have several of NCCL's ranks */
  char address[256];                      /* "HOST:PORT" or "unix:PATH"; empty when size is 1 */
  char host[128];                         /* this host's name in messages */
  struct peer_key key; /* of the job: keeps other processes out of the rendezvous */
  bool is_local;       /* every rank is on this machine, without network namespaces between */
  bool is_ours;        /* started by --hosts */
};

/* `address` is what --address said, or NULL. */
int world_read(struct world *world, const char *address, char *error, size_t error_size);

/* What messages call a process with `gpus` GPUs: "rank 3 on b", or "ranks 6 to 7 on b". */
enum { WORLD_NAME_MAX = 192 };
void world_name_process(char name[WORLD_NAME_MAX], int process, int gpus, const char *host);

#endif
