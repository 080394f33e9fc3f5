/* SPDX-License-Identifier: Apache-2.0 */
/* launch: one process per rank, `PREFIX env NAME=VALUE... stratus-coll ARGUMENTS`, so that
 * variables and arguments reach every kind of host in the same way. */
#include "tuner_plugin/tools/coll/launch.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tuner_plugin/tools/coll/connect.h"
#include "tuner_plugin/tools/coll/handed_over.h"
#include "tuner_plugin/tools/coll/hosts.h"
#include "tuner_plugin/tools/coll/message.h"
#include "tuner_plugin/tools/coll/world.h"

/* How long the other ranks may continue after one has failed: they notice within a tenth of a
 * second, and their messages should get out. */
static const uint64_t grace_ns = 3 * NS_PER_S, kill_ns = 2 * NS_PER_S;

enum { ARGV_MAX = 512, TOKEN_BYTES = 32 };

struct rank {
  pid_t pid; /* 0 when it has ended */
  struct host *host;
};

struct launch {
  const struct options *options;
  char **argv; /* of this program */
  struct hosts hosts;
  char program[PATH_MAX];
  char address[256];
  unsigned long long run; /* tells runs apart; no secret */
  char token[2 * TOKEN_BYTES + 1];
  struct rank *ranks;
  int count, status;
  bool has_signalled; /* ranks were asked to end: their exit status is not reported */
};

/* ---- starting ---- */

static void choose_address(struct launch *launch) {
  const char *set = getenv("STRATUS_COLL_ADDR");
  if (!set || !*set)
    set = launch->options->address;
  if (set && *set) {
    snprintf(launch->address, sizeof launch->address, "%s", set);
  } else if (hosts_is_one_machine(&launch->hosts)) {
    connect_own_address(launch->run, launch->address, sizeof launch->address);
  } else if (launch->hosts.hosts[0].kind == HOST_SSH) {
    const char *at = strchr(launch->hosts.hosts[0].text, '@');
    snprintf(launch->address, sizeof launch->address, "%.200s:%u",
             at ? at + 1 : launch->hosts.hosts[0].text, 20000 + (unsigned)(launch->run % 10000));
  } else {
    message_fail(
        "give --address HOST:PORT, an address of the first host (%s) that the others can reach",
        launch->hosts.hosts[0].name);
  }
}

struct words {
  const struct host *host;
  char *argv[ARGV_MAX];
  int count;
};

static void add_word(struct words *words, const char *word) {
  if (words->count + 1 == ARGV_MAX)
    message_fail("more than %d arguments", ARGV_MAX);
  words->argv[words->count++] = hosts_quote(words->host, word);
}

__attribute__((format(printf, 2, 3))) static void add_format(struct words *words,
                                                             const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  add_word(words, text);
}

static bool reads_handed_over(const struct host *host) {
  return host->kind == HOST_SSH || host->kind == HOST_COMMAND;
}

static bool is_set_for_ranks(const struct options *options, const char *name) {
  size_t length = strlen(name);
  for (int i = 0; i < options->env_count; i++) {
    if (!strncmp(options->env[i], name, length) && strchr("=", options->env[i][length]))
      return true;
  }
  return false;
}

static void add_environment(const struct launch *launch, int rank, struct words *words) {
  const struct options *o = launch->options;
  int host = rank / o->ppn;
  bool is_local = true;
  for (int i = 0; i < launch->hosts.count; i++)
    is_local = is_local && launch->hosts.hosts[i].kind == HOST_LOCAL;
  add_format(words, "STRATUS_COLL_RANK=%d", rank);
  add_format(words, "STRATUS_COLL_SIZE=%d", launch->count);
  add_format(words, "STRATUS_COLL_LOCAL_RANK=%d", rank % o->ppn);
  add_format(words, "STRATUS_COLL_LOCAL_SIZE=%d", o->ppn);
  add_format(words, "STRATUS_COLL_ADDR=%s", launch->address);
  if (reads_handed_over(&launch->hosts.hosts[host]))
    add_word(words, HANDED_OVER_STDIN "=1");
  add_format(words, "STRATUS_COLL_HOST=%s", launch->hosts.hosts[host].name);
  add_format(words, "STRATUS_COLL_LOCAL=%d", is_local);
  /* NCCL takes processes with different ids for different hosts: so they use the network. */
  if (!is_set_for_ranks(o, "NCCL_HOSTID"))
    add_format(words, "NCCL_HOSTID=stratus-coll-%llx-%d", launch->run, host);
  for (int i = 0; i < o->env_count; i++) {
    if (strchr(o->env[i], '='))
      add_word(words, o->env[i]);
  }
}

/* What ranks of other machines read, and of commands that may run there; those of this one inherit
 * the same. */
static int open_handed_over(const struct launch *launch) {
  static struct handed_over all;
  all.length = 0;
  bool fits = handed_over_add(&all, HANDED_OVER_TOKEN, launch->token);
  for (int i = 0; i < launch->options->env_count; i++) {
    const char *name = launch->options->env[i];
    fits = fits && (strchr(name, '=') || handed_over_add(&all, name, getenv(name)));
  }
  if (!fits)
    message_fail("--env: the values are longer than %d bytes", HANDED_OVER_MAX);
  int input = handed_over_pipe(&all);
  if (input < 0)
    message_fail("cannot make a pipe: %s", strerror(errno));
  return input;
}

