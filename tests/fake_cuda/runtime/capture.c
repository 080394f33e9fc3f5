/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture.
 *
 * cudaStreamBeginCapture makes a graph; until cudaStreamEndCapture, work submitted to the stream
 * becomes nodes that depend on the stream's previous ones. An event recorded in a capturing stream
 * stands for the nodes so far, and a stream that waits for it joins the capture. Everything here is
 * guarded by graph_lock, except for two hints that are read without it: a stream's capture pointer
 * and the number of captures in progress. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/event.h"
#include "tests/fake_cuda/runtime/log.h"
#include "tests/fake_cuda/runtime/stream.h"

struct capture {
  int references; /* itself while active, streams and events */
  unsigned long long id;
  cudaGraph_t graph;
  enum cudaStreamCaptureMode mode;
  pthread_t thread; /* that began it */
  struct CUstream_st *origin;
  bool is_active, is_valid;
  struct capture *next; /* in the list of active captures */
};

static struct capture *captures;
static int active_count;
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static struct capture *capture_retain(struct capture *c) {
  c->references++;
  return c;
}

static void capture_release(struct capture *c) {
  if (--c->references == 0)
    free(c);
}

bool capture_is_on(const struct CUstream_st *s) {
  return __atomic_load_n(&s->capture, __ATOMIC_ACQUIRE) != NULL;
}

static void set_stream_capture(struct CUstream_st *s, struct capture *c) {
  struct capture *old = s->capture;
  __atomic_store_n(&s->capture, c ? capture_retain(c) : NULL, __ATOMIC_RELEASE);
  if (old)
    capture_release(old);
}

static void drop_event_capture(struct CUevent_st *event) {
  if (event->capture)
    capture_release(event->capture);
  event->capture = NULL;
  node_list_free(&event->captured);
}

static cudaError_t invalidate(struct capture *c, cudaError_t error) {
  if (c->is_valid)
    LOG(LOG_INFO, "capture %llu is invalid: %s", c->id, cudaGetErrorName(error));
  c->is_valid = false;
  return error_set(error);
}

cudaError_t capture_refuse(struct CUstream_st *s, cudaError_t error) {
  pthread_mutex_lock(&graph_lock);
  if (s->capture)
    invalidate(s->capture, error);
  pthread_mutex_unlock(&graph_lock);
  return error_set(error);
}

cudaError_t capture_add(struct CUstream_st *s, enum cudaGraphNodeType type, struct op *op,
                        struct CUevent_st *event) {
  cudaError_t error = cudaErrorStreamCaptureInvalidated;
  pthread_mutex_lock(&graph_lock);
  struct capture *c = s->capture;
  if (c && c->is_valid) {
    cudaGraphNode_t node = graph_add_node(c->graph, type, op, event, &s->dependencies);
    node->is_captured = true;
    node->device = s->device;
    node_list_set(&s->dependencies, &node, 1);
    error = cudaSuccess;
  }
  pthread_mutex_unlock(&graph_lock);
  if (error && op)
    op_release(op);
  if (error && event)
    event_release(event);
  return error_set(error);
}

/* ---- events ---- */

cudaError_t capture_record(struct CUstream_st *s, struct CUevent_st *event) {
  cudaError_t error = cudaErrorStreamCaptureInvalidated;
  pthread_mutex_lock(&graph_lock);
  struct capture *c = s->capture;
  if (c && c->is_valid) {
    capture_retain(c);
    drop_event_capture(event);
    event->capture = c;
    node_list_set(&event->captured, s->dependencies.nodes, s->dependencies.count);
    error = cudaSuccess;
  }
  pthread_mutex_unlock(&graph_lock);
  return error_set(error);
}

static cudaError_t join(struct CUstream_st *s, struct CUevent_st *event) {
  struct capture *c = event->capture;
  if (!c->is_valid)
    return cudaErrorStreamCaptureInvalidated;
  if (stream_is_legacy(s))
    return invalidate(c, cudaErrorStreamCaptureImplicit);
  if (s->capture && s->capture != c) {
    invalidate(s->capture, cudaErrorStreamCaptureMerge);
    return invalidate(c, cudaErrorStreamCaptureMerge);
  }
  if (!s->capture) {
    set_stream_capture(s, c);
    node_list_free(&s->dependencies);
  }
  node_list_add(&s->dependencies, event->captured.nodes, event->captured.count);
  return cudaSuccess;
}

cudaError_t capture_wait(struct CUstream_st *s, struct CUevent_st *event, bool *done) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&graph_lock);
  *done = event->capture != NULL;
  if (event->capture && !event->capture->is_active)
    error = cudaErrorCapturedEvent;
  else if (event->capture)
    error = join(s, event);
  pthread_mutex_unlock(&graph_lock);
  return error_set(error);
}

