/* SPDX-License-Identifier: Apache-2.0 */
/* stream: an in-order queue of ops with one worker thread, which sleeps while the queue is empty.
 * Owns: its queue and thread.  Threads: any.  Blocks: stream_wait_idle does.
 * Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_STREAM_H
#define FAKE_CUDA_STREAM_H

#include <pthread.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/op.h"

struct work;

struct CUstream_st {
  pthread_mutex_t lock;
  pthread_cond_t has_work, has_progress;
  struct work *head, **tail;
  uint64_t submitted, completed;
  bool is_started, is_stopping;
  bool is_blocking; /* takes part in legacy default stream synchronisation */
  int device;
  int priority;   /* as asked for; all are served alike */
  int references; /* the handle, the worker thread, and whoever waits */
  unsigned long long id;
  struct CUstream_st *next;
};

struct CUstream_st *stream_new(bool is_blocking);
/* Gives the handle back; work already submitted still runs. */
void stream_destroy(struct CUstream_st *stream);
/* Turns the special handles (NULL, legacy, per thread) into a stream of the current device. */
struct CUstream_st *stream_resolve(cudaStream_t handle);

/* Queues the op by the legacy default stream's rules; takes it over. */
cudaError_t stream_submit(struct CUstream_st *stream, struct op *op);
/* Waits for everything that was submitted before the call. */
cudaError_t stream_wait_idle(struct CUstream_st *stream);

#endif
