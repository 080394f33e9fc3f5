/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of each launcher, the most telling first. */
#include "net_plugin/tools/probe/launcher.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/quantity.h"

static bool read_number(const char *name, unsigned *number) {
  const char *text = getenv(name);
  int64_t value;
  if (!text || quantity_parse_int(text, &value) != 0 || value < 0 || value > 1 << 20) {
    return false;
  }
  *number = (unsigned)value;
  return true;
}

bool launcher_find(struct launcher_place *place) {
  static const struct {
    const char *rank, *size, *local_rank;
  } launchers[] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK" },
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID" },
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID" },
    { "RANK", "WORLD_SIZE", "LOCAL_RANK" },
  };
  for (unsigned i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
    if (read_number(launchers[i].rank, &place->rank) &&
        read_number(launchers[i].size, &place->size) && place->rank < place->size) {
      if (!read_number(launchers[i].local_rank, &place->local_rank)) {
        place->local_rank = 0;
      }
      return true;
    }
  }
  return false;
}
