/* SPDX-License-Identifier: Apache-2.0 */
/* See checked_job.h. */
#include "common/tools/checked_job.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/launcher.h"
#include "common/random.h"
#include "common/tools/limits.h"
#include "common/tools/one_voice.h"
#include "common/tools/verdict.h"

struct checked_job {
  struct verdict *verdict;
  int events; /* descriptors */
  int signals;
  pid_t child;                 /* 0 when it has ended */
  int status;                  /* of the child */
  struct launcher_place place; /* of this process; size 0: no launcher started it */
  bool goes_on;
  bool is_stopping, is_told;
  uint64_t kill_at_ns;
};

/* Room for the events of ten thousand ranks that start at once, of 1 KiB each in the kernel. */
enum { RECEIVE_BYTES = 10 << 20, ADDRESSES_AT_MOST = 12 };

static char token[CHECK_TOKEN_CHARS + 1];

/* ---- the socket ---- */

static int open_socket(in_port_t *port) {
  int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_storage address = { .ss_family = AF_INET6 };
  int off = 0, room = RECEIVE_BYTES;
  if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
      bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in6)) != 0) {
    if (fd >= 0) {
      close(fd);
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.ss_family = AF_INET;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in)) != 0) {
      return -errno;
    }
  }
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  }
  socklen_t bytes = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
    return -errno;
  }
  *port = ((struct sockaddr_in *)&address)->sin_port; /* at the same place for IPv6 */
  return fd;
}

/* "10.0.0.1:4000"; false for an address that other hosts cannot use. */
static bool print_address(const struct ifaddrs *interface, in_port_t port, FILE *out) {
  const struct sockaddr *address = interface->ifa_addr;
  char text[INET6_ADDRSTRLEN];
  if (!address || !(interface->ifa_flags & IFF_UP)) {
    return false;
  }
  bool is_v4 = address->sa_family == AF_INET;
  const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
  if (!is_v4 &&
      (address->sa_family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(v6) || IN6_IS_ADDR_LOOPBACK(v6))) {
    return false;
  }
  getnameinfo(address, is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), text,
              sizeof text, NULL, 0, NI_NUMERICHOST);
  fprintf(out, is_v4 ? "%s:%u" : "[%s]:%u", text, (unsigned)ntohs(port));
  return true;
}

static int set_variable(in_port_t port) {
  struct ifaddrs *interfaces = NULL;
  char *value = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&value, &bytes);
  if (!out || getifaddrs(&interfaces) != 0) {
    return -errno;
  }
  fprintf(out, "%s@", token);
  int count = 0;
  for (const struct ifaddrs *each = interfaces; each && count < ADDRESSES_AT_MOST;
       each = each->ifa_next) {
    if (print_address(each, port, out)) {
      fputc(',', out);
      count++;
    }
  }
  fclose(out);
  freeifaddrs(interfaces);
  value[strlen(value) - (count > 0)] = '\0'; /* the last comma */
  int rc = count == 0 ? -EADDRNOTAVAIL : setenv(CHECK_VARIABLE, value, 1) == 0 ? 0 : -errno;
  free(value);
  return rc;
}

/* Opens the socket and sets STRATUS_CHECK for the job. The descriptor, or negative errno. */
static int listen_for_events(void) {
  uint64_t drawn[2];
  in_port_t port = 0;
  int error = random_secret(drawn, sizeof drawn), fd = error ? error : open_socket(&port);
  if (fd < 0) {
    return fd;
  }
  snprintf(token, sizeof token, "%016llx%016llx", (unsigned long long)drawn[0],
           (unsigned long long)drawn[1]);
  error = set_variable(port);
  return error ? error : fd;
}

enum { READ_MAX = 1024 }; /* datagrams; net.core.rmem_default holds some 300 */

/* Takes all events that have arrived. */
static void hear(struct checked_job *job) {
  char bytes[CHECK_DATAGRAM_MAX];
  struct check_event event;
  ssize_t length = recv(job->events, bytes, sizeof bytes, 0);
  /* So many at most, as somebody may send faster than this reads. */
  for (int i = 0; i < READ_MAX && length >= 0;
       i++, length = recv(job->events, bytes, sizeof bytes, 0)) {
    if (check_event_parse(bytes, (size_t)length, token, &event)) {
      verdict_take(job->verdict, &event, clock_now_ns());
    }
  }
}

