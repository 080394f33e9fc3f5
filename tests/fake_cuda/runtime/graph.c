/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs: nodes, dependencies. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/event.h"

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- lists of nodes ---- */

void node_list_add(struct node_list *list, const cudaGraphNode_t *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t k = 0;
    while (k < list->count && list->nodes[k] != nodes[i])
      k++;
    if (k < list->count)
      continue;
    if (list->count == list->capacity) {
      list->capacity = list->capacity ? 2 * list->capacity : 4;
      list->nodes = realloc(list->nodes, list->capacity * sizeof *list->nodes);
    }
    list->nodes[list->count++] = nodes[i];
  }
}

void node_list_set(struct node_list *list, const cudaGraphNode_t *nodes, size_t count) {
  struct node_list fresh = { 0 };
  node_list_add(&fresh, nodes, count); /* before the old list goes: nodes may be part of it */
  node_list_free(list);
  *list = fresh;
}

void node_list_free(struct node_list *list) {
  free(list->nodes);
  *list = (struct node_list){ 0 };
}

/* ---- graphs ---- */

cudaGraph_t graph_new(void) {
  return calloc(1, sizeof(struct CUgraph_st));
}

cudaGraphNode_t graph_add_node(cudaGraph_t graph, enum cudaGraphNodeType type, struct op *op,
                               struct CUevent_st *event, const struct node_list *dependencies) {
  cudaGraphNode_t node = calloc(1, sizeof *node);
  *node = (struct CUgraphNode_st){ .type = type,
                                   .graph = graph,
                                   .index = graph->nodes.count,
                                   .device = device_current(),
                                   .op = op,
                                   .event = event };
  node_list_add(&node->dependencies, dependencies->nodes, dependencies->count);
  if (graph->nodes.count == graph->nodes.capacity) {
    graph->nodes.capacity = graph->nodes.capacity ? 2 * graph->nodes.capacity : 16;
    graph->nodes.nodes =
        realloc(graph->nodes.nodes, graph->nodes.capacity * sizeof *graph->nodes.nodes);
  }
  graph->nodes.nodes[graph->nodes.count++] = node;
  return node;
}

void graph_free(cudaGraph_t graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    cudaGraphNode_t node = graph->nodes.nodes[i];
    if (node->op)
      op_release(node->op);
    if (node->event)
      event_release(node->event);
    node_list_free(&node->dependencies);
    free(node);
  }
  node_list_free(&graph->nodes);
  user_objects_free(graph->objects);
  free(graph);
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph)
    return error_set(cudaErrorInvalidValue);
  graph_free(graph);
  return cudaSuccess;
}

/* ---- nodes ---- */

EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                               const cudaGraphNode_t *dependencies, size_t count,
                                               cudaEvent_t event) {
  bool is_valid = node && graph && (dependencies || !count);
  for (size_t i = 0; is_valid && i < count; i++)
    is_valid = dependencies[i]->graph == graph;
  if (!is_valid)
    return error_set(cudaErrorInvalidValue);
  const struct node_list list = { count, count, (cudaGraphNode_t *)dependencies };
  pthread_mutex_lock(&graph_lock);
  *node = graph_add_node(graph, cudaGraphNodeTypeEventRecord, NULL, event_retain(event), &list);
  pthread_mutex_unlock(&graph_lock);
  return cudaSuccess;
}

EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                            const cudaGraphNode_t *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i])
      return error_set(cudaErrorInvalidValue);
  }
  pthread_mutex_lock(&graph_lock);
  for (size_t i = 0; i < count; i++)
    node_list_add(&to[i]->dependencies, &from[i], 1);
  pthread_mutex_unlock(&graph_lock);
  return cudaSuccess;
}

/* Edges only refine when a dependent kernel may start: full completion is always correct. */
EXPORT cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                               const cudaGraphNode_t *to,
                                               const cudaGraphEdgeData *edges, size_t count) {
  (void)edges;
  return cudaGraphAddDependencies(graph, from, to, count);
}
