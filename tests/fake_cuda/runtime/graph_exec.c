/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs.
 *
 * Instantiation sorts the nodes and deals them out to lanes. A node continues a lane if it depends
 * on the lane's last node, and otherwise opens a new one, so that nodes which do not depend on each
 * other always run at the same time: collectives of several GPUs in one graph wait for each other.
 * Lane 0 is the stream that the graph is launched into; every other lane is a stream of its own.
 *
 * A launch queues all nodes at once. Waits between lanes, and event nodes, count from the moment of
 * the launch, as if the calls had been made then. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/event.h"
#include "tests/fake_cuda/runtime/stream.h"

#define NO_LANE ((size_t)-1)

struct exec_node {
  enum cudaGraphNodeType type;
  int device;
  struct op *op;
  struct CUevent_st *event;
  size_t lane;
  size_t wait_count, *waits; /* nodes of other lanes that this one depends on */
  bool has_waiters;          /* by a node of another lane */
};

struct CUgraphExec_st {
  int references; /* the handle and every launch that has not finished */
  size_t node_count, lane_count;
  struct exec_node *nodes; /* sorted: dependencies first */
  cudaStream_t *lanes;     /* [0] is unused */
  struct user_object_list *objects;
};

/* ---- instantiation ---- */

/* Positions of the graph's nodes in an order that respects dependencies; NULL if there is a cycle.
 * Among nodes that may come next, the one added first does. */
static size_t *sort_nodes(const struct CUgraph_st *graph, cudaGraphNode_t *sorted) {
  size_t count = graph->nodes.count;
  size_t *position = calloc(count + 1, sizeof *position);
  bool *is_placed = calloc(count + 1, sizeof *is_placed);
  size_t placed = 0, first = 0;
  while (placed < count) {
    size_t i = first;
    for (; i < count; i++) {
      const struct node_list *list = &graph->nodes.nodes[i]->dependencies;
      bool is_ready = !is_placed[i];
      for (size_t d = 0; is_ready && d < list->count; d++)
        is_ready = is_placed[list->nodes[d]->index];
      if (is_ready)
        break;
    }
    if (i == count)
      break;
    is_placed[i] = true;
    position[i] = placed;
    sorted[placed++] = graph->nodes.nodes[i];
    while (first < count && is_placed[first])
      first++;
  }
  free(is_placed);
  if (placed == count)
    return position;
  free(position);
  return NULL;
}

/* Chooses the lane of a node and what it waits for; last[l] is the last node of lane l. */
static void place_node(struct CUgraphExec_st *exec, size_t at, const struct node_list *list,
                       const size_t *position, size_t *last) {
  struct exec_node *node = &exec->nodes[at];
  node->lane = NO_LANE;
  for (size_t d = 0; d < list->count && node->lane == NO_LANE; d++) {
    size_t before = position[list->nodes[d]->index];
    if (last[exec->nodes[before].lane] == before)
      node->lane = exec->nodes[before].lane;
  }
  if (node->lane == NO_LANE)
    node->lane = exec->lane_count++;
  last[node->lane] = at;
  node->waits = calloc(list->count + 1, sizeof *node->waits);
  for (size_t d = 0; d < list->count; d++) {
    size_t before = position[list->nodes[d]->index];
    if (exec->nodes[before].lane == node->lane)
      continue;
    exec->nodes[before].has_waiters = true;
    node->waits[node->wait_count++] = before;
  }
}

static struct CUgraphExec_st *exec_new(const struct CUgraph_st *graph) {
  size_t count = graph->nodes.count;
  cudaGraphNode_t *sorted = calloc(count + 1, sizeof *sorted);
  size_t *position = sort_nodes(graph, sorted);
  if (!position) {
    free(sorted);
    return NULL;
  }
  struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
  size_t *last = calloc(count + 1, sizeof *last);
  exec->references = 1;
  exec->node_count = count;
  exec->nodes = calloc(count + 1, sizeof *exec->nodes);
  for (size_t i = 0; i < count; i++) {
    exec->nodes[i] =
        (struct exec_node){ .type = sorted[i]->type,
                            .device = sorted[i]->device,
                            .op = sorted[i]->op ? op_retain(sorted[i]->op) : NULL,
                            .event = sorted[i]->event ? event_retain(sorted[i]->event) : NULL };
    place_node(exec, i, &sorted[i]->dependencies, position, last);
  }
  exec->lanes = calloc(exec->lane_count + 1, sizeof(cudaStream_t));
  for (size_t lane = 1; lane < exec->lane_count; lane++)
    exec->lanes[lane] = stream_new(false);
  exec->objects = user_objects_copy(graph->objects);
  free(last);
  free(position);
  free(sorted);
  return exec;
}

