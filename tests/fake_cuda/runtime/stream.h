/* SPDX-License-Identifier: Apache-2.0 */
/* stream: an in-order queue of ops with one worker thread, which sleeps while the queue is empty.
 * Owns: its queue and thread.  Threads: any.  Blocks: stream_drain and stream_wait_idle do.
 * Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_STREAM_H
#define FAKE_CUDA_STREAM_H

#include <pthread.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/graph.h"
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
  struct capture *capture;       /* NULL unless the stream is capturing; capture.c's lock */
  struct node_list dependencies; /* what the next captured node depends on */
  struct CUstream_st *next;
};

struct CUstream_st *stream_new(bool is_blocking);
/* Gives the handle back; work already submitted still runs. */
void stream_destroy(struct CUstream_st *stream);
/* Turns the special handles (NULL, legacy, per thread) into a stream of the current device. */
struct CUstream_st *stream_resolve(cudaStream_t handle);
bool stream_is_legacy(const struct CUstream_st *stream);
/* Calls fn for every stream, under the list's lock. */
void stream_for_each(void (*fn)(struct CUstream_st *stream, void *arg), void *arg);

/* Appends an op at the end of the queue, past capture and default stream rules. Takes over one
 * reference of the op. */
void stream_push(struct CUstream_st *stream, struct op *op);
/* What an API call does with its work: captures it as a node of this type if the stream is
 * capturing, and otherwise queues it by the default stream's rules. Takes over one reference. */
cudaError_t stream_submit(struct CUstream_st *stream, struct op *op, enum cudaGraphNodeType type);
/* Legacy default stream rules: work in the default stream waits for the device's blocking streams,
 * and the other way round. */
void stream_apply_default_rules(struct CUstream_st *stream);
/* Waits for everything that was submitted before the call. */
void stream_drain(struct CUstream_st *stream);
cudaError_t stream_wait_idle(struct CUstream_st *stream);

#endif
