/* SPDX-License-Identifier: Apache-2.0 */
/* world: reads the launcher's variables and finds rank 0's address. */
#include "tests/coll/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/launcher.h"
#include "tests/coll/connect.h"
#include "tests/coll/handed_over.h"

void world_name_process(char name[WORLD_NAME_MAX], int process, int gpus, const char *host) {
  if (gpus == 1)
    snprintf(name, WORLD_NAME_MAX, "rank %d on %.128s", process, host);
  else
    snprintf(name, WORLD_NAME_MAX, "ranks %d to %d on %.128s", process * gpus,
             process * gpus + gpus - 1, host);
}

/* A name that the processes of one job share and other jobs on this machine do not. */
static void name_local_socket(struct world *world, const struct launcher_place *place) {
  char key[LAUNCHER_JOB_MAX];
  if (*place->job)
    snprintf(key, sizeof key, "%s", place->job);
  else
    snprintf(key, sizeof key, "%d", (int)getppid()); /* the launcher's daemon on this machine */
  for (char *c = key; *c; c++)
    *c = *c == '/' ? '_' : *c;
  /* Longer than a socket's name may be: what tells jobs apart is at the end. */
  size_t length = strlen(key);
  snprintf(world->address, sizeof world->address, "unix:/tmp/coll-%u-%s", (unsigned)getuid(),
           length > 64 ? key + length - 64 : key);
}

/* Ports for jobs that name none: below the kernel's range for outgoing connections. */
static unsigned port_of(const struct launcher_place *place) {
  return place->first_port ? (unsigned)place->first_port + 1
                           : 20000 + (unsigned)(place->job_number % 10000);
}

static int choose_address(struct world *world, const struct launcher_place *place,
                          const char *wanted, char *error, size_t error_size) {
  const char *set = getenv("COLL_ADDR");
  if (!wanted)
    wanted = set && *set ? set : NULL;
  if (wanted) {
    snprintf(world->address, sizeof world->address, "%s", wanted);
  } else if (place->local_size == place->size && (*place->job || !*place->first_host)) {
    name_local_socket(world, place);
  } else if (*place->first_host) {
    bool is_ipv6 = strchr(place->first_host, ':') && *place->first_host != '[';
    snprintf(world->address, sizeof world->address, is_ipv6 ? "[%s]:%u" : "%s:%u",
             place->first_host, port_of(place));
  } else {
    snprintf(error, error_size,
             "%s does not say where rank 0 is: set COLL_ADDR=HOST:PORT for all ranks "
             "(mpirun -x), or give --address",
             place->launcher);
    return -EINVAL;
  }
  return 0;
}

/* The token of --hosts, or the job's secret. Without either anybody could pose as a rank, so rank 0
 * then listens on this machine only. */
static int choose_key(struct world *world, char *error, size_t error_size) {
  static const char purpose[] = "coll";
  const char *token = getenv(HANDED_OVER_TOKEN);
  char why[PEER_ERROR_MAX];
  if (token && *token) {
    peer_key_of_token(purpose, token, strlen(token), &world->key);
    return 0;
  }
  if (world->is_ours) {
    snprintf(error, error_size,
             "the token of --hosts did not arrive: the command that runs a process on a host must "
             "pass on standard input (docker exec -i)");
    return -EINVAL;
  }
  int status = peer_key_of_job(purpose, &world->key, why);
  if (status)
    snprintf(error, error_size, "%s", why);
  if (!status && !world->key.is_secret && !connect_is_local(world->address)) {
    snprintf(error, error_size, "rank 0 is at %s; " PEER_NEEDS_SECRET, world->address);
    status = -EACCES;
  }
  return status;
}

static void read_host_name(struct world *world) {
  const char *name = getenv("COLL_HOST");
  if (name && *name)
    snprintf(world->host, sizeof world->host, "%s", name);
  else if (gethostname(world->host, sizeof world->host - 1))
    snprintf(world->host, sizeof world->host, "localhost");
}

int world_read(struct world *world, const char *address, char *error, size_t error_size) {
  struct launcher_place place;
  int found = launcher_find(&place, error, error_size);
  *world = (struct world){ .size = 1, .local_size = 1, .is_local = true };
  read_host_name(world);
  if (found <= 0)
    return found;
  world->is_ours = getenv("COLL_HOST") != NULL;
  world->rank = place.rank;
  world->size = place.size;
  world->local_rank = place.local_rank;
  world->local_size = place.local_size ? place.local_size : place.local_rank + 1;
  const char *is_local = getenv("COLL_LOCAL");
  world->is_local = world->is_ours ? is_local && *is_local == '1' : place.local_size == place.size;
  if (world->size == 1)
    return 0;
  int status = choose_address(world, &place, address, error, error_size);
  return status ? status : choose_key(world, error, error_size);
}