bool capture_has_event(struct CUevent_st *event) {
  pthread_mutex_lock(&graph_lock);
  bool result = event->capture != NULL;
  pthread_mutex_unlock(&graph_lock);
  return result;
}

void capture_forget_event(struct CUevent_st *event) {
  if (!__atomic_load_n(&event->capture, __ATOMIC_ACQUIRE))
    return;
  pthread_mutex_lock(&graph_lock);
  drop_event_capture(event);
  pthread_mutex_unlock(&graph_lock);
}

void capture_forget_stream(struct CUstream_st *s) {
  if (!capture_is_on(s))
    return;
  pthread_mutex_lock(&graph_lock);
  if (s->capture && s->capture->origin == s)
    invalidate(s->capture, cudaErrorStreamCaptureInvalidated);
  set_stream_capture(s, NULL);
  node_list_free(&s->dependencies);
  pthread_mutex_unlock(&graph_lock);
}

/* ---- what a capture forbids ---- */

/* As the documentation of cudaThreadExchangeStreamCaptureMode says. */
static bool forbids(const struct capture *c) {
  if (thread_mode == cudaStreamCaptureModeRelaxed || c->mode == cudaStreamCaptureModeRelaxed)
    return false;
  if (pthread_equal(c->thread, pthread_self()))
    return true;
  return thread_mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
}

cudaError_t capture_check_unsafe(void) {
  cudaError_t error = cudaSuccess;
  if (!__atomic_load_n(&active_count, __ATOMIC_ACQUIRE))
    return cudaSuccess;
  pthread_mutex_lock(&graph_lock);
  for (struct capture *c = captures; c; c = c->next) {
    if (forbids(c))
      error = invalidate(c, cudaErrorStreamCaptureUnsupported);
  }
  pthread_mutex_unlock(&graph_lock);
  return error;
}

struct implicit {
  int device;
  cudaError_t error;
};

static void check_implicit(struct CUstream_st *s, void *arg) {
  struct implicit *implicit = arg;
  if (s->capture && s->is_blocking && s->device == implicit->device)
    implicit->error = invalidate(s->capture, cudaErrorStreamCaptureImplicit);
}

cudaError_t capture_check_legacy(const struct CUstream_st *legacy) {
  struct implicit implicit = { legacy->device, cudaSuccess };
  if (!__atomic_load_n(&active_count, __ATOMIC_ACQUIRE))
    return cudaSuccess;
  pthread_mutex_lock(&graph_lock);
  stream_for_each(check_implicit, &implicit);
  pthread_mutex_unlock(&graph_lock);
  return implicit.error;
}

/* ---- begin and end ---- */

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  static unsigned long long last_id;
  struct CUstream_st *s = stream_resolve(handle);
  if (mode > cudaStreamCaptureModeRelaxed)
    return error_set(cudaErrorInvalidValue);
  if (stream_is_legacy(s))
    return error_set(cudaErrorStreamCaptureUnsupported);
  pthread_mutex_lock(&graph_lock);
  cudaError_t error = cudaSuccess;
  if (s->capture) {
    error = invalidate(s->capture, cudaErrorIllegalState);
  } else {
    struct capture *c = calloc(1, sizeof *c);
    *c = (struct capture){ .references = 1,
                           .id = ++last_id,
                           .graph = graph_new(),
                           .mode = mode,
                           .thread = pthread_self(),
                           .origin = s,
                           .is_active = true,
                           .is_valid = true,
                           .next = captures };
    captures = c;
    set_stream_capture(s, c);
    node_list_free(&s->dependencies);
    __atomic_add_fetch(&active_count, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&graph_lock);
  return error_set(error);
}

/* Marks the nodes that a list reaches through dependencies. */
static void mark_reached(const struct node_list *list, bool *is_reached) {
  for (size_t i = 0; i < list->count; i++) {
    cudaGraphNode_t node = list->nodes[i];
    if (is_reached[node->index])
      continue;
    is_reached[node->index] = true;
    mark_reached(&node->dependencies, is_reached);
  }
}

struct ending {
  struct capture *capture;
  bool *is_reached;
  bool is_unjoined;
};

/* Looks for captured work of another stream that the origin does not wait for. Nodes that were
 * added by cudaGraphAdd* calls need no join. */
static void check_joined(struct CUstream_st *s, void *arg) {
  struct ending *ending = arg;
  if (s->capture != ending->capture || s == ending->capture->origin)
    return;
  for (size_t i = 0; i < s->dependencies.count; i++) {
    cudaGraphNode_t node = s->dependencies.nodes[i];
    if (node->is_captured && !ending->is_reached[node->index])
      ending->is_unjoined = true;
  }
}

static void leave(struct CUstream_st *s, void *arg) {
  const struct ending *ending = arg;
  if (s->capture != ending->capture)
    return;
  set_stream_capture(s, NULL);
  node_list_free(&s->dependencies);
}

