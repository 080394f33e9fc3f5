/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: one row per launcher; the first whose variables are set is the innermost. */
#include "common/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/quantity.h"

struct launcher {
  const char *name;
  const char *needs; /* variable that only this launcher sets; NULL: none */
  const char *rank, *size, *local_rank, *local_size; /* size NULL: it sets none */
};

/* Slurm sets SLURM_PROCID in a batch script too, but the step's variables only where srun started
 * the process; it comes before PMI, which srun may set as well. torchrun's workers inherit the
 * variables of the launcher that started torchrun. RANK and WORLD_SIZE come last: some clusters set
 * them in containers in which mpirun runs. */
static const struct launcher launchers[] = {
  { "torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
  { "Open MPI", NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE" },
  { "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
    "SLURM_STEP_TASKS_PER_NODE" },
  { "MPICH", NULL, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },
  { "the environment", NULL, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE" },
  { "PRRTE", "PMIX_NAMESPACE", "PMIX_RANK", NULL, NULL, NULL },
};
enum {
  TORCHRUN,
  OPEN_MPI,
  SRUN,
  MPICH,
  BY_HAND,
  PRRTE,
  LAUNCHERS,
};

/* ---- numbers ---- */

struct reader {
  char *error;
  size_t error_size;
  bool has_failed;
};

#define REJECT(reader, ...)                                                                        \
  do {                                                                                             \
    if (!(reader)->has_failed) {                                                                   \
      snprintf((reader)->error, (reader)->error_size, __VA_ARGS__);                                \
    }                                                                                              \
    (reader)->has_failed = true;                                                                   \
  } while (0)

static const char *get(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

/* Value of a whole-number variable, or 0 if it is not set. Slurm's "2(x3)" is 2. */
static int read_number(struct reader *reader, const char *name, int least) {
  const char *text = get(name);
  if (!text) {
    return 0;
  }
  char digits[16];
  int64_t value;
  snprintf(digits, sizeof digits, "%.*s", (int)strcspn(text, "(,"), text);
  if (quantity_parse_int(digits, &value) == 0 && value >= least && value <= LAUNCHER_SIZE_MAX) {
    return (int)value;
  }
  REJECT(reader, "%s=%s: a number from %d to %d is wanted", name, text, least, LAUNCHER_SIZE_MAX);
  return 0;
}

/* ---- which launcher ---- */

static bool may_have_started_us(const struct launcher *l) {
  return !l->needs || get(l->needs);
}

/* NULL: none. A rank without a size, or a size without a rank, is an error: each process would be a
 * job of its own. */
static const struct launcher *launcher_recognize(struct reader *reader) {
  for (int i = 0; i < LAUNCHERS; i++) {
    const struct launcher *l = &launchers[i];
    const char *rank = get(l->rank), *size = l->size ? get(l->size) : NULL;
    bool is_possible = (rank || size) && may_have_started_us(l);
    if (is_possible && rank && size) {
      return l;
    }
    if (is_possible && !l->size) {
      REJECT(reader, "%s=%s is set, and no size: PRRTE tells it with --personality ompi", l->rank,
             rank);
      return NULL;
    }
    if (is_possible) {
      REJECT(reader, "%s=%s is set, but %s is not: a launcher sets both", rank ? l->rank : l->size,
             rank ? rank : size, rank ? l->size : l->rank);
      return NULL;
    }
  }
  return NULL;
}

const char *launcher_rank(void) {
  for (int i = 0; i < LAUNCHERS; i++) {
    const struct launcher *l = &launchers[i];
    const char *rank = get(l->rank);
    if (rank && may_have_started_us(l) && (!l->size || get(l->size)) && strlen(rank) < 16 &&
        rank[strspn(rank, "0123456789")] == '\0') {
      return rank;
    }
  }
  return "";
}

static void check_numbers(struct reader *reader, const struct launcher *l,
                          const struct launcher_place *place) {
  if (place->rank >= place->size) {
    REJECT(reader, "%s=%d is not below %s=%d", l->rank, place->rank, l->size, place->size);
  }
  /* Slurm's number is that of the first host; others may have fewer tasks. */
  if (l == &launchers[SRUN] || place->local_size == 0) {
    return;
  }
  if (place->local_size > place->size) {
    REJECT(reader, "%s=%d is above %s=%d", l->local_size, place->local_size, l->size, place->size);
  }
  if (place->local_rank >= place->local_size) {
    REJECT(reader, "%s=%d is not below %s=%d", l->local_rank, place->local_rank, l->local_size,
           place->local_size);
  }
}

/* ---- where ---- */

/* What is before the first bracket, the first number in it, and what is behind it, as far as a
 * comma. */
int launcher_first_host(const char *node_list, char *host, size_t size) {
  size_t before = strcspn(node_list, "[,"), number = 0, behind = 0;
  const char *bracket = node_list + before, *end = bracket;
  if (*bracket == '[') {
    number = strspn(bracket + 1, "0123456789");
    end = strchr(bracket, ']');
    end = end ? end + 1 : bracket;
    behind = strcspn(end, ",");
  }
  if (*bracket == '[' && (number == 0 || end == bracket || memchr(end, '[', behind))) {
    return -EINVAL;
  }
  int length = snprintf(host, size, "%.*s%.*s%.*s", (int)before, node_list, (int)number,
                        bracket + (number > 0), (int)behind, end);
  return length <= 0 ? -EINVAL : (size_t)length < size ? 0 : -ENAMETOOLONG;
}

/* mpirun under srun: the step of its daemons does not include the host of rank 0. */
static void find_first_host(struct reader *reader, const struct launcher *l,
                            struct launcher_place *place) {
  const char *master = get("MASTER_ADDR");
  bool is_torch = l == &launchers[TORCHRUN] || l == &launchers[BY_HAND];
  const char *nodes =
      is_torch ? NULL : get(l == &launchers[SRUN] ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST");
  if (nodes && launcher_first_host(nodes, place->first_host, sizeof place->first_host) == 0) {
    return;
  }
  if (master && strlen(master) >= sizeof place->first_host) {
    REJECT(reader, "MASTER_ADDR=%s: too long", master);
  } else if (master) {
    snprintf(place->first_host, sizeof place->first_host, "%s", master);
  }
}

int launcher_find(struct launcher_place *place, char *error, size_t error_size) {
  struct reader reader = { error, error_size, false };
  const struct launcher *l = launcher_recognize(&reader);
  *place = (struct launcher_place){ .launcher = l ? l->name : NULL };
  if (!l) {
    return reader.has_failed ? -EINVAL : 0;
  }
  place->rank = read_number(&reader, l->rank, 0);
  place->size = read_number(&reader, l->size, 1);
  place->local_rank = read_number(&reader, l->local_rank, 0);
  place->local_size = read_number(&reader, l->local_size, 1);
  if (!reader.has_failed) {
    check_numbers(&reader, l, place);
  }
  find_first_host(&reader, l, place);
  return reader.has_failed ? -EINVAL : 1;
}

/* ---- which mpirun ---- */

/* Debian's mpirun.openmpi is an mpirun, too. */
static bool is_mpirun(const char *command) {
  static const char *const names[] = { "mpirun", "mpiexec", "orterun", "prterun", NULL };
  const char *slash = strrchr(command, '/'), *name = slash ? slash + 1 : command;
  size_t length = strcspn(name, ".");
  for (const char *const *each = names; *each; each++) {
    if (strlen(*each) == length && strncmp(name, *each, length) == 0) {
      return true;
    }
  }
  return false;
}

/* In a child: becomes `COMMAND --version`. */
__attribute__((noreturn)) static void say_version(const char *command, int output) {
  if (dup2(output, STDOUT_FILENO) >= 0 && freopen("/dev/null", "w", stderr)) {
    execlp(command, command, "--version", (char *)NULL);
  }
  _exit(127);
}

/* "mpirun (Open MPI) 4.1.4", "mpirun (PRRTE) 3.0.0", "HYDRA build details:", ... */
bool launcher_is_open_mpi(const char *command) {
  int ends[2];
  char text[4096] = "";
  if (!is_mpirun(command) || pipe2(ends, O_CLOEXEC) != 0) {
    return false;
  }
  pid_t child = fork();
  if (child == 0) {
    say_version(command, ends[1]);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t n; (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;) {
    used += (size_t)n;
  }
  close(ends[0]);
  if (child > 0) {
    waitpid(child, NULL, 0);
  }
  return strstr(text, "Open MPI") || strstr(text, "OpenRTE") || strstr(text, "PRRTE");
}
