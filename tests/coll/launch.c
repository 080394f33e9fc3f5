/* SPDX-License-Identifier: Apache-2.0 */
/* launch: one process per rank, `PREFIX env NAME=VALUE... coll ARGUMENTS`, so that
 * variables and arguments reach every kind of host in the same way. */
#include "tests/coll/launch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/host_command.h"
#include "common/host_list.h"
#include "common/random.h"
#include "tests/coll/connect.h"
#include "tests/coll/end_report.h"
#include "tests/coll/handed_over.h"
#include "tests/coll/message.h"
#include "tests/coll/world.h"
#include "tests/coll/limits.h"

struct rank {
  pid_t pid; /* 0 when it has ended */
  int host, local_rank;
};

struct launch {
  const struct options *options;
  char **argv; /* of this program */
  struct host_list hosts;
  char program[PATH_MAX];
  char address[256];
  unsigned long long run; /* tells runs apart; no secret */
  char token[PEER_TOKEN_MAX];
  struct rank *ranks;
  int count, status;
  bool has_signalled; /* ranks were asked to end: their exit status is not reported */
  int signals;        /* descriptor */
  struct end_report report;
};

/* ---- starting ---- */

static void choose_address(struct launch *launch) {
  const char *set = getenv("COLL_ADDR");
  if (!set || !*set)
    set = launch->options->address;
  if (set && *set) {
    snprintf(launch->address, sizeof launch->address, "%s", set);
  } else if (host_list_is_one_machine(&launch->hosts)) {
    connect_own_address(launch->run, launch->address, sizeof launch->address);
  } else if (launch->hosts.hosts[0].kind == HOST_SSH) {
    const char *host = host_address(&launch->hosts.hosts[0]);
    snprintf(launch->address, sizeof launch->address,
             strchr(host, ':') ? "[%.200s]:%u" : "%.200s:%u", host,
             20000 + (unsigned)(launch->run % 10000));
  } else {
    message_fail(
        "give --address HOST:PORT, an address of the first host (%s) that the others can reach",
        launch->hosts.hosts[0].name);
  }
}

__attribute__((format(printf, 2, 3))) static void add_format(struct host_command *words,
                                                             const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  host_command_add(words, text);
}

static bool reads_handed_over(const struct host *host) {
  return host->kind == HOST_SSH || host->kind == HOST_COMMAND;
}

static bool is_set_for_ranks(const struct options *options, const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < options->env.count; i++) {
    const char *given = options->env.items[i];
    if (!strncmp(given, name, length) && strchr("=", given[length]))
      return true;
  }
  return false;
}

static int processes_of(const struct launch *launch, int host) {
  int slots = launch->hosts.hosts[host].slots, ppn = launch->options->ppn;
  return ppn ? ppn : slots ? slots : 1;
}

static void add_environment(const struct launch *launch, int rank, struct host_command *words) {
  const struct options *o = launch->options;
  const struct rank *r = &launch->ranks[rank];
  const struct host *host = &launch->hosts.hosts[r->host];
  bool is_local = true;
  for (int i = 0; i < launch->hosts.count; i++)
    is_local = is_local && launch->hosts.hosts[i].kind == HOST_LOCAL;
  add_format(words, "RANK=%d", rank);
  add_format(words, "WORLD_SIZE=%d", launch->count);
  add_format(words, "LOCAL_RANK=%d", r->local_rank);
  add_format(words, "LOCAL_WORLD_SIZE=%d", processes_of(launch, r->host));
  add_format(words, "COLL_ADDR=%s", launch->address);
  if (reads_handed_over(host))
    host_command_add(words, HANDED_OVER_STDIN "=1");
  add_format(words, "COLL_HOST=%.127s", host->name);
  add_format(words, "COLL_LOCAL=%d", is_local);
  if (rank == 0)
    add_format(words, END_REPORT_VARIABLE "=%016llx", launch->run);
  /* NCCL takes processes with different ids for different hosts: so they use the network. */
  if (!is_set_for_ranks(o, "NCCL_HOSTID"))
    add_format(words, "NCCL_HOSTID=coll-%llx-%d", launch->run, r->host);
  for (size_t i = 0; i < o->env.count; i++) {
    if (strchr(o->env.items[i], '='))
      host_command_add(words, o->env.items[i]);
  }
}