/* ---- names ---- */

/* In a process of its own, as it may wait for name servers. */
static void look_up(const char *text, int answer) {
  const struct addrinfo number = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
  struct addrinfo *address;
  char name[NI_MAXHOST];
  if (getaddrinfo(text, NULL, &number, &address) == 0 &&
      getnameinfo(address->ai_addr, address->ai_addrlen, name, sizeof name, NULL, 0, NI_NAMEREQD) ==
          0) {
    ssize_t ignored = write(answer, name, strlen(name));
    (void)ignored;
  }
}

/* The host name of an address, from /etc/hosts or a name server; NULL: it has none. The text lives
 * until the next call. */
static const char *name_of(const char *address) {
  static char name[NI_MAXHOST];
  int ends[2];
  if (pipe(ends) != 0) {
    return NULL;
  }
  pid_t child = fork();
  if (child == 0) {
    look_up(address, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  struct pollfd waiting = { .fd = ends[0], .events = POLLIN };
  ssize_t length = 0;
  if (child > 0 && poll(&waiting, 1, CHECK_NAME_MS) == 1) {
    length = read(ends[0], name, sizeof name - 1);
  }
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  name[length > 0 ? length : 0] = '\0';
  return length > 0 ? name : NULL;
}

/* ---- what is said ---- */

static void say_lines(const char *text) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    cli_fail("%.*s", (int)length, text);
    text += length + (text[length] == '\n');
  }
}

/* One of a launcher's, so the others have checks of their own. */
static bool is_rank(const struct checked_job *job) {
  return job->place.size > 1;
}

static void tell(const struct checked_job *job, bool is_good, const char *head) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (out) {
    fprintf(out, "%s\n", head);
    verdict_print(job->verdict, is_good, name_of, out);
    fclose(out);
    say_lines(text);
  }
  free(text);
}

/* Behind a launcher the first rank of a host speaks for those that come to the same. */
static bool may_speak(const struct checked_job *job) {
  return !is_rank(job) || one_voice_take(&job->place);
}

static void tell_failure(const struct checked_job *job, const char *what) {
  char head[256];
  if (!may_speak(job)) {
    return;
  }
  snprintf(head, sizeof head, "check failed%s%s", *what ? ": " : "", what);
  if (is_rank(job)) {
    snprintf(head, sizeof head, "check failed%s%s (rank %d, for all ranks of its host)",
             *what ? ": " : "", what, job->place.rank);
  }
  tell(job, false, head);
}

/* ---- the command ---- */

__attribute__((noreturn)) static void become(char **command) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  execvp(command[0], command);
  int error = errno;
  cli_fail("%s: %s", command[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

/* Its processes whose parents have ended become ours, so that none is left. */
static int start(struct checked_job *job, char **command, char **(*pass_on)(char **)) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int *each = (const int[]){ SIGCHLD, SIGINT, SIGTERM, SIGHUP, 0 }; *each; each++) {
    sigaddset(&signals, *each);
  }
  sigprocmask(SIG_BLOCK, &signals, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  job->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  job->events = listen_for_events();
  job->verdict = verdict_new(is_rank(job));
  if (job->signals < 0 || job->events < 0 || !job->verdict) {
    return cli_fail("the job cannot be checked: %s",
                    strerror(job->events < 0 ? -job->events : errno));
  }
  command = pass_on(command);
  job->child = fork();
  if (job->child == 0) {
    become(command);
  }
  return job->child < 0 ? cli_fail("%s: %s", command[0], strerror(errno)) : CLI_OK;
}

/* True while there are processes of the job. */
static bool reap(struct checked_job *job) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == job->child) {
      job->child = 0;
      job->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  return pid == 0;
}

/* Those whose parent this process is, by now. */
static void kill_children(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
  FILE *children = fopen(path, "re");
  long pid;
  while (children && fscanf(children, "%ld", &pid) == 1) {
    kill((pid_t)pid, SIGKILL);
  }
  if (children) {
    fclose(children);
  }
}

