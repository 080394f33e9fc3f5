/* SPDX-License-Identifier: Apache-2.0 */
/* job: sets up and takes down. */
#include "tests/coll/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/coll/message.h"
#include "tests/coll/pattern.h"
#include "tests/coll/watchdog.h"

/* A process may see the whole host's GPUs, or, where the launcher divides them
 * (CUDA_VISIBLE_DEVICES), only its own. */
static void choose_devices(struct job *job, const struct world *world) {
  int count = 0, gpus = job->options->gpus;
  CUDA(cudaGetDeviceCount(&count));
  int first = count == gpus ? 0 : world->local_rank * gpus;
  if (first + gpus > count)
    message_fail("GPUs %d to %d are wanted (-g %d, local rank %d), but there %s %d", first,
                 first + gpus - 1, gpus, world->local_rank, count == 1 ? "is" : "are", count);
  for (int i = 0; i < gpus; i++) {
    job->gpus[i].device = first + i;
    job->gpus[i].rank = world->rank * gpus + i;
  }
}

static void describe(const struct job_gpu *gpu, const struct world *world, struct job_rank *rank) {
  CUDA(cudaDeviceGetPCIBusId(rank->bus_id, sizeof rank->bus_id, gpu->device));
  libs_device_name(gpu->device, rank->device_name);
  memcpy(rank->host, world->host, sizeof rank->host);
  rank->pid = (int)getpid();
  rank->device = gpu->device;
}

static void exchange_descriptions(struct job *job, const struct world *world) {
  int gpus = job->options->gpus;
  struct job_rank *mine = message_allocate((size_t)gpus, sizeof *mine);
  job->all = message_allocate((size_t)job->ranks, sizeof *job->all);
  for (int i = 0; i < gpus; i++)
    describe(&job->gpus[i], world, &mine[i]);
  rendezvous_exchange(job->rendezvous, mine, job->all, (size_t)gpus * sizeof *mine);
  free(mine);
  for (int rank = 0; rank < job->ranks; rank++) {
    int same = 0;
    while (strcmp(job->all[same].host, job->all[rank].host))
      same++;
    job->hosts += same == rank;
  }
}

size_t job_buffer_bytes(const struct job *job) {
  return job->buffer_bytes + 2 * (size_t)PATTERN_GUARD_BYTES;
}

static char *allocate_buffer(const struct job *job) {
  size_t bytes = job_buffer_bytes(job);
  void *memory = NULL;
  if (job->options->is_registered)
    NCCL(ncclMemAlloc(&memory, bytes));
  else
    CUDA(cudaMalloc(&memory, bytes));
  CUDA(cudaMemset(memory, 0, bytes));
  return memory;
}

void job_allocate_buffers(struct job *job) {
  for (int i = 0; i < job->options->gpus; i++) {
    CUDA(cudaSetDevice(job->gpus[i].device));
    job->gpus[i].send = allocate_buffer(job);
    job->gpus[i].recv = allocate_buffer(job);
    CUDA(cudaDeviceSynchronize());
  }
}

static void free_buffer(const struct job *job, char *buffer) {
  if (job->options->is_registered)
    NCCL(ncclMemFree(buffer));
  else
    CUDA(cudaFree(buffer));
}

void job_free_buffers(struct job *job) {
  for (int i = 0; i < job->options->gpus; i++) {
    CUDA(cudaSetDevice(job->gpus[i].device));
    free_buffer(job, job->gpus[i].send);
    free_buffer(job, job->gpus[i].recv);
  }
}

static void register_buffers(struct job *job) {
  for (int i = 0; i < job->options->gpus; i++) {
    struct job_gpu *gpu = &job->gpus[i];
    NCCL(ncclCommRegister(gpu->comm, gpu->send, job_buffer_bytes(job), &gpu->handles[0]));
    NCCL(ncclCommRegister(gpu->comm, gpu->recv, job_buffer_bytes(job), &gpu->handles[1]));
  }
}

void job_deregister_buffers(struct job *job) {
  for (int i = 0; i < job->options->gpus && job->options->is_registered; i++) {
    NCCL(ncclCommDeregister(job->gpus[i].comm, job->gpus[i].handles[0]));
    NCCL(ncclCommDeregister(job->gpus[i].comm, job->gpus[i].handles[1]));
  }
}

void job_open_comms(struct job *job) {
  ncclUniqueId id = { { 0 } };
  watchdog_set_place("the initialization of NCCL");
  if (job->process == 0)
    NCCL(ncclGetUniqueId(&id));
  rendezvous_broadcast(job->rendezvous, &id, sizeof id);
  NCCL(ncclGroupStart());
  for (int i = 0; i < job->options->gpus; i++) {
    CUDA(cudaSetDevice(job->gpus[i].device));
    NCCL(ncclCommInitRank(&job->gpus[i].comm, job->ranks, id, job->gpus[i].rank));
  }
  NCCL(ncclGroupEnd());
  for (int i = 0; i < job->options->gpus; i++)
    watchdog_watch(job->gpus[i].comm);
  if (job->options->is_registered)
    register_buffers(job);
}

void job_open(struct job *job, const struct options *options, const struct world *world,
              struct rendezvous *rendezvous, size_t buffer_bytes) {
  *job = (struct job){ .options = options,
                       .rendezvous = rendezvous,
                       .process = world->rank,
                       .processes = world->size,
                       .ranks = world->size * options->gpus,
                       .buffer_bytes = buffer_bytes };
  job->gpus = message_allocate((size_t)options->gpus, sizeof *job->gpus);
  choose_devices(job, world);
  exchange_descriptions(job, world);
  for (int i = 0; i < options->gpus; i++) {
    CUDA(cudaSetDevice(job->gpus[i].device));
    CUDA(cudaStreamCreateWithFlags(&job->gpus[i].stream, cudaStreamNonBlocking));
  }
  job_allocate_buffers(job);
  job_open_comms(job);
}

void job_close(struct job *job) {
  job_deregister_buffers(job);
  job_free_buffers(job);
  for (int i = 0; i < job->options->gpus; i++) {
    CUDA(cudaSetDevice(job->gpus[i].device));
    CUDA(cudaStreamDestroy(job->gpus[i].stream));
  }
  /* Communicators of one process need each other to end. */
  NCCL(ncclGroupStart());
  for (int i = 0; i < job->options->gpus; i++)
    NCCL(ncclCommDestroy(job->gpus[i].comm));
  NCCL(ncclGroupEnd());
  free(job->gpus);
  free(job->all);
}
