/* SPDX-License-Identifier: Apache-2.0 */
/* job: this process's part of the run: its GPUs with their communicators, streams and buffers, and
 * the facts that all processes share.
 * Owns: all of that.  Threads: the main thread.
 * Blocks: while NCCL initializes.  Fails: ends the process with a message. */
#ifndef COLL_JOB_H
#define COLL_JOB_H

#include "tests/coll/libs.h"
#include "tests/coll/options.h"
#include "tests/coll/rendezvous.h"
#include "tests/coll/world.h"

/* What every process sends to the others about one of its GPUs; as bytes on the wire. */
struct job_rank {
  char host[128];
  char device_name[LIBS_NAME_MAX];
  char bus_id[32];
  int pid, device;
};

struct job_gpu {
  int device, rank;
  ncclComm_t comm;
  cudaStream_t stream;
  char *send, *recv; /* with room for a guard on either side of buffer_bytes */
  void *handles[2];  /* of the registrations, with -R 1 */
};

struct job {
  const struct options *options;
  struct rendezvous *rendezvous;
  int process, processes; /* this one, of how many */
  int ranks, hosts;       /* GPUs and distinct hosts of the whole run */
  struct job_rank *all;   /* one per rank */
  struct job_gpu *gpus;   /* options->gpus of them */
  size_t buffer_bytes;
  const struct contents *contents; /* to be sent; NULL: none were given */
  const void *const *arrays;       /* the same for pattern_use */
};

/* `buffer_bytes`: what the largest operation needs in either buffer. */
void job_open(struct job *job, const struct options *options, const struct world *world,
              struct rendezvous *rendezvous, size_t buffer_bytes);
void job_close(struct job *job);

/* For runs that end communicators between job_open and job_close: the parts of both. */
void job_open_comms(struct job *job);         /* watched by the watchdog, buffers registered */
void job_deregister_buffers(struct job *job); /* with -R 1; else nothing */
void job_allocate_buffers(struct job *job);
void job_free_buffers(struct job *job);
size_t job_buffer_bytes(const struct job *job); /* of each buffer, with its guards */

#endif