/* In the child: of the CPUs that this process may use, every n-th for each of n hosts. */
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
__attribute__((noreturn)) static void become(char **words, pid_t parent, int input) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(EXIT_BAD); /* it ended before prctl */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (input < 0 ? !freopen("/dev/null", "r", stdin) : dup2(input, STDIN_FILENO) < 0)
    _exit(EXIT_BAD);
  execvp(words[0], words);
  message_write("cannot run %s: %s", words[0], strerror(errno));
  _exit(EXIT_BAD);
}

static void start_rank(struct launch *launch, int rank) {
  struct words *words = calloc(1, sizeof *words);
  struct rank *r = &launch->ranks[rank];
  if (!words)
    message_fail("out of memory");
  r->host = &launch->hosts.hosts[rank / launch->options->ppn];
  int prefix = hosts_prefix(r->host, words->argv);
  words->host = r->host;
  words->count = prefix;
  add_word(words, "env");
  add_environment(launch, rank, words);
  add_word(words, launch->program);
  for (char **argument = launch->argv + 1; *argument; argument++)
    add_word(words, *argument);
  pid_t parent = getpid();
  int input = reads_handed_over(r->host) ? open_handed_over(launch) : -1;
  r->pid = fork();
  if (r->pid == 0) {
    if (launch->options->is_split_cpus)
      keep_to_own_cpus(rank / launch->options->ppn, launch->hosts.count);
    setenv(HANDED_OVER_TOKEN, launch->token, 1);
    become(words->argv, parent, input);
  }
  if (input >= 0)
    close(input);
  for (int i = prefix; i < words->count; i++)
    free(words->argv[i]);
  free(words);
  if (r->pid < 0) {
    message_write("cannot start rank %d: %s", rank, strerror(errno));
    r->pid = 0;
    launch->status = EXIT_BAD;
  }
}

/* ---- ending ---- */

/* Reports how a rank ended, if it failed. Wrong values are no failure of the rank that found them.
 */
static void take_end(struct launch *launch, int rank, int status) {
  char name[WORLD_NAME_MAX];
  world_name_process(name, rank, launch->options->gpus, launch->ranks[rank].host->name);
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

static int count_running(const struct launch *launch) {
  int running = 0;
  for (int rank = 0; rank < launch->count; rank++)
    running += launch->ranks[rank].pid > 0;
  return running;
}

static void reap(struct launch *launch) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int rank = 0; rank < launch->count; rank++) {
      if (launch->ranks[rank].pid == pid)
        take_end(launch, rank, status);
    }
  }
}

static void signal_ranks(struct launch *launch, int signal) {
  launch->has_signalled = true;
  for (int rank = 0; rank < launch->count; rank++) {
    if (launch->ranks[rank].pid > 0)
      kill(launch->ranks[rank].pid, signal);
  }
}

/* Waits for a signal that `signals` holds, at most until `deadline_ns`; 0 if none came. */
static int wait_for_signal(const sigset_t *signals, uint64_t deadline_ns) {
  uint64_t now_ns = clock_now_ns();
  uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
  struct timespec left = clock_timespec(left_ns);
  int signal = sigtimedwait(signals, NULL, &left);
  return signal > 0 ? signal : 0;
}

/* Deadlines move from "never" to the grace period, then SIGTERM, then SIGKILL. */
static void wait_for_ranks(struct launch *launch, const sigset_t *signals, uint64_t deadline_ns) {
  int strikes = 0; /* 1: ranks were sent SIGTERM; 2: they were killed */
  bool is_ending = false;
  while (count_running(launch)) {
    int signal = wait_for_signal(signals, deadline_ns);
    reap(launch);
    bool is_interrupted = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
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
      deadline_ns = clock_now_ns() + kill_ns;
    } else if (launch->status != EXIT_GOOD && !is_ending) {
      is_ending = true;
      deadline_ns = clock_now_ns() + launch->options->grace_ns + grace_ns;
    }
  }
}

static int draw_token(struct launch *launch) {
  uint8_t token[TOKEN_BYTES];
  if (getrandom(&launch->run, sizeof launch->run, 0) != (ssize_t)sizeof launch->run ||
      getrandom(token, sizeof token, 0) != (ssize_t)sizeof token)
    return -1;
  for (size_t i = 0; i < sizeof token; i++)
    snprintf(launch->token + 2 * i, 3, "%02x", token[i]);
  return 0;
}

int launch_run(const struct options *options, char **argv) {
  struct launch launch = { .options = options, .argv = argv };
  char error[512];
  if (hosts_parse(&launch.hosts, options->hosts, error, sizeof error)) {
    message_write("%s", error);
    return EXIT_WRONG_USE;
  }
  ssize_t length = readlink("/proc/self/exe", launch.program, sizeof launch.program - 1);
  if (length < 0 || draw_token(&launch))
    message_fail("/proc/self/exe, getrandom: %s", strerror(errno));
  choose_address(&launch);
  launch.count = launch.hosts.count * options->ppn;
  launch.ranks = calloc((size_t)launch.count, sizeof *launch.ranks);
  if (!launch.ranks)
    message_fail("out of memory");
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  for (int rank = 0; rank < launch.count && launch.status == EXIT_GOOD; rank++)
    start_rank(&launch, rank);
  /* The ranks check the time limit themselves and report what they were doing; this is for those
   * that cannot. */
  uint64_t deadline_ns =
      options->timeout_ns ? clock_now_ns() + options->timeout_ns + grace_ns : UINT64_MAX;
  wait_for_ranks(&launch, &signals, deadline_ns);
  connect_forget(launch.address); /* rank 0 has done so, if all ranks came that far */
  free(launch.ranks);
  hosts_free(&launch.hosts);
  return launch.status;
}
