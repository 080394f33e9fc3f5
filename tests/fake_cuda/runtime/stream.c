/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: queues with one worker thread each; events. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "tests/fake_cuda/runtime/stream.h"

struct op {
  void (*run)(void *arg);
  void (*destroy)(void *arg); /* NULL: the argument needs none */
  void *arg;
};

struct op *op_new(void (*run)(void *arg), void (*destroy)(void *arg), void *arg) {
  struct op *op = malloc(sizeof *op);
  *op = (struct op){ .run = run, .destroy = destroy, .arg = arg };
  return op;
}

static void op_free(struct op *op) {
  if (op->destroy)
    op->destroy(op->arg);
  free(op);
}

/* ---- events ---- */

struct CUevent_st {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t requested, executed;
  struct timespec at; /* of the latest recording that has run */
  int references;
};

static struct CUevent_st *event_new(void) {
  struct CUevent_st *event = calloc(1, sizeof *event);
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  event->references = 1;
  return event;
}

static struct CUevent_st *event_retain(struct CUevent_st *event) {
  __atomic_add_fetch(&event->references, 1, __ATOMIC_RELAXED);
  return event;
}

static void event_release(struct CUevent_st *event) {
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

/* An op that marks a new recording as done; the recording counts from this call on. */
static struct op *event_record_op(struct CUevent_st *event) {
  pthread_mutex_lock(&event->lock);
  uint64_t number = ++event->requested;
  pthread_mutex_unlock(&event->lock);
  return ticket_op(run_record, event, number);
}

/* An op that waits for the latest recording asked for, or NULL if that has already run. */
static struct op *event_wait_op(struct CUevent_st *event) {
  pthread_mutex_lock(&event->lock);
  uint64_t number = event->requested;
  bool is_pending = event->executed < number;
  pthread_mutex_unlock(&event->lock);
  return is_pending ? ticket_op(run_wait, event, number) : NULL;
}

/* ---- streams ---- */

struct work {
  struct op *op;
  struct work *next;
};

struct CUstream_st {
  pthread_mutex_t lock;
  pthread_cond_t has_work, has_progress;
  struct work *head, **tail;
  uint64_t submitted, completed;
  bool is_started, is_stopping;
  int device;
  int priority;
  int references; /* the handle, the worker thread, and whoever waits */
  unsigned long long id;
  struct CUstream_st *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *streams;
static unsigned long long last_id;
static struct CUstream_st *default_stream[MAX_DEVICES];

static void stream_release(struct CUstream_st *s) {
  if (__atomic_sub_fetch(&s->references, 1, __ATOMIC_ACQ_REL))
    return;
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->has_work);
  pthread_cond_destroy(&s->has_progress);
  free(s);
}

static void *stream_thread(void *arg) {
  struct CUstream_st *s = arg;
  device_set_current(s->device);
  prctl(PR_SET_TIMERSLACK, 1000); /* ns; for kernels that sleep, and inherited by their helpers */
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->head && !s->is_stopping)
      pthread_cond_wait(&s->has_work, &s->lock);
    struct work *w = s->head;
    if (!w)
      break;
    s->head = w->next;
    if (!s->head)
      s->tail = &s->head;
    pthread_mutex_unlock(&s->lock);
    w->op->run(w->op->arg);
    op_free(w->op);
    free(w);
    pthread_mutex_lock(&s->lock);
    s->completed++;
    pthread_cond_broadcast(&s->has_progress);
  }
  pthread_mutex_unlock(&s->lock);
  stream_release(s);
  return NULL;
}

struct CUstream_st *stream_new(int priority) {
  struct CUstream_st *s = calloc(1, sizeof *s);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->has_work, NULL);
  pthread_cond_init(&s->has_progress, NULL);
  s->tail = &s->head;
  s->priority = priority;
  s->device = device_current();
  s->references = 1;
  pthread_mutex_lock(&list_lock);
  s->id = ++last_id;
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&list_lock);
  return s;
}

int stream_priority(const struct CUstream_st *s) {
  return s->priority;
}

/* Gives the handle back; work already submitted still runs. */
static void stream_destroy(struct CUstream_st *s) {
  pthread_mutex_lock(&list_lock);
  for (struct CUstream_st **link = &streams; *link; link = &(*link)->next) {
    if (*link == s) {
      *link = s->next;
      break;
    }
  }
  pthread_mutex_unlock(&list_lock);
  pthread_mutex_lock(&s->lock);
  s->is_stopping = true;
  pthread_cond_signal(&s->has_work);
  pthread_mutex_unlock(&s->lock);
  stream_release(s);
}

struct CUstream_st *stream_resolve(cudaStream_t handle) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  if ((uintptr_t)handle > (uintptr_t)cudaStreamPerThread)
    return handle;
  struct CUstream_st **slot = &default_stream[device_current()];
  pthread_mutex_lock(&once);
  if (!*slot)
    *slot = stream_new(0);
  pthread_mutex_unlock(&once);
  return *slot;
}

cudaError_t stream_submit(struct CUstream_st *s, struct op *op) {
  struct work *w = malloc(sizeof *w);
  *w = (struct work){ op, NULL };
  pthread_mutex_lock(&s->lock);
  *s->tail = w;
  s->tail = &w->next;
  s->submitted++;
  if (!s->is_started) {
    pthread_t thread;
    s->is_started = true;
    __atomic_add_fetch(&s->references, 1, __ATOMIC_RELAXED);
    pthread_create(&thread, NULL, stream_thread, s);
    pthread_detach(thread);
  }
  pthread_cond_signal(&s->has_work);
  pthread_mutex_unlock(&s->lock);
  return cudaSuccess;
}

static bool is_busy(struct CUstream_st *s) {
  pthread_mutex_lock(&s->lock);
  bool result = s->completed < s->submitted;
  pthread_mutex_unlock(&s->lock);
  return result;
}

static void stream_drain(struct CUstream_st *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t target = s->submitted;
  while (s->completed < target)
    pthread_cond_wait(&s->has_progress, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

cudaError_t stream_wait_idle(struct CUstream_st *s) {
  stream_drain(s);
  return device_fault();
}

/* ---- API ---- */

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  *stream = stream_new(0);
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread)
    return error_set(cudaErrorInvalidResourceHandle);
  stream_destroy(stream);
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return stream_wait_idle(stream_resolve(handle));
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle) {
  struct CUstream_st *s = stream_resolve(handle);
  return is_busy(s) ? cudaErrorNotReady : device_fault();
}

EXPORT cudaError_t cudaDeviceSynchronize(void) {
  int device = device_current();
  for (;;) {
    struct CUstream_st *found = NULL;
    pthread_mutex_lock(&list_lock);
    for (struct CUstream_st *s = streams; s && !found; s = s->next) {
      if (s->device == device && is_busy(s)) {
        found = s;
        __atomic_add_fetch(&found->references, 1, __ATOMIC_RELAXED);
      }
    }
    pthread_mutex_unlock(&list_lock);
    if (!found)
      return device_fault();
    stream_drain(found);
    stream_release(found);
  }
}

EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  *id = stream_resolve(stream)->id;
  return cudaSuccess;
}

struct host_call {
  cudaHostFn_t fn;
  void *arg;
};

static void run_host_call(void *arg) {
  const struct host_call *call = arg;
  call->fn(call->arg);
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg) {
  struct host_call *call = malloc(sizeof *call);
  *call = (struct host_call){ fn, arg };
  return stream_submit(stream_resolve(stream), op_new(run_host_call, free, call));
}

/* ---- API of events ---- */

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
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
  return cudaEventRecord(event, stream);
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
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
