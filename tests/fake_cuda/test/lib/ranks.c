/* SPDX-License-Identifier: Apache-2.0 */
/* One process per rank. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/fake_cuda/test/lib/ranks.h"

static struct {
  pthread_barrier_t barrier;
  ncclUniqueId id;
  long wrong;
} * shared;

static int start(int n, int (*run)(int rank, void *arg), void *arg, pid_t *children) {
  for (int rank = 0; rank < n; rank++) {
    children[rank] = fork();
    if (children[rank] < 0)
      return errno;
    if (children[rank])
      continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = run(rank, arg);
    fflush(stdout);
    _exit(status);
  }
  return 0;
}

int ranks_run(int n, int (*run)(int rank, void *arg), void *arg) {
  pthread_barrierattr_t attr;
  pid_t *children = calloc((size_t)n, sizeof *children);
  int failed = 0;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_init(&attr);
  pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attr, (unsigned)n);
  fflush(stdout);
  if (start(n, run, arg, children))
    failed++;
  for (int left = n; left; left--) {
    int status;
    pid_t pid = wait(&status);
    if (pid < 0)
      break;
    if (!status)
      continue;
    failed++;
    for (int rank = 0; rank < n; rank++) {
      if (children[rank] != pid && children[rank] > 0)
        kill(children[rank], SIGKILL);
    }
    while (wait(NULL) > 0)
      ;
    break;
  }
  free(children);
  return failed;
}

void ranks_barrier(void) {
  pthread_barrier_wait(&shared->barrier);
}

void ranks_add_wrong(long count) {
  __atomic_add_fetch(&shared->wrong, count, __ATOMIC_RELAXED);
}

long ranks_wrong(void) {
  return __atomic_load_n(&shared->wrong, __ATOMIC_RELAXED);
}

ncclUniqueId ranks_unique_id(int rank) {
  if (!rank)
    CHECK(ncclGetUniqueId(&shared->id));
  ranks_barrier();
  return shared->id;
}
