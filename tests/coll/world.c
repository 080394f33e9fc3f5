/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. Of --hosts: one process per rank, in the network namespace of its host, or behind
 * the host's command. */
#include "tests/coll/world.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/launcher.h"
#include "tests/coll/message.h"

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

/* ---- starting the ranks of --hosts ---- */

/* How long the other ranks may continue after one has failed: they notice within a tenth of a
 * second, and their messages should get out; from SIGTERM to SIGKILL. */
#define RANKS_GRACE_NS (3 * NS_PER_S)
#define RANKS_KILL_NS (2 * NS_PER_S)

enum { HOSTS_MAX = 64 };

struct host {
  char name[128];
  const char *space, *command; /* NULL: none */
};

struct rank {
  pid_t pid; /* 0 when it has ended */
  int host, local_rank;
};

struct launch {
  const struct options *options;
  char **argv; /* of this program */
  char list[4096], program[PATH_MAX], address[WORLD_ADDRESS_MAX];
  struct host hosts[HOSTS_MAX];
  struct rank *ranks;
  int host_count, count, status;
  bool is_local;      /* no host has a network of its own */
  bool has_signalled; /* ranks were asked to end: their exit status is not reported */
  sigset_t signals;
};

/* ---- hosts ---- */

/* local, local:N, ns:NAME, or the path of a command. */
static int read_host(struct launch *launch, char *word) {
  struct host host = { .space = NULL };
  char space[PATH_MAX];
  int copies = 1, end = 0;
  bool is_local = !strcmp(word, "local") ||
                  (sscanf(word, "local:%d%n", &copies, &end) == 1 && !word[end] && copies > 0);
  snprintf(host.name, sizeof host.name, "%s", word);
  if (!strncmp(word, "ns:", 3)) {
    host.space = word + 3;
    snprintf(host.name, sizeof host.name, "%s", host.space);
    snprintf(space, sizeof space, "/run/netns/%s", host.space);
    if (access(space, F_OK)) {
      message_write("--hosts: there is no such network namespace: %s", host.space);
      return EXIT_WRONG_USE;
    }
  } else if (*word == '/') {
    host.command = word;
  } else if (!is_local) {
    message_write("--hosts: \"%s\" is none of local, local:N, ns:NAME, and no path", word);
    return EXIT_WRONG_USE;
  }
  for (; copies > 0 && launch->host_count < HOSTS_MAX; copies--) {
    if (is_local)
      snprintf(host.name, sizeof host.name, "local%d", launch->host_count);
    launch->is_local = launch->is_local && is_local;
    launch->hosts[launch->host_count++] = host;
  }
  return EXIT_GOOD;
}

static int read_hosts(struct launch *launch) {
  int status = EXIT_GOOD;
  snprintf(launch->list, sizeof launch->list, "%s", launch->options->hosts);
  launch->is_local = true;
  for (char *rest = launch->list, *word; status == EXIT_GOOD && (word = strsep(&rest, ","));)
    status = read_host(launch, word);
  return status;
}

/* ---- starting ---- */

static void set_number(const char *name, int value) {
  char text[16];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

static void set_environment(const struct launch *launch, int rank) {
  const struct rank *r = &launch->ranks[rank];
  char id[64];
  set_number("RANK", rank);
  set_number("WORLD_SIZE", launch->count);
  set_number("LOCAL_RANK", r->local_rank);
  set_number("LOCAL_WORLD_SIZE", launch->options->ppn);
  if (launch->is_local)
    setenv(WORLD_IS_LOCAL, "1", 1);
  setenv("TORCHELASTIC_RUN_ID", "coll", 1); /* these count, whatever started this process */
  setenv(WORLD_HOST, launch->hosts[r->host].name, 1);
  setenv(WORLD_ADDRESS, launch->address, 1);
  /* NCCL takes processes with different ids for different hosts: so they use the network. */
  snprintf(id, sizeof id, "coll-%d-%d", (int)getppid(), r->host);
  setenv("NCCL_HOSTID", id, 1);
}

/* Of the CPUs that this process may use, every n-th for each of n hosts. */
static void keep_to_own_cpus(int host, int hosts) {
  cpu_set_t all, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < hosts)
    return;
  int n = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &all) && n++ % hosts == host)
      CPU_SET(cpu, &own);
  }
  if (sched_setaffinity(0, sizeof own, &own))
    message_write("cannot keep host %d to CPUs of its own: %s", host, strerror(errno));
}

/* In the child: becomes the rank. */
__attribute__((noreturn)) static void become(struct launch *launch, int rank, pid_t parent) {
  const struct host *host = &launch->hosts[launch->ranks[rank].host];
  int given = 0, count = 0;
  while (launch->argv[given])
    given++;
  char **words = message_allocate((size_t)given + 6, sizeof *words);
  char ip[] = "ip", netns[] = "netns", exec[] = "exec";
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(EXIT_BAD); /* it ended before prctl */
  sigprocmask(SIG_UNBLOCK, &launch->signals, NULL);
  if (launch->options->is_split_cpus)
    keep_to_own_cpus(launch->ranks[rank].host, launch->host_count);
  set_environment(launch, rank);
  if (host->space) {
    words[count++] = ip, words[count++] = netns, words[count++] = exec;
    words[count++] = (char *)(uintptr_t)host->space;
  } else if (host->command) {
    words[count++] = (char *)(uintptr_t)host->command;
  }
  words[count++] = launch->program;
  memcpy(words + count, launch->argv + 1, (size_t)given * sizeof *words);
  if (freopen("/dev/null", "r", stdin))
    execvp(words[0], words);
  message_write("cannot run %s: %s", words[0], strerror(errno));
  _exit(EXIT_BAD);
}

