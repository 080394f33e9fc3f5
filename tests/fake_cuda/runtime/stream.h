/* SPDX-License-Identifier: Apache-2.0 */
/* stream: an in-order queue of ops with one worker thread, which sleeps while the queue is empty;
 * and events, which count the recordings asked for, and know the latest one that has run. Streams
 * do not block each other: NCCL, PyTorch and coll make such (cudaStreamNonBlocking).
 * Owns: a stream its queue and thread, an op its argument; events are reference counted.
 * Threads: any.  Blocks: stream_wait_idle, and the ops and calls that wait for an event, do.
 * Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_STREAM_H
#define FAKE_CUDA_STREAM_H

#include "tests/fake_cuda/runtime/device.h"

/* One piece of work, with the way to free its argument (NULL: it needs none). */
struct op;
struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg);

struct CUstream_st;
/* A new one of the current device. */
struct CUstream_st *stream_new(int priority);
int stream_priority(const struct CUstream_st *stream); /* as asked for; all are served alike */
/* Turns the special handles (NULL, legacy, per thread) into one stream of the current device. */
struct CUstream_st *stream_resolve(cudaStream_t handle);

/* Queues the op; takes it over. */
cudaError_t stream_submit(struct CUstream_st *stream, struct op *op);
/* Waits for everything that was submitted before the call. */
cudaError_t stream_wait_idle(struct CUstream_st *stream);

#endif
