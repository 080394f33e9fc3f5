/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "tests/coll/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/launcher.h"

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

static bool choose_address(struct world *world) {
  const char *set = get(WORLD_ADDRESS), *master = get("MASTER_ADDR");
  if (set)
    snprintf(world->address, sizeof world->address, "%s", set);
  else if (world->local_size == world->size) /* which is not known where it was not set */
    world_own_address(world->address, (int)getppid());
  else if (master)
    snprintf(world->address, sizeof world->address,
             strchr(master, ':') && *master != '[' ? "[%s]:%d" : "%s:%d", master,
             (get("MASTER_PORT") ? atoi(get("MASTER_PORT")) : 29500) + 1);
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
  struct launcher_place place = { 0 };
  int found = launcher_find(&place, error, error_size);
  if (found <= 0)
    return found;
  world->rank = place.rank;
  world->size = place.size;
  world->local_rank = place.local_rank;
  world->local_size = place.local_size;
  world->is_local = world->is_ours ? get(WORLD_IS_LOCAL) != NULL : place.local_size == place.size;
  if (world->size > 1 && !choose_address(world)) {
    snprintf(error, error_size,
             "set " WORLD_ADDRESS "=HOST:PORT for all ranks (mpirun -x): where rank 0 listens");
    return -EINVAL;
  }
  if (world->local_size == 0)
    world->local_size = world->local_rank + 1;
  return 0;
}
