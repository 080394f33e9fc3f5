/* SPDX-License-Identifier: Apache-2.0 */
/* See checked_job.h. */
#include "common/tools/checked_job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/launcher.h"
#include "common/tools/check_socket.h"
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
    verdict_print(job->verdict, is_good, check_socket_name_of, out);
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
  job->events = check_socket_open();
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
  check_socket_read(job->events, job->verdict, clock_now_ns());
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
  check_socket_read(job->events, job->verdict, clock_now_ns());
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
