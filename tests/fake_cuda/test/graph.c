/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture and graphs, without NCCL. */
#include <cuda_runtime.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/test/lib/expect.h"

static cudaStream_t stream, other;
static char *buffer; /* device memory */

static void append(char digit) {
  size_t length = strlen(buffer);
  buffer[length] = digit;
  buffer[length + 1] = 0;
}

static void append_1(void *arg) {
  (void)arg;
  append('1');
}

static void append_2(void *arg) {
  (void)arg;
  usleep(5000);
  append('2');
}

static void append_3(void *arg) {
  (void)arg;
  append('3');
}

static void count_call(void *arg) {
  __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = NULL;
  EXPECT_OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  return exec;
}

/* Nothing runs while a stream is captured; every launch runs everything, in order. */
static void test_order(void) {
  cudaGraph_t graph = NULL;
  enum cudaStreamCaptureStatus status;
  buffer[0] = 0;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT_OK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaLaunchHostFunc(stream, append_1, NULL));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_2, NULL));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_3, NULL));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT(buffer[0] == 0);
  cudaGraphExec_t exec = instantiate(graph);
  for (int i = 0; i < 3; i++)
    EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaGraphExecDestroy(exec)); /* while it runs */
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(!strcmp(buffer, "123123123"));
}

/* A fork to another stream and back: 1 before 2, 2 before 3. */
static void test_join(void) {
  cudaEvent_t event;
  cudaGraph_t graph = NULL;
  unsigned long long id = 0, other_id = 0;
  enum cudaStreamCaptureStatus status;
  buffer[0] = 0;
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_1, NULL));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_CODE(cudaErrorCapturedEvent, cudaEventSynchronize(event));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL));
  EXPECT_OK(cudaStreamGetCaptureInfo(other, &status, &other_id, NULL, NULL, NULL));
  EXPECT(id && id == other_id);
  EXPECT_OK(cudaLaunchHostFunc(other, append_2, NULL));
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_CODE(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(other, &graph));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT(!graph);

  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_1, NULL));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaLaunchHostFunc(other, append_2, NULL));
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaStreamWaitEvent(stream, event, 0));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_3, NULL));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = instantiate(graph);
  for (int i = 0; i < 2; i++)
    EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(!strcmp(buffer, "123123"));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaEventDestroy(event));
}

/* What a capture forbids, and that it ends the capture. */
static void test_errors(void) {
  cudaEvent_t event;
  cudaGraph_t graph = NULL;
  void *memory = NULL;
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_CODE(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported,
              cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));

  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaLaunchHostFunc(stream, append_1, NULL));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));

  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_OK(cudaMalloc(&memory, 4096)); /* allowed to a relaxed thread */
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaFree(memory));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaFree(memory));

  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaLaunchHostFunc(other, append_1, NULL));
  EXPECT_CODE(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));

  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_CODE(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, event, 0));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaEventDestroy(event));
  EXPECT_OK(cudaStreamSynchronize(stream));
}

static cudaGraph_t ended_elsewhere;

static void *end_capture(void *arg) {
  (void)arg;
  return (void *)(uintptr_t)cudaStreamEndCapture(stream, &ended_elsewhere);
}

static void test_threads(void) {
  pthread_t thread;
  void *result;
  cudaGraph_t graph;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  pthread_create(&thread, NULL, end_capture, NULL);
  pthread_join(thread, &result);
  EXPECT((uintptr_t)result == cudaErrorStreamCaptureWrongThread);
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));

  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  pthread_create(&thread, NULL, end_capture, NULL);
  pthread_join(thread, &result);
  EXPECT((uintptr_t)result == cudaSuccess);
  EXPECT_OK(cudaGraphDestroy(ended_elsewhere));
}

