/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, copies and memory operations.
 *
 * A stream is a queue with one worker thread that runs its work items in order. An event holds a
 * count of recordings requested and the number of the latest one that has executed. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/runtime/driver.h"
#include "tests/fake_cuda/runtime/runtime.h"

struct work {
  void (*run)(void *arg);
  void *arg;
  struct work *next;
};

struct CUstream_st {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct work *head, **tail;
  uint64_t submitted, completed;
  bool started, stopping;
  bool blocking; /* takes part in legacy default stream synchronisation */
  int device;
  int references; /* the handle and the worker thread */
  unsigned long long id;
  struct CUstream_st *next;
};

struct CUevent_st {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t requested, executed;
  struct timespec when;
  int references;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *streams;
static unsigned long long last_stream_id;
static struct CUstream_st *default_stream[MAX_DEVICES];
static struct CUstream_st *per_thread_stream[MAX_DEVICES];

/* ---- events ---- */

static struct CUevent_st *event_new(void) {
  struct CUevent_st *e = calloc(1, sizeof *e);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->changed, NULL);
  e->references = 1;
  return e;
}

static void event_retain(struct CUevent_st *e) {
  __atomic_add_fetch(&e->references, 1, __ATOMIC_SEQ_CST);
}

static void event_release(struct CUevent_st *e) {
  if (__atomic_sub_fetch(&e->references, 1, __ATOMIC_SEQ_CST) == 0) {
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e);
  }
}

/* A recording of an event, or a wait for one. */
struct event_ticket {
  struct CUevent_st *event;
  uint64_t number;
};

static struct event_ticket *ticket_new(struct CUevent_st *e, uint64_t number) {
  struct event_ticket *t = malloc(sizeof *t);
  *t = (struct event_ticket){ e, number };
  event_retain(e);
  return t;
}

static void run_record(void *arg) {
  struct event_ticket *t = arg;
  struct CUevent_st *e = t->event;
  pthread_mutex_lock(&e->lock);
  if (t->number > e->executed)
    e->executed = t->number;
  clock_gettime(CLOCK_MONOTONIC, &e->when);
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  event_release(e);
  free(t);
}

static void run_wait(void *arg) {
  struct event_ticket *t = arg;
  struct CUevent_st *e = t->event;
  pthread_mutex_lock(&e->lock);
  while (e->executed < t->number)
    pthread_cond_wait(&e->changed, &e->lock);
  pthread_mutex_unlock(&e->lock);
  event_release(e);
  free(t);
}

/* ---- the queue ---- */

static void stream_release(struct CUstream_st *s) {
  if (__atomic_sub_fetch(&s->references, 1, __ATOMIC_SEQ_CST) == 0) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
  }
}

static void *stream_thread(void *arg) {
  struct CUstream_st *s = arg;
  device_set_current(s->device);
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->head && !s->stopping)
      pthread_cond_wait(&s->changed, &s->lock);
    struct work *w = s->head;
    if (!w)
      break;
    s->head = w->next;
    if (!s->head)
      s->tail = &s->head;
    pthread_mutex_unlock(&s->lock);
    w->run(w->arg);
    free(w);
    pthread_mutex_lock(&s->lock);
    s->completed++;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  stream_release(s);
  return NULL;
}

static struct CUstream_st *stream_new(bool blocking) {
  struct CUstream_st *s = calloc(1, sizeof *s);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  s->tail = &s->head;
  s->blocking = blocking;
  s->device = device_current();
  s->references = 1;
  pthread_mutex_lock(&list_lock);
  s->id = ++last_stream_id;
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&list_lock);
  return s;
}

/* Turns the special handles (NULL, legacy, per-thread) into a stream of the current device. */
static struct CUstream_st *resolve(cudaStream_t handle) {
  if ((uintptr_t)handle > (uintptr_t)cudaStreamPerThread)
    return handle;
  bool per_thread = handle == cudaStreamPerThread;
  struct CUstream_st **slot = &(per_thread ? per_thread_stream : default_stream)[device_current()];
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  if (!*slot)
    *slot = stream_new(true);
  pthread_mutex_unlock(&once);
  return *slot;
}

