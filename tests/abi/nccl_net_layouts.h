/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_net_layouts: the network plugin interface as the releases of NCCL declare it.
 *
 * From the headers of the release that introduced each version (2.30.7 declares the same), without
 * regard to net_plugin/abi/net_abi.h, so that the two check each other:
 *   v6, v7   2.19.3  ext-net/example/nccl/net_v6.h, src/include/nccl_net.h
 *   v8       2.20.3  src/include/nccl_net.h
 *   v9       2.24.3  src/include/nccl_net.h
 *   v10      2.26.2  src/include/plugin/net/net_v10.h
 *   v11      2.28.3  src/include/plugin/net/net_v11.h
 *   v12      2.30.3  src/include/plugin/net/net_v12.h */
#ifndef TESTS_ABI_NCCL_NET_LAYOUTS_H
#define TESTS_ABI_NCCL_NET_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

typedef enum { ncclSuccess = 0, ncclRemoteError = 6, ncclResultLast = 9 } ncclResult_t;
typedef enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3, NCCL_LOG_TRACE = 5 } ncclDebugLogLevel;
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel, unsigned long, const char *, int, const char *,
                                  ...);
typedef ncclResult_t (*ncclProfilerCallback_t)(void **, int, void *, int64_t, void *);
typedef enum { NCCL_NET_DEVICE_HOST = 0, NCCL_NET_DEVICE_UNPACK = 1 } ncclNetDeviceType;
typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void *handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_t;

typedef struct {
  int ndevs, devs[4];
} ncclNetVDeviceProps_v9_t; /* v10 and v11 alike */
typedef struct {
  int ndevs, devs[8];
} ncclNetVDeviceProps_v12_t;
typedef struct {
  int trafficClass;
} ncclNetCommConfig_t;
typedef struct {
  int32_t sendComm[4], recvComm[4];
  uint32_t op, algo, proto;
} ncclNetAttr_t;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs;
} ncclNetProperties_v6_t;
typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v7_t;
typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, speed, port;
  float latency;
  int maxComms, maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v8_t;
#define NCCL_NET_PROPERTIES_FROM_V9(vdevice)                                                       \
  char *name, *pciPath;                                                                            \
  uint64_t guid;                                                                                   \
  int ptrSupport, regIsGlobal, forceFlush, speed, port;                                            \
  float latency;                                                                                   \
  int maxComms, maxRecvs;                                                                          \
  ncclNetDeviceType netDeviceType;                                                                 \
  int netDeviceVersion;                                                                            \
  vdevice vProps;                                                                                  \
  size_t maxP2pBytes, maxCollBytes
typedef struct {
  NCCL_NET_PROPERTIES_FROM_V9(ncclNetVDeviceProps_v9_t);
} ncclNetProperties_v9_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;
typedef struct {
  NCCL_NET_PROPERTIES_FROM_V9(ncclNetVDeviceProps_v9_t);
  int maxMultiRequestSize;
} ncclNetProperties_v11_t;
typedef struct {
  NCCL_NET_PROPERTIES_FROM_V9(ncclNetVDeviceProps_v12_t);
  int maxMultiRequestSize;
  int16_t railId, planeId;
} ncclNetProperties_v12_t;

/* What never changed, in the order of the tables. */
#define NCCL_NET_HEAD(init_arguments, version)                                                     \
  const char *name;                                                                                \
  ncclResult_t(*init) init_arguments;                                                              \
  ncclResult_t (*devices)(int *ndev);                                                              \
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v##version##_t *props)
#define NCCL_NET_REG_MR(bytes_type)                                                                \
  ncclResult_t (*regMr)(void *comm, void *data, bytes_type size, int type, void **mhandle);        \
  ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,      \
                              int fd, void **mhandle);                                             \
  ncclResult_t (*deregMr)(void *comm, void *mhandle)
