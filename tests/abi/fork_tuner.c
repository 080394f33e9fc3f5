/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_tuner.h. */
#include "tests/abi/fork_tuner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/tuner_numbers.h"
#include "tuner_plugin/abi/tuner_abi.h"
#include "tests/abi/net_calls.h"

enum { FORKS = 100, CHILD_S = 20, RANKS = 8, NODES = 2 };

static atomic_bool must_stop;

static void *open_and_close_v1(void *argument) {
  const struct tuner_abi_v1 *tuner = argument;
  while (!atomic_load(&must_stop)) {
    CHECK(tuner->init(RANKS, NODES, NULL) == NCCL_SUCCESS);
    CHECK(tuner->destroy() == NCCL_SUCCESS);
  }
  return NULL;
}

static void *open_and_close_v7(void *argument) {
  const struct tuner_abi_v6 *tuner = argument;
  while (!atomic_load(&must_stop)) {
    void *context = NULL;
    CHECK(tuner->init(&context, 1, RANKS, NODES, NULL, NULL, NULL) == NCCL_SUCCESS);
    CHECK(tuner->finalize(context) == NCCL_SUCCESS);
  }
  return NULL;
}

static void call_v1(const struct tuner_abi_v1 *tuner) {
  int algo = -1, proto = -1, channels = 3;
  CHECK(tuner->init(RANKS, NODES, NULL) != NCCL_SUCCESS);
  CHECK(tuner->getCollInfo(HOST_ALLREDUCE, 1 << 20, 0, 0, 1, &algo, &proto, &channels) ==
        NCCL_SUCCESS);
  CHECK(algo == -1 && proto == -1 && channels == 3);
  CHECK(tuner->destroy() == NCCL_SUCCESS);
}

static void call_v7(const struct tuner_abi_v6 *tuner, void *context) {
  float costs[HOST_ALGOS_MAX * HOST_PROTOS];
  int channels = 3;
  size_t chunk = 1 << 17;
  void *made = NULL;
  for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
    costs[i] = (float)(i + 1);
  }
  CHECK(tuner->init(&made, 1, RANKS, NODES, NULL, NULL, NULL) != NCCL_SUCCESS && !made);
  CHECK(tuner->getCollInfo(context, HOST_ALLREDUCE, 1 << 20, 1, (float **)costs, HOST_ALGOS_MAX,
                           HOST_PROTOS, 0, &channels) == NCCL_SUCCESS);
  for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
    CHECK(costs[i] == (float)(i + 1));
  }
  CHECK(tuner->getChunkSize(context, HOST_ALLREDUCE, 1 << 20, HOST_RING, HOST_SIMPLE, 2, &chunk) ==
        NCCL_SUCCESS);
  CHECK(channels == 3 && chunk == 1 << 17);
  CHECK(tuner->finalize(context) == NCCL_SUCCESS);
}

void fork_tuner(int net_version) {
  const char *path = getenv("STRATUS_TEST_TUNER_PLUGIN");
  void *library = dlopen(path ? path : "build/lib/libnccl-tuner-stratus.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  bool is_v1 = net_version == 7;
  void *table = dlsym(library, is_v1 ? "ncclTunerPlugin_v1" : "ncclTunerPlugin_v7"),
       *context = NULL;
  CHECK(table);
  /* The example profile has rows that fit, so a choice would show. */
  setenv("STRATUS_PROFILE", "tuner_plugin/profiles/example.profile", 1);
  if (!is_v1) {
    CHECK(((struct tuner_abi_v6 *)table)->init(&context, 1, RANKS, NODES, NULL, NULL, NULL) ==
          NCCL_SUCCESS);
  }
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_create(&threads[i], NULL, is_v1 ? open_and_close_v1 : open_and_close_v7, table) ==
          0);
  }
  CHECK(!is_v1 || ((struct tuner_abi_v1 *)table)->init(RANKS, NODES, NULL) == NCCL_SUCCESS);
  for (int i = 0; i < FORKS; i++) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(CHILD_S);
      is_v1 ? call_v1(table) : call_v7(table, context);
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  atomic_store(&must_stop, true);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
}