/* Appends one item, starting the worker thread on first use. */
static void push(struct CUstream_st *s, void (*run)(void *arg), void *arg) {
  struct work *w = malloc(sizeof *w);
  *w = (struct work){ run, arg, NULL };
  pthread_mutex_lock(&s->lock);
  *s->tail = w;
  s->tail = &w->next;
  s->submitted++;
  if (!s->started) {
    pthread_t thread;
    s->started = true;
    __atomic_add_fetch(&s->references, 1, __ATOMIC_SEQ_CST);
    pthread_create(&thread, NULL, stream_thread, s);
    pthread_detach(thread);
  }
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

static bool busy(struct CUstream_st *s) {
  pthread_mutex_lock(&s->lock);
  bool result = s->completed < s->submitted;
  pthread_mutex_unlock(&s->lock);
  return result;
}

/* Makes the next item of `later` wait for everything submitted to `earlier` so far. */
static void add_dependency(struct CUstream_st *later, struct CUstream_st *earlier) {
  struct CUevent_st *e = event_new();
  e->requested = 1;
  push(earlier, run_record, ticket_new(e, 1));
  push(later, run_wait, ticket_new(e, 1));
  event_release(e);
}

/* Legacy default stream rules: work in the default stream waits for the device's blocking streams
 * and the other way round. Streams in the list are kept alive by the list lock. */
static void apply_default_stream_rules(struct CUstream_st *s) {
  struct CUstream_st *legacy = default_stream[s->device];
  if (s == legacy) {
    pthread_mutex_lock(&list_lock);
    for (struct CUstream_st *t = streams; t; t = t->next) {
      if (t != s && t->blocking && t->device == s->device && busy(t))
        add_dependency(s, t);
    }
    pthread_mutex_unlock(&list_lock);
  } else if (s->blocking && legacy && busy(legacy)) {
    add_dependency(s, legacy);
  }
}

void stream_submit(cudaStream_t handle, void (*run)(void *arg), void *arg) {
  struct CUstream_st *s = resolve(handle);
  apply_default_stream_rules(s);
  push(s, run, arg);
}

/* Waits for everything submitted before the call. */
static void drain(struct CUstream_st *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t target = s->submitted;
  while (s->completed < target)
    pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

static void run_nothing(void *arg) {
  (void)arg;
}

cudaError_t stream_wait_idle(cudaStream_t handle) {
  struct CUstream_st *s = resolve(handle);
  if (s == default_stream[s->device])
    stream_submit(handle, run_nothing, NULL);
  drain(s);
  return device_fault();
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  *stream = stream_new(!(flags & cudaStreamNonBlocking));
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                                int priority) {
  (void)priority;
  return cudaStreamCreateWithFlags(stream, flags);
}

/* Work already submitted still runs; the worker thread frees the stream afterwards. */
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread)
    return error_set(cudaErrorInvalidResourceHandle);
  pthread_mutex_lock(&list_lock);
  for (struct CUstream_st **link = &streams; *link; link = &(*link)->next) {
    if (*link == stream) {
      *link = stream->next;
      break;
    }
  }
  pthread_mutex_unlock(&list_lock);
  pthread_mutex_lock(&stream->lock);
  stream->stopping = true;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
  stream_release(stream);
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream_wait_idle(stream);
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return busy(resolve(stream)) ? cudaErrorNotReady : device_fault();
}

EXPORT cudaError_t cudaDeviceSynchronize(void) {
  int device = device_current();
  for (;;) {
    struct CUstream_st *found = NULL;
    pthread_mutex_lock(&list_lock);
    for (struct CUstream_st *s = streams; s && !found; s = s->next) {
      if (s->device == device && busy(s)) {
        found = s;
        __atomic_add_fetch(&found->references, 1, __ATOMIC_SEQ_CST);
      }
    }
    pthread_mutex_unlock(&list_lock);
    if (!found)
      return device_fault();
    drain(found);
    stream_release(found);
  }
}

EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
  *id = resolve(stream)->id;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&e->lock);
  uint64_t number = e->requested;
  bool pending = e->executed < number;
  pthread_mutex_unlock(&e->lock);
  if (pending)
    stream_submit(stream, run_wait, ticket_new(e, number));
  return cudaSuccess;
}

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

EXPORT cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  pthread_mutex_lock(&e->lock);
  uint64_t number = ++e->requested;
  pthread_mutex_unlock(&e->lock);
  stream_submit(stream, run_record, ticket_new(e, number));
  return cudaSuccess;
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t e) {
  pthread_mutex_lock(&e->lock);
  bool done = e->executed >= e->requested;
  pthread_mutex_unlock(&e->lock);
  return done ? device_fault() : cudaErrorNotReady;
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  pthread_mutex_lock(&e->lock);
  uint64_t number = e->requested;
  while (e->executed < number)
    pthread_cond_wait(&e->changed, &e->lock);
  pthread_mutex_unlock(&e->lock);
  return device_fault();
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  if (!start->executed || !end->executed)
    return cudaErrorNotReady;
  double seconds = (double)(end->when.tv_sec - start->when.tv_sec);
  double nanoseconds = (double)(end->when.tv_nsec - start->when.tv_nsec);
  *ms = (float)(seconds * 1e3 + nanoseconds / 1e6);
  return cudaSuccess;
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg) {
  stream_submit(stream, fn, arg);
  return cudaSuccess;
}

