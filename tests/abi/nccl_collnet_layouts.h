/* SPDX-License-Identifier: Apache-2.0 */
/* CollNet's tables as NCCL v2.30.7 declares them (src/include/plugin/net/net_v8.h to net_v12.h),
 * declared a second time. Pointers to what the tests do not call are void pointers. */
#ifndef TESTS_ABI_NCCL_COLLNET_LAYOUTS_H
#define TESTS_ABI_NCCL_COLLNET_LAYOUTS_H

#include "tests/abi/nccl_net_layouts.h"

typedef ncclResult_t collnet_connect_t(void *handles[], int nranks, int rank, void *listenComm,
                                       void **collComm);
typedef ncclResult_t collnet_reg_t(void *collComm, void *data, size_t size, int type,
                                   void **mhandle);
typedef ncclResult_t collnet_iallreduce_int_t(void *collComm, void *send, void *recv, int count,
                                              int type, int op, void *sendMhandle,
                                              void *recvMhandle, void **request);
typedef ncclResult_t collnet_iallreduce_t(void *collComm, void *send, void *recv, size_t count,
                                          int type, int op, void *sendMhandle, void *recvMhandle,
                                          void **request);

#define COLLNET_TABLE(INIT, PROPERTIES, LISTEN, IALLREDUCE)                                        \
  const char *name;                                                                                \
  ncclResult_t(*init) INIT;                                                                        \
  ncclResult_t (*devices)(int *ndev);                                                              \
  ncclResult_t (*getProperties)(int dev, PROPERTIES *props);                                       \
  ncclResult_t(*listen) LISTEN;                                                                    \
  collnet_connect_t *connect;                                                                      \
  ncclResult_t (*reduceSupport)(int dataType, int redOp, int *supported);                          \
  collnet_reg_t *regMr;                                                                            \
  void *regMrDmaBuf;                                                                               \
  ncclResult_t (*deregMr)(void *collComm, void *mhandle);                                          \
  IALLREDUCE *iallreduce;                                                                          \
  void *iallgather;                                                                                \
  void *ireducescatter;                                                                            \
  ncclResult_t (*iflush)(void *collComm, void *data, int size, void *mhandle, void **request);     \
  ncclResult_t (*test)(void *request, int *done, int *size);                                       \
  ncclResult_t (*closeColl)(void *collComm);                                                       \
  ncclResult_t (*closeListen)(void *listenComm);

#define OLD_INIT (ncclDebugLogger_t)
#define NEW_INIT (void **, uint64_t, ncclDebugLogger_t)
#define OLD_LISTEN (int, void *, void **)
#define NEW_LISTEN (void *, int, void *, void **)

typedef struct {
  COLLNET_TABLE(OLD_INIT, ncclNetProperties_v8_t, OLD_LISTEN, collnet_iallreduce_int_t)
} ncclCollNet_v8_t;
typedef struct {
  COLLNET_TABLE(OLD_INIT, ncclNetProperties_v9_t, OLD_LISTEN, collnet_iallreduce_t)
  void *makeVDevice;
} ncclCollNet_v9_t;
typedef struct {
  COLLNET_TABLE(OLD_INIT, ncclNetProperties_v10_t, OLD_LISTEN, collnet_iallreduce_t)
  void *makeVDevice;
} ncclCollNet_v10_t;
typedef struct {
  COLLNET_TABLE(NEW_INIT, ncclNetProperties_v11_t, NEW_LISTEN, collnet_iallreduce_t)
  void *makeVDevice;
  ncclResult_t (*finalize)(void *ctx);
} ncclCollNet_v11_t;
typedef struct {
  COLLNET_TABLE(NEW_INIT, ncclNetProperties_v12_t, NEW_LISTEN, collnet_iallreduce_t)
  void *makeVDevice;
  ncclResult_t (*finalize)(void *ctx);
} ncclCollNet_v12_t;

#endif