/* A signal from the keyboard reaches the command by itself; it is meant for the whole group. */
static void forward_signals(struct checked_job *job) {
  struct signalfd_siginfo signal;
  while (read(job->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
    bool is_from_process = signal.ssi_code <= 0;
    if (signal.ssi_signo != SIGCHLD && is_from_process && job->child > 0) {
      kill(job->child, (int)signal.ssi_signo);
    }
  }
}

/* ---- the check ---- */

static void stop(struct checked_job *job, uint64_t now_ns) {
  if (job->child > 0) {
    kill(job->child, SIGTERM);
  }
  job->is_stopping = true;
  job->kill_at_ns = now_ns + CHECKED_JOB_KILL_NS;
}

static void look(struct checked_job *job) {
  hear(job);
  if (!job->is_told &&
      verdict_judge(job->verdict, clock_now_ns(), VERDICT_RUNNING) == VERDICT_FAILED) {
    job->is_told = true;
    tell_failure(job, job->goes_on ? "the job goes on (--keep-going)" : "the job is ended");
    if (!job->goes_on) {
      stop(job, clock_now_ns());
    }
  }
  if (job->is_stopping && clock_now_ns() >= job->kill_at_ns) {
    kill_children();
  }
}

/* Messages that were sent before the last process ended may arrive after that. */
static void hear_the_last(struct checked_job *job) {
  struct timespec wait = clock_timespec(2 * CHECKED_JOB_LOOK_MS * NS_PER_MS);
  nanosleep(&wait, NULL);
  hear(job);
}

/* Under a launcher rank 0 speaks for all, as any that has failed its check speaks for itself. */
static void tell_good(const struct checked_job *job) {
  char head[128];
  if (is_rank(job) && job->place.rank > 0) {
    return;
  }
  if (job->status != 0) {
    snprintf(head, sizeof head, "the job ended with status %d; it used stratus", job->status);
  } else if (is_rank(job)) {
    snprintf(head, sizeof head,
             "check passed: of %d ranks this is rank 0, others tell if theirs fails",
             job->place.size);
  } else {
    snprintf(head, sizeof head, "check passed");
  }
  tell(job, true, head);
}

static void tell_not_used(const struct checked_job *job) {
  char who[64] = "the job";
  if (is_rank(job)) {
    snprintf(who, sizeof who, "rank %d (which speaks for all of its host)", job->place.rank);
  }
  cli_fail("NCCL was not used by %s, or none of its hosts has the plugins, or NCCL_* variables "
           "did not reach them",
           who);
}

static int conclude(struct checked_job *job) {
  hear_the_last(job);
  enum verdict_moment moment = job->status == 0 ? VERDICT_ENDED : VERDICT_HAS_FAILED;
  switch (verdict_judge(job->verdict, clock_now_ns(), moment)) {
  case VERDICT_FAILED:
    if (!job->is_told) {
      tell_failure(job, "");
    }
    return CHECKED_FAILED;
  case VERDICT_DOUBT:
    if (!job->is_told) {
      tell_failure(job, "not all ranks have said that they use stratus");
    }
    return CHECKED_FAILED;
  case VERDICT_GOOD:
    tell_good(job);
    return job->status;
  case VERDICT_NOTHING:
    break;
  }
  if (may_speak(job)) {
    tell_not_used(job);
  }
  return job->status == 0 ? CHECKED_NOT_USED : job->status;
}

int checked_job_run(char **command, char **(*pass_on)(char **command), bool goes_on) {
  char error[256];
  struct checked_job job = { .goes_on = goes_on };
  if (launcher_find(&job.place, error, sizeof error) != 1) {
    job.place.size = 0;
  }
  int rc = start(&job, command, pass_on);
  if (rc != CLI_OK) {
    return rc;
  }
  /* Processes that the command leaves behind are waited for only if the job is being ended. */
  while (reap(&job) && (job.child > 0 || job.is_stopping)) {
    struct pollfd waiting[] = { { .fd = job.events, .events = POLLIN },
                                { .fd = job.signals, .events = POLLIN } };
    poll(waiting, 2, CHECKED_JOB_LOOK_MS);
    forward_signals(&job);
    look(&job);
  }
  rc = conclude(&job);
  one_voice_hold();
  verdict_free(job.verdict);
  return rc;
}
