/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators one after the other, and many at once, of two ranks that are hosts of their own:
 * what the process has of descriptors, threads and memory does not grow.
 *
 *   many [IN-TURN [AT-ONCE]]      500 and 64 */
#include <cuda_runtime.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/test/lib/expect.h"
#include "tests/fake_cuda/test/lib/ranks.h"

enum {
  COUNT = 1000, /* elements */
  PARTS = 10,   /* the process is looked at after each tenth */
  AT_ONCE_MAX = 1000,
  SETTLE_MS = 5000, /* only a busy machine takes long */
  /* What the allocator keeps comes and goes by less, in kB: 12 in 20 communicators (2026-11-26).
   * With 500, a KiB that each leaves is more. */
  MEMORY_SLACK_KB = 400,
};

struct plan {
  int in_turn, at_once;
};

struct traces {
  int descriptors, threads;
  long memory_kb;
};

static int entries(const char *path) {
  int count = 0;
  DIR *directory = opendir(path);
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static long memory_kb(void) {
  char line[128];
  long anonymous = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    sscanf(line, "RssAnon: %ld", &anonymous);
  fclose(status);
  return anonymous;
}

static struct traces look(void) {
  return (struct traces){ entries("/proc/self/fd"), entries("/proc/self/task"), memory_kb() };
}

/* Threads of NCCL and of the emulated GPU end a moment after what they were for. */
static struct traces look_again(struct traces most) {
  struct traces now = look();
  for (int i = 0;
       i < SETTLE_MS && (now.threads > most.threads || now.descriptors > most.descriptors); i++) {
    usleep(1000);
    now = look();
  }
  return now;
}

static void print(const char *when, int number, struct traces traces) {
  printf("%s %d: %d descriptors, %d threads, %ld kB\n", when, number, traces.descriptors,
         traces.threads, traces.memory_kb);
}

/* The identifier of one communicator is not that of the next until both ranks have it. */
static ncclComm_t begin(int rank) {
  ncclComm_t comm;
  ncclUniqueId id = ranks_unique_id(rank);
  ranks_barrier();
  CHECK(ncclCommInitRank(&comm, 2, id, rank));
  return comm;
}

static void sum(ncclComm_t comm, float *buffer, cudaStream_t stream) {
  CHECK(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
  CHECK(cudaStreamSynchronize(stream));
}

static void run_in_turn(int rank, int count, float *buffer, cudaStream_t stream) {
  struct traces first = { 0, 0, 0 };
  for (int i = 1; i <= count; i++) {
    ncclComm_t comm = begin(rank);
    sum(comm, buffer, stream);
    CHECK(ncclCommDestroy(comm));
    if (i % (count / PARTS) == 0) {
      struct traces now = first.threads ? look_again(first) : look();
      if (!rank)
        print("in turn", i, now);
      if (i == 2 * (count / PARTS)) /* the first tenth warms up */
        first = now;
      EXPECT(!first.threads || now.descriptors <= first.descriptors);
      EXPECT(!first.threads || now.threads <= first.threads);
      EXPECT(!first.threads || now.memory_kb <= first.memory_kb + MEMORY_SLACK_KB);
    }
  }
}

static void run_at_once(int rank, int count, float *buffer, cudaStream_t stream) {
  static ncclComm_t comms[AT_ONCE_MAX];
  struct traces before = look();
  for (int i = 0; i < count; i++)
    comms[i] = begin(rank);
  for (int i = 0; i < count; i++)
    sum(comms[i], buffer, stream);
  if (!rank)
    print("at once", count, look());
  for (int i = 0; i < count; i++)
    CHECK(ncclCommDestroy(comms[i]));
  struct traces now = look_again(before);
  if (!rank)
    print("afterwards", 0, now);
  EXPECT(now.descriptors <= before.descriptors);
  EXPECT(now.threads <= before.threads);
}

static int run_rank(int rank, void *arg) {
  const struct plan *plan = arg;
  cudaStream_t stream;
  float *buffer;
  char host[16];
  snprintf(host, sizeof host, "host%d", rank);
  setenv("NCCL_HOSTID", host, 1);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc((void **)&buffer, COUNT * sizeof *buffer));
  run_in_turn(rank, plan->in_turn, buffer, stream);
  run_at_once(rank, plan->at_once, buffer, stream);
  return expect_report();
}

int main(int argc, char **argv) {
  struct plan plan = { argc > 1 ? atoi(argv[1]) : 500, argc > 2 ? atoi(argv[2]) : 64 };
  if (plan.in_turn < 2 * PARTS || plan.at_once < 1 || plan.at_once > AT_ONCE_MAX) {
    fprintf(stderr, "usage: many [IN-TURN [AT-ONCE]], at least 20 and 1\n");
    return 2;
  }
  return ranks_run(2, run_rank, &plan) ? 1 : 0;
}
