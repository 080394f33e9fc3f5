/* SPDX-License-Identifier: Apache-2.0 */
/* world: one row per launcher; the first whose rank variable is set wins. */
#include "tests/coll/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"

struct launcher {
  const char *name, *rank, *size, *local_rank, *local_size;
  /* Variables of which the first that is set tells one job on this machine from another. */
  const char *job[2];
};

/* Slurm sets SLURM_PROCID in a batch script too, but the step's variables only where srun started
 * the process; it comes before PMI, which srun may set as well. */
static const struct launcher launchers[] = {
  { "stratus-coll",
    "STRATUS_COLL_RANK",
    "STRATUS_COLL_SIZE",
    "STRATUS_COLL_LOCAL_RANK",
    "STRATUS_COLL_LOCAL_SIZE",
    { NULL } },
  { "Open MPI",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid" } },
  { "srun",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_TASKS_PER_NODE",
    { "SLURM_JOB_ID" } },
  { "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", { "PMI_ID" } },
  { "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", { "TORCHELASTIC_RUN_ID" } },
};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

struct reader {
  char *error;
  size_t error_size;
  bool has_failed;
};

/* Value of a whole-number variable, or `fallback` if it is not set. Slurm's "2(x3)" is 2. */
static int read_number(struct reader *reader, const char *name, int least, int fallback) {
  const char *text = getenv(name);
  if (!text || !*text)
    return fallback;
  char digits[16];
  snprintf(digits, sizeof digits, "%.*s", (int)strcspn(text, "(,"), text);
  int64_t value;
  if (!quantity_parse_int(digits, &value) && value >= least && value <= 1 << 20)
    return (int)value;
  if (!reader->has_failed)
    snprintf(reader->error, reader->error_size, "%s=%s: a number from %d on is wanted", name, text,
             least);
  reader->has_failed = true;
  return fallback;
}

static const struct launcher *find_launcher(void) {
  for (int i = 0; i < LAUNCHERS; i++) {
    const char *rank = getenv(launchers[i].rank), *size = getenv(launchers[i].size);
    if (rank && *rank && size && *size)
      return &launchers[i];
  }
  return NULL;
}

void world_name_process(char name[WORLD_NAME_MAX], int process, int gpus, const char *host) {
  if (gpus == 1)
    snprintf(name, WORLD_NAME_MAX, "rank %d on %.128s", process, host);
  else
    snprintf(name, WORLD_NAME_MAX, "ranks %d to %d on %.128s", process * gpus,
             process * gpus + gpus - 1, host);
}

int world_first_host(const char *node_list, char *host, size_t size) {
  size_t prefix = strcspn(node_list, ",[");
  const char *bracket = node_list[prefix] == '[' ? node_list + prefix + 1 : "";
  size_t number = strcspn(bracket, "-,]");
  const char *rest = strchr(bracket, ']');
  size_t suffix = rest ? strcspn(rest + 1, ",[") : 0;
  if (prefix + number == 0 || (*bracket && !rest) || prefix + number + suffix >= size)
    return -EINVAL;
  snprintf(host, size, "%.*s%.*s%.*s", (int)prefix, node_list, (int)number, bracket, (int)suffix,
           rest ? rest + 1 : "");
  return 0;
}

/* A name that the processes of one job share and other jobs on this machine do not. */
static void name_local_socket(struct world *world, const struct launcher *launcher) {
  const char *job = NULL;
  for (int i = 0; i < 2 && !job; i++)
    job = launcher->job[i] ? getenv(launcher->job[i]) : NULL;
  char key[64];
  if (job && *job)
    snprintf(key, sizeof key, "%s", job);
  else
    snprintf(key, sizeof key, "%d", (int)getppid()); /* the launcher's daemon on this machine */
  for (char *c = key; *c; c++)
    *c = *c == '/' ? '_' : *c;
  snprintf(world->address, sizeof world->address, "unix:/tmp/stratus-coll-%u-%s",
           (unsigned)getuid(), key);
}

/* Ports for jobs that name none: below the kernel's range for outgoing connections. */
static unsigned port_of_job(const char *job) {
  return 20000 + (unsigned)(strtoul(job ? job : "0", NULL, 10) % 10000);
}

static int choose_address(struct world *world, const struct launcher *launcher, const char *wanted,
                          char *error, size_t error_size) {
  const char *set = getenv("STRATUS_COLL_ADDR");
  const char *nodes = getenv("SLURM_STEP_NODELIST"), *master = getenv("MASTER_ADDR");
  char host[128];
  if (!wanted)
    wanted = set && *set ? set : NULL;
  if (wanted) {
    snprintf(world->address, sizeof world->address, "%s", wanted);
  } else if (world->local_size == world->size) {
    name_local_socket(world, launcher);
  } else if (nodes && !world_first_host(nodes, host, sizeof host)) {
    snprintf(world->address, sizeof world->address, "%s:%u", host,
             port_of_job(getenv("SLURM_JOB_ID")));
  } else if (master && *master) {
    const char *port = getenv("MASTER_PORT");
    snprintf(world->address, sizeof world->address, "%s:%ld", master,
             (port ? strtol(port, NULL, 10) : 29500) + 1);
  } else {
    snprintf(error, error_size,
             "%s does not say where rank 0 is: set STRATUS_COLL_ADDR=HOST:PORT for all ranks "
             "(mpirun -x), or give --address",
             launcher->name);
    return -EINVAL;
  }
  return 0;
}

static void read_host_name(struct world *world) {
  const char *name = getenv("STRATUS_COLL_HOST");
  if (name && *name)
    snprintf(world->host, sizeof world->host, "%s", name);
  else if (gethostname(world->host, sizeof world->host - 1))
    snprintf(world->host, sizeof world->host, "localhost");
}

int world_read(struct world *world, const char *address, char *error, size_t error_size) {
  struct reader reader = { error, error_size, false };
  const struct launcher *launcher = find_launcher();
  *world = (struct world){ .size = 1, .local_size = 1, .is_local = true };
  read_host_name(world);
  if (!launcher)
    return 0;
  world->launcher = launcher->name;
  world->is_ours = launcher == &launchers[0];
  world->rank = read_number(&reader, launcher->rank, 0, 0);
  world->size = read_number(&reader, launcher->size, 1, 1);
  world->local_rank = read_number(&reader, launcher->local_rank, 0, 0);
  world->local_size = read_number(&reader, launcher->local_size, 1, world->local_rank + 1);
  const char *token = getenv("STRATUS_COLL_TOKEN");
  world->token = token ? strtoull(token, NULL, 16) : 0;
  const char *is_local = getenv("STRATUS_COLL_LOCAL");
  world->is_local =
      world->is_ours ? is_local && *is_local == '1' : world->local_size == world->size;
  if (!reader.has_failed && world->rank >= world->size) {
    snprintf(error, error_size, "%s=%d is not below %s=%d", launcher->rank, world->rank,
             launcher->size, world->size);
    reader.has_failed = true;
  }
  if (reader.has_failed)
    return -EINVAL;
  return world->size > 1 ? choose_address(world, launcher, address, error, error_size) : 0;
}