/* Ends a capture; the caller holds graph_lock and a reference. */
static cudaError_t end_capture(struct capture *c, cudaGraph_t *graph) {
  cudaError_t error = c->is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
  struct ending ending = { c, calloc(c->graph->nodes.count + 1, sizeof(bool)), false };
  if (!error) {
    mark_reached(&c->origin->dependencies, ending.is_reached);
    stream_for_each(check_joined, &ending);
    if (ending.is_unjoined)
      error = cudaErrorStreamCaptureUnjoined;
  }
  stream_for_each(leave, &ending);
  free(ending.is_reached);
  for (struct capture **link = &captures; *link; link = &(*link)->next) {
    if (*link == c) {
      *link = c->next;
      break;
    }
  }
  __atomic_sub_fetch(&active_count, 1, __ATOMIC_RELEASE);
  c->is_active = false;
  c->is_valid = false;
  *graph = error ? NULL : c->graph;
  return error;
}

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  struct CUstream_st *s = stream_resolve(handle);
  cudaGraph_t unused = NULL;
  cudaError_t error;
  *graph = NULL;
  pthread_mutex_lock(&graph_lock);
  struct capture *c = s->capture;
  if (!c) {
    error = cudaErrorIllegalState;
  } else if (c->origin != s) {
    error = invalidate(c, cudaErrorStreamCaptureUnmatched);
  } else if (c->mode != cudaStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self())) {
    error = invalidate(c, cudaErrorStreamCaptureWrongThread);
  } else {
    error = end_capture(c, graph);
    unused = error ? c->graph : NULL;
    capture_release(c);
  }
  pthread_mutex_unlock(&graph_lock);
  if (unused)
    graph_free(unused);
  return error_set(error);
}

/* ---- queries and changes ---- */

static enum cudaStreamCaptureStatus status_of(const struct CUstream_st *s) {
  if (!s->capture)
    return cudaStreamCaptureStatusNone;
  return s->capture->is_valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                         enum cudaStreamCaptureStatus *status) {
  return cudaStreamGetCaptureInfo_v2(handle, status, NULL, NULL, NULL, NULL);
}

EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **dependencies,
                                               size_t *count) {
  struct CUstream_st *s = stream_resolve(handle);
  if (stream_is_legacy(s)) {
    cudaError_t error = capture_check_legacy(s);
    if (error)
      return error;
  }
  pthread_mutex_lock(&graph_lock);
  const struct capture *c = s->capture;
  *status = status_of(s);
  if (id)
    *id = c ? c->id : 0;
  if (graph)
    *graph = c ? c->graph : NULL;
  if (dependencies)
    *dependencies = s->dependencies.nodes;
  if (count)
    *count = s->dependencies.count;
  pthread_mutex_unlock(&graph_lock);
  return cudaSuccess;
}

/* No dependency ever has edge data: capture does not make programmatic launches. */
EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t handle,
                                               enum cudaStreamCaptureStatus *status,
                                               unsigned long long *id, cudaGraph_t *graph,
                                               const cudaGraphNode_t **dependencies,
                                               const cudaGraphEdgeData **edges, size_t *count) {
  if (edges)
    *edges = NULL;
  return cudaStreamGetCaptureInfo_v2(handle, status, id, graph, dependencies, count);
}

EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t handle,
                                                       cudaGraphNode_t *dependencies, size_t count,
                                                       unsigned flags) {
  struct CUstream_st *s = stream_resolve(handle);
  cudaError_t error = cudaSuccess;
  if (flags > cudaStreamSetCaptureDependencies || (count && !dependencies))
    return error_set(cudaErrorInvalidValue);
  pthread_mutex_lock(&graph_lock);
  if (status_of(s) != cudaStreamCaptureStatusActive)
    error = cudaErrorIllegalState;
  for (size_t i = 0; i < count && !error; i++) {
    if (dependencies[i]->graph != s->capture->graph)
      error = cudaErrorInvalidValue;
  }
  if (!error && flags == cudaStreamSetCaptureDependencies)
    node_list_set(&s->dependencies, dependencies, count);
  else if (!error)
    node_list_add(&s->dependencies, dependencies, count);
  pthread_mutex_unlock(&graph_lock);
  return error_set(error);
}

EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t handle,
                                                          cudaGraphNode_t *dependencies,
                                                          const cudaGraphEdgeData *edges,
                                                          size_t count, unsigned flags) {
  (void)edges;
  return cudaStreamUpdateCaptureDependencies(handle, dependencies, count, flags);
}

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  enum cudaStreamCaptureMode previous = thread_mode;
  if (*mode > cudaStreamCaptureModeRelaxed)
    return error_set(cudaErrorInvalidValue);
  thread_mode = *mode;
  *mode = previous;
  return cudaSuccess;
}