/* A user object lives as long as the graph or an executable graph made from it. */
static void test_user_objects(void) {
  int destroyed = 0;
  cudaUserObject_t object;
  cudaGraph_t graph;
  cudaGraphExec_t first, second;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(
      cudaUserObjectCreate(&object, &destroyed, count_call, 1, cudaUserObjectNoDestructorSync));
  EXPECT_OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  EXPECT_OK(cudaGraphInstantiateWithFlags(&first, graph, 0));
  EXPECT_OK(cudaGraphInstantiateWithFlags(&second, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT(!destroyed);
  EXPECT_OK(cudaGraphExecDestroy(first));
  EXPECT(!destroyed);
  EXPECT_OK(cudaGraphExecDestroy(second));
  EXPECT(destroyed == 1);
}

/* Branches without a dependency run at the same time: each waits for the other here. */
static int arrived;

static void meet(void *arg) {
  (void)arg;
  __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 5000 && __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) % 2; i++)
    usleep(1000);
}

static void test_branches(void) {
  cudaGraph_t graph;
  cudaGraphNode_t nodes[4];
  const struct cudaHostNodeParams first = { append_1, NULL }, meeting = { meet, NULL },
                                  last = { append_3, NULL };
  buffer[0] = 0;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[0], graph, NULL, 0, &first));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[1], graph, nodes, 1, &meeting));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[2], graph, nodes, 1, &meeting));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[3], graph, nodes + 1, 1, &last));
  EXPECT_OK(cudaGraphAddDependencies(graph, &nodes[2], &nodes[3], 1));
  cudaGraphExec_t exec = instantiate(graph);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(arrived == 4 && !strcmp(buffer, "1313"));
  EXPECT_OK(cudaGraphExecDestroy(exec));

  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[0], graph, NULL, 0, &first));
  EXPECT_OK(cudaGraphAddHostNode(&nodes[1], graph, nodes, 1, &last));
  EXPECT_OK(cudaGraphAddDependencies(graph, &nodes[1], &nodes[0], 1));
  EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiateWithFlags(&exec, graph, 0)); /* a cycle */
  EXPECT_OK(cudaGraphDestroy(graph));
}

/* Event nodes order launches of a graph against work outside of it. */
static void test_external_events(void) {
  cudaEvent_t event;
  cudaGraph_t graph;
  buffer[0] = 0;
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
  EXPECT_OK(cudaMemsetAsync(buffer + 100, 3, 8, stream));
  EXPECT_OK(cudaMemcpyAsync(buffer + 200, buffer + 100, 8, cudaMemcpyDefault, stream));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_2, NULL));
  EXPECT_OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = instantiate(graph);
  EXPECT_OK(cudaLaunchHostFunc(other, append_2, NULL));
  EXPECT_OK(cudaLaunchHostFunc(other, append_1, NULL));
  EXPECT_OK(cudaEventRecord(event, other));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaLaunchHostFunc(other, append_3, NULL));
  EXPECT_OK(cudaStreamSynchronize(other));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(!strcmp(buffer, "2123"));
  EXPECT(buffer[207] == 3);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaEventDestroy(event));
}

/* A node added by a call, onto a capture that goes on after it. */
static void test_added_nodes(void) {
  cudaGraph_t graph;
  cudaGraphNode_t added;
  enum cudaStreamCaptureStatus status;
  const struct cudaHostNodeParams params = { append_2, NULL };
  const cudaGraphNode_t *dependencies;
  size_t count = 0;
  buffer[0] = 0;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_1, NULL));
  EXPECT_OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &dependencies, &count));
  EXPECT(count == 1);
  EXPECT_OK(cudaGraphAddHostNode(&added, graph, dependencies, count, &params));
  EXPECT_OK(
      cudaStreamUpdateCaptureDependencies(stream, &added, 1, cudaStreamSetCaptureDependencies));
  EXPECT_OK(cudaLaunchHostFunc(stream, append_3, NULL));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = instantiate(graph);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(!strcmp(buffer, "123123"));
  EXPECT_OK(cudaGraphExecDestroy(exec));
}

int main(void) {
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaMalloc((void **)&buffer, 4096));
  test_order();
  test_join();
  test_errors();
  test_threads();
  test_user_objects();
  test_branches();
  test_external_events();
  test_added_nodes();
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaStreamDestroy(other));
  EXPECT_OK(cudaFree(buffer));
  return expect_report();
}
