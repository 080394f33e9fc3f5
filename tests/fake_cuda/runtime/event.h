/* SPDX-License-Identifier: Apache-2.0 */
/* event: counts the recordings asked for, and knows the latest one that has run.
 * Owns: itself, reference counted.  Threads: any; one lock per event.  Blocks: only the ops and
 * calls that wait.  Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_EVENT_H
#define FAKE_CUDA_EVENT_H

#include <pthread.h>
#include <time.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/op.h"

struct CUevent_st {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t requested, executed;
  struct timespec at; /* of the latest recording that has run */
  int references;
};

struct CUevent_st *event_new(void);
struct CUevent_st *event_retain(struct CUevent_st *event);
void event_release(struct CUevent_st *event);

/* An op that marks a new recording as done; the recording counts from this call on. */
struct op *event_record_op(struct CUevent_st *event);
/* An op that waits for the latest recording asked for, or NULL if that has already run. */
struct op *event_wait_op(struct CUevent_st *event);

#endif