/* ---- copies ---- */

struct copy {
  void *dst;
  const void *src;
  size_t size;
  int value; /* for memset */
  bool is_memset;
  char staged[]; /* private copy of a pageable source */
};

static void run_copy(void *arg) {
  struct copy *c = arg;
  if (c->is_memset)
    memset(c->dst, c->value, c->size);
  else
    memmove(c->dst, c->src, c->size);
  free(c);
}

static bool pageable(const void *ptr) {
  struct memory m;
  return !memory_find(ptr, &m);
}

/* As in CUDA, a pageable source may be reused as soon as the call returns, so it is staged, and a
 * pageable destination is complete on return. NCCL relies on the first (channel.cc copies from
 * variables on the stack). */
EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  bool wait = pageable(dst);
  bool stage = !wait && pageable(src);
  struct copy *c = malloc(sizeof *c + (stage ? size : 0));
  *c = (struct copy){ .dst = dst, .src = src, .size = size };
  if (stage)
    c->src = memcpy(c->staged, src, size);
  stream_submit(stream, run_copy, c);
  return wait ? stream_wait_idle(stream) : cudaSuccess;
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind) {
  cudaError_t error = cudaMemcpyAsync(dst, src, size, kind, NULL);
  return error ? error : stream_wait_idle(NULL);
}

EXPORT cudaError_t cudaMemsetAsync(void *dst, int value, size_t size, cudaStream_t stream) {
  struct copy *c = malloc(sizeof *c);
  *c = (struct copy){ .dst = dst, .size = size, .value = value, .is_memset = true };
  stream_submit(stream, run_copy, c);
  return cudaSuccess;
}

EXPORT cudaError_t cudaMemset(void *dst, int value, size_t size) {
  cudaMemsetAsync(dst, value, size, NULL);
  return stream_wait_idle(NULL);
}

/* ---- stream memory operations (driver API) ---- */

struct value_op {
  void *address;
  uint64_t value;
  bool wide;
  unsigned condition;
};

enum { WAIT_GEQ = 0, WAIT_EQ = 1, WAIT_AND = 2, WAIT_NOR = 3 };

static void run_write_value(void *arg) {
  struct value_op *o = arg;
  if (o->wide)
    __atomic_store_n((uint64_t *)o->address, o->value, __ATOMIC_RELEASE);
  else
    __atomic_store_n((uint32_t *)o->address, (uint32_t)o->value, __ATOMIC_RELEASE);
  free(o);
}

static bool value_reached(const struct value_op *o) {
  uint64_t now = o->wide ? __atomic_load_n((uint64_t *)o->address, __ATOMIC_ACQUIRE)
                         : __atomic_load_n((uint32_t *)o->address, __ATOMIC_ACQUIRE);
  uint64_t mask = o->wide ? UINT64_MAX : UINT32_MAX;
  switch (o->condition) {
  case WAIT_GEQ:
    if (o->wide)
      return (int64_t)(now - o->value) >= 0;
    return (int32_t)((uint32_t)now - (uint32_t)o->value) >= 0;
  case WAIT_EQ:
    return now == o->value;
  case WAIT_AND:
    return (now & o->value) != 0;
  default:
    return (~(now | o->value) & mask) != 0;
  }
}

static void run_wait_value(void *arg) {
  struct value_op *o = arg;
  while (!value_reached(o))
    sched_yield();
  free(o);
}

static CUresult value_op(CUstream stream, void (*run)(void *), CUdeviceptr address, uint64_t value,
                         bool wide, unsigned flags) {
  struct value_op *o = malloc(sizeof *o);
  *o = (struct value_op){ (void *)address, value, wide, flags & 3 };
  stream_submit(stream, run, o);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  return value_op(stream, run_wait_value, address, value, false, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
  return value_op(stream, run_wait_value, address, value, true, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                              unsigned flags) {
  return value_op(stream, run_write_value, address, value, false, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, uint64_t value,
                              unsigned flags) {
  return value_op(stream, run_write_value, address, value, true, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops,
                            unsigned flags) {
  (void)flags;
  for (unsigned i = 0; i < count; i++) {
    CUdeviceptr address = ops[i].memOp.address;
    unsigned op_flags = ops[i].memOp.flags;
    switch (ops[i].memOp.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      cuStreamWaitValue32(stream, address, ops[i].memOp.value, op_flags);
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      cuStreamWaitValue64(stream, address, ops[i].memOp.value64, op_flags);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      cuStreamWriteValue32(stream, address, ops[i].memOp.value, op_flags);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      cuStreamWriteValue64(stream, address, ops[i].memOp.value64, op_flags);
      break;
    default: /* barriers and flushes: a stream is already in order */
      break;
    }
  }
  return CUDA_SUCCESS;
}
