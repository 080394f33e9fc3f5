/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "tests/coll/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"

void world_name_process(char name[WORLD_NAME_MAX], int process, int gpus, const char *host) {
  if (gpus == 1)
    snprintf(name, WORLD_NAME_MAX, "rank %d on %.128s", process, host);
  else
    snprintf(name, WORLD_NAME_MAX, "ranks %d to %d on %.128s", process * gpus,
             (process + 1) * gpus - 1, host);
}

void world_own_address(char address[WORLD_ADDRESS_MAX], int parent) {
  enum { DIRECTORY_MAX = 80 }; /* a socket's name has 107 bytes at most */
  const char *directory = getenv("TMPDIR");
  if (!directory || *directory != '/' || strlen(directory) > DIRECTORY_MAX)
    directory = "/tmp";
  snprintf(address, WORLD_ADDRESS_MAX, "unix:%s/coll-%d", directory, parent);
}

void world_forget_address(const char *address) {
  if (!strncmp(address, "unix:", 5))
    unlink(address + 5);
}

static const char *get(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

/* Slurm's "2(x3)" is 2; -1 is no number. */
static int number_of(const char *name, int absent) {
  const char *text = get(name);
  char digits[16];
  int64_t value;
  if (!text)
    return absent;
  snprintf(digits, sizeof digits, "%.*s", (int)strcspn(text, "(,"), text);
  return quantity_parse_int(digits, &value) || value < 0 || value > INT32_MAX ? -1 : (int)value;
}

/* Slurm's step has these only where srun started the process; RANK may be set for mpirun, too. */
static bool read_place(struct world *world) {
  static const char *const launchers[][4] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE" },
    { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
    { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE" },
  };
  for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
    const char *const *names = launchers[i];
    if (!get(names[0]) || !get(names[1]))
      continue;
    world->rank = number_of(names[0], -1);
    world->size = number_of(names[1], -1);
    world->local_rank = number_of(names[2], 0);
    world->local_size = number_of(names[3], 0);
    return true;
  }
  return false;
}

static bool choose_address(struct world *world) {
  const char *set = get(WORLD_ADDRESS), *master = get("MASTER_ADDR");
  if (set)
    snprintf(world->address, sizeof world->address, "%s", set);
  else if (world->local_size == world->size) /* which is not known where it was not set */
    world_own_address(world->address, (int)getppid());
  else if (master)
    snprintf(world->address, sizeof world->address,
             strchr(master, ':') && *master != '[' ? "[%s]:%d" : "%s:%d", master,
             number_of("MASTER_PORT", 29500) + 1);
  return *world->address;
}

int world_read(struct world *world, char *error, size_t error_size) {
  *world = (struct world){ .size = 1, .local_size = 1, .is_local = true };
  const char *host = get(WORLD_HOST);
  world->is_ours = host != NULL;
  if (host)
    snprintf(world->host, sizeof world->host, "%s", host);
  else if (gethostname(world->host, sizeof world->host - 1))
    snprintf(world->host, sizeof world->host, "localhost");
  if (!read_place(world))
    return 0;
  if (world->rank < 0 || world->rank >= world->size || world->local_rank < 0 ||
      world->local_size < 0 || world->local_size > world->size) {
    snprintf(error, error_size,
             "rank %d of %d, %d of %d on its host: what the launcher set is wrong", world->rank,
             world->size, world->local_rank, world->local_size);
    return -EINVAL;
  }
  world->is_local =
      world->is_ours ? number_of(WORLD_IS_LOCAL, 0) == 1 : world->local_size == world->size;
  if (world->size > 1 && !choose_address(world)) {
    snprintf(error, error_size,
             "set " WORLD_ADDRESS "=HOST:PORT for all ranks (mpirun -x): where rank 0 listens");
    return -EINVAL;
  }
  if (world->local_size == 0)
    world->local_size = world->local_rank + 1;
  return 0;
}
