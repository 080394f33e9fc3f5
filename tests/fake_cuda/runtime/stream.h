/* SPDX-License-Identifier: Apache-2.0 */
/* stream: an in-order queue of ops with one worker thread, which sleeps while the queue is empty;
 * and events, which count the recordings asked for, and know the latest one that has run.
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
/* A new one of the current device; blocking ones take part in legacy default stream
 * synchronisation. */
struct CUstream_st *stream_new(bool is_blocking, int priority);
int stream_priority(const struct CUstream_st *stream); /* as asked for; all are served alike */
/* Turns the special handles (NULL, legacy, per thread) into a stream of the current device. */
struct CUstream_st *stream_resolve(cudaStream_t handle);

/* Queues the op by the legacy default stream's rules; takes it over. */
cudaError_t stream_submit(struct CUstream_st *stream, struct op *op);
/* Waits for everything that was submitted before the call. */
cudaError_t stream_wait_idle(struct CUstream_st *stream);

#endif
