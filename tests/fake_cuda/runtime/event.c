/* SPDX-License-Identifier: Apache-2.0 */
/* Events: recording, waiting. */
#include <stdlib.h>
#include <time.h>

#include "tests/fake_cuda/runtime/event.h"
#include "tests/fake_cuda/runtime/stream.h"

struct CUevent_st *event_new(void) {
  struct CUevent_st *event = calloc(1, sizeof *event);
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  event->references = 1;
  return event;
}

struct CUevent_st *event_retain(struct CUevent_st *event) {
  __atomic_add_fetch(&event->references, 1, __ATOMIC_RELAXED);
  return event;
}

void event_release(struct CUevent_st *event) {
  if (__atomic_sub_fetch(&event->references, 1, __ATOMIC_ACQ_REL))
    return;
  pthread_mutex_destroy(&event->lock);
  pthread_cond_destroy(&event->changed);
  free(event);
}

/* One recording of an event, or a wait for one. */
struct ticket {
  struct CUevent_st *event;
  uint64_t number;
};

static void ticket_destroy(void *arg) {
  struct ticket *t = arg;
  event_release(t->event);
  free(t);
}

static void run_record(void *arg) {
  struct ticket *t = arg;
  struct CUevent_st *event = t->event;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&event->lock);
  if (t->number > event->executed)
    event->executed = t->number;
  event->at = now;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
}

static void wait_for(struct CUevent_st *event, uint64_t number) {
  pthread_mutex_lock(&event->lock);
  while (event->executed < number)
    pthread_cond_wait(&event->changed, &event->lock);
  pthread_mutex_unlock(&event->lock);
}

static void run_wait(void *arg) {
  const struct ticket *t = arg;
  wait_for(t->event, t->number);
}

static struct op *ticket_op(void (*run)(void *arg), struct CUevent_st *event, uint64_t number) {
  struct ticket *t = malloc(sizeof *t);
  *t = (struct ticket){ event_retain(event), number };
  return op_new(run, ticket_destroy, t);
}

struct op *event_record_op(struct CUevent_st *event) {
  pthread_mutex_lock(&event->lock);
  uint64_t number = ++event->requested;
  pthread_mutex_unlock(&event->lock);
  return ticket_op(run_record, event, number);
}

struct op *event_wait_op(struct CUevent_st *event) {
  pthread_mutex_lock(&event->lock);
  uint64_t number = event->requested;
  bool is_pending = event->executed < number;
  pthread_mutex_unlock(&event->lock);
  return is_pending ? ticket_op(run_wait, event, number) : NULL;
}

/* ---- API ---- */

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  (void)flags;
  *event = event_new();
  return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event)
    return error_set(cudaErrorInvalidResourceHandle);
  event_release(event);
  return cudaSuccess;
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!event)
    return error_set(cudaErrorInvalidResourceHandle);
  return stream_submit(stream_resolve(stream), event_record_op(event));
}

EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                            unsigned flags) {
  (void)flags;
  return cudaEventRecord(event, stream);
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)flags;
  if (!event)
    return error_set(cudaErrorInvalidResourceHandle);
  struct op *op = event_wait_op(event);
  return op ? stream_submit(stream_resolve(stream), op) : cudaSuccess;
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  pthread_mutex_lock(&event->lock);
  bool is_done = event->executed >= event->requested;
  pthread_mutex_unlock(&event->lock);
  return is_done ? device_fault() : cudaErrorNotReady;
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  pthread_mutex_lock(&event->lock);
  uint64_t number = event->requested;
  pthread_mutex_unlock(&event->lock);
  wait_for(event, number);
  return device_fault();
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  if (!start || !end || !start->requested || !end->requested)
    return error_set(cudaErrorInvalidResourceHandle);
  cudaError_t error = cudaEventQuery(start);
  if (!error)
    error = cudaEventQuery(end);
  if (!error)
    *ms = (float)(1e3 * (double)(end->at.tv_sec - start->at.tv_sec) +
                  1e-6 * (double)(end->at.tv_nsec - start->at.tv_nsec));
  return error;
}