static void exec_release(void *arg) {
  struct CUgraphExec_st *exec = arg;
  if (__atomic_sub_fetch(&exec->references, 1, __ATOMIC_ACQ_REL))
    return;
  for (size_t i = 0; i < exec->node_count; i++) {
    if (exec->nodes[i].op)
      op_release(exec->nodes[i].op);
    if (exec->nodes[i].event)
      event_release(exec->nodes[i].event);
    free(exec->nodes[i].waits);
  }
  for (size_t lane = 1; lane < exec->lane_count; lane++)
    stream_destroy(exec->lanes[lane]);
  user_objects_free(exec->objects);
  free(exec->lanes);
  free(exec->nodes);
  free(exec);
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags) {
  (void)flags; /* uploading and freeing on launch mean nothing here */
  if (!exec || !graph)
    return error_set(cudaErrorInvalidValue);
  pthread_mutex_lock(&graph_lock);
  *exec = exec_new(graph);
  pthread_mutex_unlock(&graph_lock);
  return *exec ? cudaSuccess : error_set(cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (!exec)
    return error_set(cudaErrorInvalidValue);
  exec_release(exec);
  return cudaSuccess;
}

/* ---- launch ---- */

/* Makes what is queued on `stream` next wait for the event, and gives the event back. */
static void push_wait(struct CUstream_st *stream, struct CUevent_st *event) {
  struct op *wait = event_wait_op(event);
  if (wait)
    stream_push(stream, wait);
}

/* An event recorded at the present end of a stream. */
static struct CUevent_st *mark(struct CUstream_st *stream) {
  struct CUevent_st *event = event_new();
  stream_push(stream, event_record_op(event));
  return event;
}

static void push_node(const struct exec_node *node, struct CUstream_st *stream) {
  switch (node->type) {
  case cudaGraphNodeTypeEventRecord:
    stream_push(stream, event_record_op(node->event));
    break;
  case cudaGraphNodeTypeWaitEvent:
    push_wait(stream, node->event);
    break;
  default:
    stream_push(stream, op_retain(node->op));
  }
}

static void launch(struct CUgraphExec_st *exec, struct CUstream_st *stream) {
  struct CUevent_st **marks = calloc(exec->node_count + 1, sizeof(struct CUevent_st *));
  stream_apply_default_rules(stream);
  if (exec->lane_count > 1) {
    struct CUevent_st *begin = mark(stream);
    for (size_t lane = 1; lane < exec->lane_count; lane++)
      push_wait(exec->lanes[lane], begin);
    event_release(begin);
  }
  for (size_t i = 0; i < exec->node_count; i++) {
    const struct exec_node *node = &exec->nodes[i];
    struct CUstream_st *lane = node->lane ? exec->lanes[node->lane] : stream;
    for (size_t w = 0; w < node->wait_count; w++)
      push_wait(lane, marks[node->waits[w]]);
    push_node(node, lane);
    if (node->has_waiters)
      marks[i] = mark(lane);
  }
  for (size_t lane = 1; lane < exec->lane_count; lane++) {
    struct CUevent_st *end = mark(exec->lanes[lane]);
    push_wait(stream, end);
    event_release(end);
  }
  for (size_t i = 0; i < exec->node_count; i++) {
    if (marks[i])
      event_release(marks[i]);
  }
  free(marks);
}

static void run_nothing(void *arg) {
  (void)arg;
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  struct CUstream_st *stream = stream_resolve(handle);
  if (!exec)
    return error_set(cudaErrorInvalidValue);
  if (capture_is_on(stream)) /* would need child graph nodes */
    return capture_refuse(stream, cudaErrorStreamCaptureUnsupported);
  cudaError_t error = stream_is_legacy(stream) ? capture_check_legacy(stream) : cudaSuccess;
  if (error)
    return error;
  __atomic_add_fetch(&exec->references, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&graph_lock); /* two launches must not interleave in the lanes */
  launch(exec, stream);
  pthread_mutex_unlock(&graph_lock);
  stream_push(stream, op_new(run_nothing, exec_release, exec));
  return cudaSuccess;
}