/* What ranks of other machines read, and of commands that may run there; those of this one inherit
 * the same. */
static int open_handed_over(const struct launch *launch) {
  static struct handed_over all;
  all.length = 0;
  bool fits = handed_over_add(&all, HANDED_OVER_TOKEN, launch->token);
  for (size_t i = 0; i < launch->options->env.count; i++) {
    const char *name = launch->options->env.items[i];
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

/* In the child: becomes the rank. `output` is -1 for this process's own. */
__attribute__((noreturn)) static void become(char **words, pid_t parent, int input, int output) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(EXIT_BAD); /* it ended before prctl */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (input < 0 ? !freopen("/dev/null", "r", stdin) : dup2(input, STDIN_FILENO) < 0)
    _exit(EXIT_BAD);
  if (output >= 0 && dup2(output, STDOUT_FILENO) < 0)
    _exit(EXIT_BAD);
  execvp(words[0], words);
  message_write("cannot run %s: %s", words[0], strerror(errno));
  _exit(EXIT_BAD);
}

/* Of rank 0 this process reads the output. */
static int open_output(struct launch *launch, int rank) {
  char run[END_REPORT_RUN_MAX];
  if (rank > 0)
    return -1;
  snprintf(run, sizeof run, "%016llx", launch->run);
  int output = end_report_open(&launch->report, run);
  if (output < 0)
    message_fail("cannot make a pipe: %s", strerror(errno));
  return output;
}

static void start_rank(struct launch *launch, int rank) {
  struct host_command words;
  struct rank *r = &launch->ranks[rank];
  const struct host *host = &launch->hosts.hosts[r->host];
  host_command_begin(&words, host, HOST_COMMAND_SSH);
  host_command_add(&words, "env");
  add_environment(launch, rank, &words);
  host_command_add(&words, launch->program);
  for (char **argument = launch->argv + 1; *argument; argument++)
    host_command_add(&words, *argument);
  if (words.has_failed)
    message_fail("out of memory, or more than %d arguments", HOST_COMMAND_WORDS_MAX);
  pid_t parent = getpid();
  int input = reads_handed_over(host) ? open_handed_over(launch) : -1;
  int output = open_output(launch, rank);
  r->pid = fork();
  if (r->pid == 0) {
    if (launch->options->is_split_cpus)
      keep_to_own_cpus(r->host, launch->hosts.count);
    setenv(HANDED_OVER_TOKEN, launch->token, 1);
    become(words.words, parent, input, output);
  }
  if (input >= 0)
    close(input);
  if (output >= 0)
    close(output);
  host_command_free(&words);
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
  world_name_process(name, rank, launch->options->gpus,
                     launch->hosts.hosts[launch->ranks[rank].host].name);
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

/* Waits for a signal, or for rank 0's output, at most until `deadline_ns`; 0 if no signal came. */
static int wait_for_signal(struct launch *launch, uint64_t deadline_ns) {
  uint64_t now_ns = clock_now_ns();
  struct timespec left = clock_timespec(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
  struct pollfd waiting[] = { { .fd = launch->signals, .events = POLLIN },
                              { .fd = launch->report.output, .events = POLLIN } };
  struct signalfd_siginfo signal;
  ppoll(waiting, 2, &left, NULL);
  end_report_relay(&launch->report);
  return read(launch->signals, &signal, sizeof signal) == (ssize_t)sizeof signal
             ? (int)signal.ssi_signo
             : 0;
}

/* Deadlines move from "never" to the grace period, then SIGTERM, then SIGKILL. */
static void wait_for_ranks(struct launch *launch, uint64_t deadline_ns) {
  int strikes = 0; /* 1: ranks were sent SIGTERM; 2: they were killed */
  bool is_ending = false;
  while (count_running(launch)) {
    int signal = wait_for_signal(launch, deadline_ns);
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
      deadline_ns = clock_now_ns() + LAUNCH_KILL_NS;
    } else if (launch->status != EXIT_GOOD && !is_ending) {
      is_ending = true;
      deadline_ns = clock_now_ns() + launch->options->grace_ns + LAUNCH_GRACE_NS;
    }
  }
}

static int draw_token(struct launch *launch) {
  int error = random_secret(&launch->run, sizeof launch->run);
  return error ? error : peer_draw_token(launch->token);
}

/* A message and a status if the list does not fit the options. */
static int read_hosts(struct launch *launch) {
  const struct options *o = launch->options;
  char error[HOST_LIST_ERROR_MAX];
  if (host_list_read(&launch->hosts, o->hosts, error)) {
    message_write("--hosts: %s", error);
    return EXIT_WRONG_USE;
  }
  for (int i = 0; i < launch->hosts.count; i++) {
    const struct host *host = &launch->hosts.hosts[i];
    if (host->port) {
      message_write(
          "--hosts: %s:%d: more than %d processes on one host; the port of rank 0 is given "
          "by --address",
          host->name, host->port, HOST_SLOTS_MAX);
      return EXIT_WRONG_USE;
    }
    if (host->slots && o->ppn > host->slots) {
      message_write("--ppn %d: %s takes %d processes, as --hosts says", o->ppn, host->name,
                    host->slots);
      return EXIT_WRONG_USE;
    }
    launch->count += processes_of(launch, i);
  }
  return EXIT_GOOD;
}

static void place_ranks(struct launch *launch) {
  int rank = 0;
  launch->ranks = message_allocate((size_t)launch->count, sizeof *launch->ranks);
  for (int host = 0; host < launch->hosts.count; host++) {
    for (int i = 0; i < processes_of(launch, host); i++)
      launch->ranks[rank++] = (struct rank){ .host = host, .local_rank = i };
  }
}

static int open_signals(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  int descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0)
    message_fail("signalfd: %s", strerror(errno));
  return descriptor;
}

/* All ranks ended well, but the commands may have done something else. */
static void require_report(struct launch *launch) {
  if (launch->status != EXIT_GOOD || launch->report.has_come)
    return;
  message_write("nothing was run: the process of rank 0 on %s ended with status 0, but did not run "
                "coll; does its host's command run its arguments?",
                launch->hosts.hosts[launch->ranks[0].host].name);
  launch->status = EXIT_BAD;
}

/* Where this program is, by the name that it was called by. */
static bool name_program(const char *called, char program[PATH_MAX]) {
  const char *slash = strrchr(called, '/');
  ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);
  program[length > 0 ? length : 0] = '\0';
  char *name = strrchr(program, '/');
  size_t room = name ? (size_t)(program + PATH_MAX - ++name) : 0;
  return name && snprintf(name, room, "%s", slash ? slash + 1 : called) < (int)room;
}

int launch_run(const struct options *options, char **argv) {
  static struct launch launch; /* large */
  launch = (struct launch){ .options = options, .argv = argv, .report.output = -1 };
  int status = read_hosts(&launch);
  if (status != EXIT_GOOD) {
    host_list_free(&launch.hosts);
    return status;
  }
  if (!name_program(argv[0], launch.program) || draw_token(&launch))
    message_fail("/proc/self/exe, getrandom: %s", strerror(errno));
  choose_address(&launch);
  place_ranks(&launch);
  launch.signals = open_signals();
  for (int rank = 0; rank < launch.count && launch.status == EXIT_GOOD; rank++)
    start_rank(&launch, rank);
  /* The ranks check the time limit themselves and report what they were doing; this is for those
   * that cannot. */
  uint64_t deadline_ns =
      options->timeout_ns ? clock_now_ns() + options->timeout_ns + LAUNCH_GRACE_NS : UINT64_MAX;
  wait_for_ranks(&launch, deadline_ns);
  end_report_close(&launch.report);
  require_report(&launch);
  connect_forget(launch.address); /* rank 0 has done so, if all ranks came that far */
  close(launch.signals);
  free(launch.ranks);
  host_list_free(&launch.hosts);
  return launch.status;
}
