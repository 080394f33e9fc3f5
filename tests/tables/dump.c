/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the cost tables that NCCL hands to its tuner, for all five collectives and every power of
 * two, without moving a byte: the communicators are real, but every call fails as soon as the tuner
 * has seen the table, before anything is connected or launched.
 *
 *   dump NODES PPN          one process per node, PPN GPUs in each; rank 0's tables on stdout
 *
 * The program is its own tuner plugin: NCCL finds the plugin's symbols in the main program when
 * NCCL_TUNER_PLUGIN is STATIC_PLUGIN. scripts that keep the output: tests/tables/collect. */
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

extern char **environ;

enum { GPUS_MAX = 16, NODES_MAX = 256, SHIFT_FIRST = 3, SHIFT_LAST = 33, PROTOS = 3 };

#define CHECK(call)                                                                                \
  do {                                                                                             \
    int check_result = (int)(call);                                                                \
    if (check_result != 0) {                                                                       \
      fprintf(stderr, "dump: %s gave %d\n", #call, check_result);                                  \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* ---- the plugin ---- */

/* The power of two that was asked for: NCCL rounds it to a multiple of the ranks. */
static size_t asked_bytes;

static ncclResult_t print_table(int func, const float *costs, int algos) {
  static const char *const names[] = { "broadcast", "reduce", "allgather", "reducescatter",
                                       "allreduce" };
  printf("%s %zu", names[func], asked_bytes);
  for (int i = 0; i < algos * PROTOS; i++) {
    if (costs[i] >= 0) {
      printf(" %d.%d=%.9g", i / PROTOS, i % PROTOS, (double)costs[i]);
    }
  }
  putchar('\n');
  return ncclInternalError; /* ends the call here */
}

static ncclResult_t init_v3(size_t ranks, size_t nodes, void *logger, void **context) {
  (void)ranks, (void)nodes, (void)logger;
  *context = NULL;
  return ncclSuccess;
}

static ncclResult_t init_v5(void **context, uint64_t id, size_t ranks, size_t nodes, void *logger,
                            void *domains, void *constants) {
  (void)id, (void)ranks, (void)nodes, (void)logger, (void)domains, (void)constants;
  *context = NULL;
  return ncclSuccess;
}

static ncclResult_t ask_v3(void *context, int func, size_t bytes, int pipe_ops, float **table,
                           int algos, int protos, int *channels) {
  (void)context, (void)bytes, (void)pipe_ops, (void)protos, (void)channels;
  return print_table(func, (const float *)table, algos);
}

static ncclResult_t ask_v4(void *context, int func, size_t bytes, int pipe_ops, float **table,
                           int algos, int protos, int is_registered, int *channels) {
  (void)context, (void)bytes, (void)pipe_ops, (void)protos, (void)is_registered, (void)channels;
  return print_table(func, (const float *)table, algos);
}

static ncclResult_t finish(void *context) {
  (void)context;
  return ncclSuccess;
}

#define EXPORT __attribute__((visibility("default")))
struct plugin {
  const char *name;
  void *init, *ask, *finish;
};
EXPORT struct plugin ncclTunerPlugin_v3 = { "dump", (void *)init_v3, (void *)ask_v3,
                                            (void *)finish };
EXPORT struct plugin ncclTunerPlugin_v5 = { "dump", (void *)init_v5, (void *)ask_v4,
                                            (void *)finish };

/* ---- one node ---- */

static ncclComm_t comms[GPUS_MAX];

/* Fails in the tuner above, and so leaves the communicator as it was. */
static void ask(int func, size_t bytes, int ranks, void *buffer) {
  bool is_shared = func == 2 || func == 3; /* NCCL counts all ranks' parts */
  size_t count = is_shared ? bytes / (size_t)ranks : bytes;
  if (count == 0) {
    return;
  }
  ncclComm_t comm = comms[0];
  ncclResult_t result;
  switch (func) {
  case 0:
    result = ncclBroadcast(buffer, buffer, count, ncclInt8, 0, comm, NULL);
    break;
  case 1:
    result = ncclReduce(buffer, buffer, count, ncclInt8, ncclSum, 0, comm, NULL);
    break;
  case 2:
    result = ncclAllGather(buffer, buffer, count, ncclInt8, comm, NULL);
    break;
  case 3:
    result = ncclReduceScatter(buffer, buffer, count, ncclInt8, ncclSum, comm, NULL);
    break;
  default:
    result = ncclAllReduce(buffer, buffer, count, ncclInt8, ncclSum, comm, NULL);
  }
  CHECK(result != ncclInternalError);
}

static void read_id(const char *text, ncclUniqueId *id) {
  for (size_t i = 0; i < sizeof id->internal; i++) {
    unsigned byte = 0;
    sscanf(text + 2 * i, "%2x", &byte);
    id->internal[i] = (char)byte;
  }
}

static int run_node(int node, int nodes, int ppn, const char *id_text) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ncclUniqueId id;
  read_id(id_text, &id);
  CHECK(ncclGroupStart());
  for (int gpu = 0; gpu < ppn; gpu++) {
    CHECK(cudaSetDevice(gpu));
    CHECK(ncclCommInitRank(&comms[gpu], nodes * ppn, id, node * ppn + gpu));
  }
  CHECK(ncclGroupEnd());
  if (node == 0) {
    CHECK(cudaSetDevice(0));
    void *buffer = NULL; /* never read or written */
    CHECK(cudaMalloc(&buffer, 4096));
    for (int func = 0; func < 5; func++) {
      for (int shift = SHIFT_FIRST; shift <= SHIFT_LAST; shift++) {
        asked_bytes = (size_t)1 << shift;
        ask(func, asked_bytes, nodes * ppn, buffer);
      }
    }
    fflush(stdout);
  }
  _Exit(0); /* taking the communicators down would need every rank's help, for nothing */
}

/* ---- all of them ---- */

static pid_t spawn_node(const char *self, int node, int nodes, int ppn, const char *id) {
  char node_text[16], nodes_text[16], ppn_text[16];
  snprintf(node_text, sizeof node_text, "%d", node);
  snprintf(nodes_text, sizeof nodes_text, "%d", nodes);
  snprintf(ppn_text, sizeof ppn_text, "%d", ppn);
  char *arguments[] = { (char *)self, nodes_text, ppn_text, node_text, (char *)id, NULL };
  char host[32];
  snprintf(host, sizeof host, "dump-%d", node);
  setenv("NCCL_HOSTID", host, 1);
  setenv("FAKE_CUDA_GPUS", ppn_text, 1);
  setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
  setenv("NCCL_DEBUG", node == 0 ? "INFO" : "WARN", 1);
  pid_t child;
  CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ));
  return child;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 5) {
    fprintf(stderr, "usage: dump NODES PPN\n");
    return 2;
  }
  int nodes = atoi(argv[1]), ppn = atoi(argv[2]);
  if (nodes < 1 || nodes > NODES_MAX || ppn < 1 || ppn > GPUS_MAX) {
    fprintf(stderr, "dump: 1 to %d nodes, 1 to %d GPUs on each\n", NODES_MAX, GPUS_MAX);
    return 2;
  }
  if (argc == 5) {
    return run_node(atoi(argv[3]), nodes, ppn, argv[4]);
  }
  /* NICs are what the topology file says, whatever this machine has. */
  setenv("NCCL_IB_DISABLE", "1", 1);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  char id_text[2 * sizeof id.internal + 1];
  for (size_t i = 0; i < sizeof id.internal; i++) {
    snprintf(id_text + 2 * i, 3, "%02x", (unsigned char)id.internal[i]);
  }
  pid_t children[NODES_MAX];
  for (int node = 0; node < nodes; node++) {
    children[node] = spawn_node(argv[0], node, nodes, ppn, id_text);
  }
  int left = nodes, status = 0;
  while (left > 0 && waitpid(-1, &status, 0) > 0 && status == 0) {
    left--;
  }
  if (left == 0) {
    return 0;
  }
  fprintf(stderr, "dump: a node ended with status 0x%x\n", (unsigned)status);
  for (int node = 0; node < nodes; node++) {
    kill(children[node], SIGKILL);
  }
  return 1;
}
