/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: rank and size of this process from the variables of mpirun, srun or torchrun.
 * Owns: nothing.  Threads: one, before others start.
 * Blocks: launcher_is_open_mpi, while the command runs.  Fails: -EINVAL with a message that names
 * the wrong variable.
 *
 * Launchers nest: torchrun under srun, mpirun whose daemons srun starts. The innermost one counts.
 *
 *   launcher                 rank, size                   local rank, local size
 *   torchrun                 RANK, WORLD_SIZE             LOCAL_RANK, LOCAL_WORLD_SIZE
 *   Open MPI, PRRTE for it   OMPI_COMM_WORLD_RANK, _SIZE  OMPI_COMM_WORLD_LOCAL_RANK, _LOCAL_SIZE
 *   Slurm (srun, any --mpi)  SLURM_PROCID,                SLURM_LOCALID,
 *                            SLURM_STEP_NUM_TASKS         SLURM_STEP_TASKS_PER_NODE
 *   MPICH, Intel MPI         PMI_RANK, PMI_SIZE           MPI_LOCALRANKID, MPI_LOCALNRANKS
 *   set by hand              as torchrun's, of which LOCAL_WORLD_SIZE may be missing
 *   PRRTE else               PMIX_RANK, and no size: refused
 *
 * MPICH's local numbers are those of one of its proxies: of hosts a, b, a two have 0 on a. */
#ifndef COMMON_LAUNCHER_H
#define COMMON_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

enum { LAUNCHER_HOST_MAX = 128, LAUNCHER_SIZE_MAX = 1 << 20 };

struct launcher_place {
  const char *launcher; /* for messages */
  int rank, size;
  int local_rank;                     /* on this host; 0 if unknown */
  int local_size;                     /* 0 if unknown */
  char first_host[LAUNCHER_HOST_MAX]; /* host of rank 0; empty if unknown */
};

/* 1: a launcher started this process; 0: none did. */
int launcher_find(struct launcher_place *place, char *error, size_t error_size);

/* The rank alone, as the innermost launcher's variable has it, a number; empty if unknown. */
const char *launcher_rank(void);

/* Is the command Open MPI's mpirun, or PRRTE's, which pass on the variables that -x names? Runs
 * `COMMAND --version`, as Hydra (MPICH, Intel MPI) has programs of the same names, without -x. */
bool launcher_is_open_mpi(const char *command);

/* First host of a Slurm node list: "gpu[07-09,12],cpu1" -> "gpu07". Negative errno if there is
 * none. */
int launcher_first_host(const char *node_list, char *host, size_t size);

#endif