static void start_rank(struct launch *launch, int rank) {
  pid_t parent = getpid(), pid = fork();
  if (pid == 0)
    become(launch, rank, parent);
  launch->ranks[rank].pid = pid > 0 ? pid : 0;
  if (pid < 0) {
    message_write("cannot start rank %d: %s", rank, strerror(errno));
    launch->status = EXIT_BAD;
  }
}

/* ---- ending ---- */

/* Reports how a rank ended, if it failed. Wrong values are no failure of the rank that found them.
 */
static void take_end(struct launch *launch, int rank, int status) {
  char name[WORLD_NAME_MAX];
  world_name_process(name, rank, launch->options->gpus,
                     launch->hosts[launch->ranks[rank].host].name);
  launch->ranks[rank].pid = 0;
  int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (exit_status == EXIT_GOOD)
    return;
  if (launch->status == EXIT_GOOD)
    launch->status = exit_status == EXIT_WRONG_USE ? EXIT_WRONG_USE : EXIT_BAD;
  if (WIFSIGNALED(status) && !launch->has_signalled)
    message_write("%s: ended by signal %d (%s)", name, WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
  else if (WIFEXITED(status) && exit_status != EXIT_RANK_SAW_WRONG)
    message_write("%s: failed, exit status %d", name, exit_status);
}

/* How many are left. */
static int reap(struct launch *launch) {
  int status, running = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int rank = 0; rank < launch->count; rank++) {
      if (launch->ranks[rank].pid == pid)
        take_end(launch, rank, status);
    }
  }
  for (int rank = 0; rank < launch->count; rank++)
    running += launch->ranks[rank].pid > 0;
  return running;
}

static void signal_ranks(struct launch *launch, int signal) {
  launch->has_signalled = true;
  for (int rank = 0; rank < launch->count; rank++) {
    if (launch->ranks[rank].pid > 0)
      kill(launch->ranks[rank].pid, signal);
  }
}

/* Deadlines move from "never" to the grace period, then SIGTERM, then SIGKILL. */
static void wait_for_ranks(struct launch *launch, uint64_t deadline_ns) {
  int strikes = 0; /* 1: ranks were sent SIGTERM; 2: they were killed */
  bool is_ending = false;
  while (reap(launch)) {
    uint64_t now_ns = clock_now_ns();
    struct timespec left = clock_timespec(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    int signal = sigtimedwait(&launch->signals, NULL, &left);
    bool is_interrupted = signal > 0 && signal != SIGCHLD;
    bool is_late = clock_now_ns() >= deadline_ns;
    if (is_interrupted) {
      message_write("ended by signal %d", signal);
      launch->status = 128 + signal;
    } else if (is_late && !is_ending && strikes == 0) {
      message_write("no time left (--timeout)");
      launch->status = EXIT_BAD;
    }
    if (is_interrupted || is_late) {
      is_ending = true;
      signal_ranks(launch, strikes++ ? SIGKILL : SIGTERM);
      deadline_ns = clock_now_ns() + RANKS_KILL_NS;
    } else if (!is_ending && reap(launch) && launch->status != EXIT_GOOD) {
      is_ending = true;
      deadline_ns = clock_now_ns() + launch->options->grace_ns + RANKS_GRACE_NS;
    }
  }
}

/* Where this program is, by the name that it was called by. */
static void name_program(const char *called, char program[PATH_MAX]) {
  const char *slash = strrchr(called, '/');
  ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);
  program[length > 0 ? length : 0] = '\0';
  char *name = strrchr(program, '/');
  size_t room = name ? (size_t)(program + PATH_MAX - ++name) : 0;
  if (!name || snprintf(name, room, "%s", slash ? slash + 1 : called) >= (int)room)
    message_fail("/proc/self/exe: %s", strerror(errno));
}

int ranks_run(const struct options *options, char **argv) {
  static struct launch launch; /* large */
  launch = (struct launch){ .options = options, .argv = argv };
  int status = read_hosts(&launch);
  if (status != EXIT_GOOD)
    return status;
  name_program(argv[0], launch.program);
  world_own_address(launch.address, (int)getpid());
  launch.count = launch.host_count * options->ppn;
  launch.ranks = message_allocate((size_t)launch.count, sizeof *launch.ranks);
  sigemptyset(&launch.signals);
  static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    sigaddset(&launch.signals, signals[i]);
  sigprocmask(SIG_BLOCK, &launch.signals, NULL);
  for (int rank = 0; rank < launch.count && launch.status == EXIT_GOOD; rank++) {
    launch.ranks[rank] =
        (struct rank){ .host = rank / options->ppn, .local_rank = rank % options->ppn };
    start_rank(&launch, rank);
  }
  /* The ranks check the time limit themselves and report what they were doing; this is for those
   * that cannot. */
  wait_for_ranks(&launch, options->timeout_ns
                              ? clock_now_ns() + options->timeout_ns + RANKS_GRACE_NS
                              : UINT64_MAX);
  world_forget_address(launch.address); /* rank 0 has done so, if all ranks came that far */
  free(launch.ranks);
  return launch.status;
}