#define NCCL_NET_TAIL                                                                              \
  ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes, void **mhandles,          \
                         void **request);                                                          \
  ncclResult_t (*test)(void *request, int *done, int *sizes);                                      \
  ncclResult_t (*closeSend)(void *sendComm);                                                       \
  ncclResult_t (*closeRecv)(void *recvComm);                                                       \
  ncclResult_t (*closeListen)(void *listenComm)
#define NCCL_NET_DEVICE_CODE                                                                       \
  ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dptr_mhandle);                     \
  ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request)

typedef struct {
  NCCL_NET_HEAD((ncclDebugLogger_t), 6);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
  ncclResult_t (*accept)(void *listenComm, void **recvComm);
  NCCL_NET_REG_MR(int);
  ncclResult_t (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle,
                        void **request);
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles,
                        void **request);
  NCCL_NET_TAIL;
} ncclNet_v6_t;

#define NCCL_NET_V7_V8(version, bytes_type)                                                        \
  NCCL_NET_HEAD((ncclDebugLogger_t), version);                                                     \
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);                                \
  ncclResult_t (*connect)(int dev, void *handle, void **sendComm, ncclNetDeviceHandle_t **device); \
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **device);       \
  NCCL_NET_REG_MR(bytes_type);                                                                     \
  ncclResult_t (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle,              \
                        void **request);                                                           \
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags,                 \
                        void **mhandles, void **request);                                          \
  NCCL_NET_TAIL;                                                                                   \
  NCCL_NET_DEVICE_CODE
typedef struct {
  NCCL_NET_V7_V8(7, int);
} ncclNet_v7_t;
typedef struct {
  NCCL_NET_V7_V8(8, size_t);
} ncclNet_v8_t;

typedef struct {
  NCCL_NET_HEAD((ncclDebugLogger_t), 9);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(int dev, void *handle, void **sendComm, ncclNetDeviceHandle_t **device);
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **device);
  NCCL_NET_REG_MR(size_t);
  ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle,
                        void **request);
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags,
                        void **mhandles, void **request);
  NCCL_NET_TAIL;
  NCCL_NET_DEVICE_CODE;
  ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v9_t *props);
} ncclNet_v9_t;

#define NCCL_NET_TRANSFERS_V10                                                                     \
  ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle,           \
                        void *phandle, void **request);                                            \
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags,              \
                        void **mhandles, void **phandles, void **request);                         \
  NCCL_NET_TAIL;                                                                                   \
  NCCL_NET_DEVICE_CODE
typedef struct {
  NCCL_NET_HEAD((ncclDebugLogger_t, ncclProfilerCallback_t), 10);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(int dev, ncclNetCommConfig_t *config, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **device);
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **device);
  NCCL_NET_REG_MR(size_t);
  NCCL_NET_TRANSFERS_V10;
  ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v9_t *props);
} ncclNet_v10_t;

#define NCCL_NET_V11_V12(version, vdevice)                                                         \
  NCCL_NET_HEAD((void **ctx, uint64_t commId, ncclNetCommConfig_t *config, ncclDebugLogger_t,      \
                 ncclProfilerCallback_t),                                                          \
                version);                                                                          \
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);                     \
  ncclResult_t (*connect)(void *ctx, int dev, void *handle, void **sendComm,                       \
                          ncclNetDeviceHandle_t **device);                                         \
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **device);       \
  NCCL_NET_REG_MR(size_t);                                                                         \
  NCCL_NET_TRANSFERS_V10;                                                                          \
  ncclResult_t (*makeVDevice)(int *d, vdevice *props);                                             \
  ncclResult_t (*finalize)(void *ctx);                                                             \
  ncclResult_t (*setNetAttr)(void *ctx, ncclNetAttr_t *netAttr)
typedef struct {
  NCCL_NET_V11_V12(11, ncclNetVDeviceProps_v9_t);
} ncclNet_v11_t;
typedef struct {
  NCCL_NET_V11_V12(12, ncclNetVDeviceProps_v12_t);
} ncclNet_v12_t;

#endif
