/* SPDX-License-Identifier: Apache-2.0 */
/* graph: nodes and their dependencies, user objects, and what stream capture adds to them.
 *
 * A graph is built by capture or by the cudaGraphAdd* calls; cudaGraphInstantiate copies it into an
 * executable graph, which holds references of its own on ops, events and user objects.
 *
 * Owns: nodes, until the graph is destroyed.  Threads: any; building and capture share one lock,
 * graph_lock.  Blocks: on that lock only.  Fails: with a CUDA error code. */
#ifndef FAKE_CUDA_GRAPH_H
#define FAKE_CUDA_GRAPH_H

#include <pthread.h>

#include "tests/fake_cuda/runtime/device.h"
#include "tests/fake_cuda/runtime/op.h"

extern pthread_mutex_t graph_lock;

struct CUstream_st;
struct CUevent_st;

struct node_list {
  size_t count, capacity;
  cudaGraphNode_t *nodes;
};

/* Appends those nodes that are not yet in the list. */
void node_list_add(struct node_list *list, const cudaGraphNode_t *nodes, size_t count);
void node_list_set(struct node_list *list, const cudaGraphNode_t *nodes, size_t count);
void node_list_free(struct node_list *list);

struct CUgraphNode_st {
  enum cudaGraphNodeType type;
  struct CUgraph_st *graph;
  size_t index; /* in the graph's list */
  int device;   /* current when the node was made */
  bool is_captured;
  struct op *op;            /* NULL for event nodes */
  struct CUevent_st *event; /* event nodes only */
  struct node_list dependencies;
};

struct user_object_list;

struct CUgraph_st {
  struct node_list nodes; /* in the order they were added */
  struct user_object_list *objects;
};

/* All with graph_lock held. The node takes over one reference of op and of event. */
cudaGraphNode_t graph_add_node(cudaGraph_t graph, enum cudaGraphNodeType type, struct op *op,
                               struct CUevent_st *event, const struct node_list *dependencies);
cudaGraph_t graph_new(void);
void graph_free(cudaGraph_t graph);

/* user_object.c: lists of (object, number of references held). */
struct user_object_list *user_objects_copy(const struct user_object_list *list);
void user_objects_free(struct user_object_list *list);

/* ---- capture.c ---- */

struct capture;

/* True while calls on this stream are captured, or refused because the capture is invalid. */
bool capture_is_on(const struct CUstream_st *stream);
/* Adds a node after the stream's dependencies. Takes over one reference of op and event. */
cudaError_t capture_add(struct CUstream_st *stream, enum cudaGraphNodeType type, struct op *op,
                        struct CUevent_st *event);
/* A call that cannot be captured: makes the stream's capture invalid. */
cudaError_t capture_refuse(struct CUstream_st *stream, cudaError_t error);
/* For calls that may synchronise: an error where a capture forbids them to this thread. */
cudaError_t capture_check_unsafe(void);
/* For work in the legacy default stream: an error while a blocking stream of it is captured. */
cudaError_t capture_check_legacy(const struct CUstream_st *legacy);
/* Makes the event stand for the stream's present dependencies. */
cudaError_t capture_record(struct CUstream_st *stream, struct CUevent_st *event);
/* Joins the stream to the event's capture; *done is false if the event was not captured. */
cudaError_t capture_wait(struct CUstream_st *stream, struct CUevent_st *event, bool *done);
/* True if the event was last recorded in a capture that has not ended. */
bool capture_has_event(struct CUevent_st *event);
void capture_forget_event(struct CUevent_st *event);
void capture_forget_stream(struct CUstream_st *stream);

#endif
