/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler's events and tables as NCCL declares them (src/include/plugin/profiler/profiler_v1.h
 * to _v4.h at v2.27.3-1, _v5.h and _v6.h at v2.30.7-1, _v7.h at 8898068, which is 2.31.2), declared
 * a second time: of the union the largest members and collectives. Forks have a v7 of their own,
 * whose events begin the same. */
#ifndef TESTS_ABI_NCCL_PROFILER_LAYOUTS_H
#define TESTS_ABI_NCCL_PROFILER_LAYOUTS_H

#include <stdbool.h>

#include "tests/abi/nccl_net_layouts.h"

enum { ncclProfileGroup = 1, ncclProfileColl = 2, ncclProfileGroupApi = 256 };

#define EVENT(version, type_of_type, ...)                                                          \
  typedef struct {                                                                                 \
    type_of_type type;                                                                             \
    void *parentObj;                                                                               \
    int rank;                                                                                      \
    union {                                                                                        \
      struct {                                                                                     \
        __VA_ARGS__                                                                                \
      } coll;                                                                                      \
      struct {                                                                                     \
        bool graphCaptured;                                                                        \
        int groupDepth;                                                                            \
      } groupApi;                                                                                  \
    };                                                                                             \
  } ncclProfilerEventDescr_v##version##_t

EVENT(1, uint8_t, const char *name; uint64_t commHash; uint64_t seqNumber; uint8_t func;
      void const *sendBuff; void *recvBuff; size_t count; int root; uint8_t datatype; uint32_t op;
      size_t trafficBytes; uint8_t nMaxChannels; uint8_t nWarps; uint8_t algo; uint8_t proto;
      int isCollnet; int isNvls;);
EVENT(2, uint8_t, const char *name; uint64_t commHash; uint64_t seqNumber; const char *func;
      void const *sendBuff; void *recvBuff; size_t count; int root; const char *datatype;
      size_t trafficBytes; uint8_t nMaxChannels; uint8_t nWarps; const char *algo;
      const char *proto;);
EVENT(3, uint8_t, const char *name; uint64_t commHash; uint64_t seqNumber; const char *func;
      void const *sendBuff; void *recvBuff; size_t count; int root; const char *datatype;
      uint8_t nMaxChannels; uint8_t nWarps; const char *algo; const char *proto;);
EVENT(4, uint8_t, uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; uint8_t nChannels; uint8_t nWarps;
      const char *algo; const char *proto;);
EVENT(5, uint64_t, uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; uint8_t nChannels; uint8_t nWarps;
      const char *algo; const char *proto; void *parentGroup;);
EVENT(6, uint64_t, uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; uint8_t nChannels; uint8_t nWarps;
      const char *algo; const char *proto; void *parentGroup;);
EVENT(7, uint64_t, uint64_t seqNumber; const char *func; void const *sendBuff; void *recvBuff;
      size_t count; int root; const char *datatype; uint8_t nChannels; uint8_t nWarps;
      const char *algo; const char *proto; void *parentGroup; const char *kernelVariant;
      bool isSymColl; uint64_t userTag;);

#define PROFILER(version, ...)                                                                     \
  typedef struct {                                                                                 \
    const char *name;                                                                              \
    ncclResult_t (*init)(__VA_ARGS__);                                                             \
    ncclResult_t (*startEvent)(void *context, void **eHandle,                                      \
                               ncclProfilerEventDescr_v##version##_t *eDescr);                     \
    ncclResult_t (*stopEvent)(void *eHandle);                                                      \
    ncclResult_t (*recordEventState)(void *eHandle, int eState, void *eStateArgs);                 \
    ncclResult_t (*finalize)(void *context);                                                       \
  } ncclProfiler_v##version##_t

PROFILER(1, void **context, int *eActivationMask);
PROFILER(2, void **context, int *eActivationMask);
PROFILER(3, void **context, int *eActivationMask);
PROFILER(4, void **context, int *eActivationMask, const char *commName, uint64_t commHash,
         int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
PROFILER(5, void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
         int nranks, int rank, ncclDebugLogger_t logfn);
PROFILER(6, void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
         int nranks, int rank, ncclDebugLogger_t logfn);
PROFILER(7, void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
         int nranks, int rank, ncclDebugLogger_t logfn);

#endif
