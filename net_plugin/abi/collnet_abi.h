/* SPDX-License-Identifier: Apache-2.0 */
/* collnet_abi: NCCL's CollNet interface, versions 8 to 12, as facts: member order and types.
 *
 * Sources: NVIDIA/nccl at tag v2.30.7-1, src/include/plugin/net/net_v8.h to net_v12.h. Properties
 * are those of the network interface of the same version. Which release asks for which version is
 * as for the network interface (net_abi.h). */
#ifndef NET_PLUGIN_ABI_COLLNET_ABI_H
#define NET_PLUGIN_ABI_COLLNET_ABI_H

#include "net_plugin/abi/net_abi.h"

typedef enum nccl_result collnet_init_v8_fn(nccl_logger_fn *logger);
typedef enum nccl_result collnet_init_v11_fn(void **context, uint64_t communicator,
                                             nccl_logger_fn *logger);
typedef enum nccl_result collnet_listen_v8_fn(int device, void *handle, void **listen_comm);
typedef enum nccl_result collnet_listen_v11_fn(void *context, int device, void *handle,
                                               void **listen_comm);
typedef enum nccl_result collnet_connect_fn(void *handles[], int nranks, int rank,
                                            void *listen_comm, void **coll_comm);
typedef enum nccl_result collnet_reduce_support_fn(int type, int op, int *is_supported);
typedef enum nccl_result collnet_reg_mr_fn(void *coll_comm, void *data, size_t bytes, int type,
                                           void **mhandle);
typedef enum nccl_result collnet_reg_mr_dma_buf_fn(void *coll_comm, void *data, size_t bytes,
                                                   int type, uint64_t offset, int fd,
                                                   void **mhandle);
typedef enum nccl_result collnet_dereg_mr_fn(void *coll_comm, void *mhandle);
typedef enum nccl_result collnet_iallreduce_v8_fn(void *coll_comm, void *send, void *recv,
                                                  int count, int type, int op, void *send_mhandle,
                                                  void *recv_mhandle, void **request);
typedef enum nccl_result collnet_iallreduce_v9_fn(void *coll_comm, void *send, void *recv,
                                                  size_t count, int type, int op,
                                                  void *send_mhandle, void *recv_mhandle,
                                                  void **request);
typedef enum nccl_result collnet_iflush_fn(void *coll_comm, void *data, int bytes, void *mhandle,
                                           void **request);
typedef enum nccl_result collnet_test_fn(void *request, int *is_done, int *bytes);
typedef enum nccl_result collnet_close_fn(void *comm);
typedef enum nccl_result collnet_finalize_fn(void *context);

/* The members that all versions have, in order; X(type of init, of properties, of listen, of
 * iallreduce). */
#define COLLNET_MEMBERS(INIT, PROPERTIES, LISTEN, IALLREDUCE)                                      \
  const char *name;                                                                                \
  INIT *init;                                                                                      \
  net_devices_v7_fn *devices;                                                                      \
  PROPERTIES *getProperties;                                                                       \
  LISTEN *listen;                                                                                  \
  collnet_connect_fn *connect;                                                                     \
  collnet_reduce_support_fn *reduceSupport;                                                        \
  collnet_reg_mr_fn *regMr;                                                                        \
  collnet_reg_mr_dma_buf_fn *regMrDmaBuf;                                                          \
  collnet_dereg_mr_fn *deregMr;                                                                    \
  IALLREDUCE *iallreduce;                                                                          \
  void *iallgather, *ireducescatter; /* functions; not offered */                                  \
  collnet_iflush_fn *iflush;                                                                       \
  collnet_test_fn *test;                                                                           \
  collnet_close_fn *closeColl;                                                                     \
  collnet_close_fn *closeListen;

struct collnet_v8 { /* net_v8.h */
  COLLNET_MEMBERS(collnet_init_v8_fn, net_get_properties_v8_fn, collnet_listen_v8_fn,
                  collnet_iallreduce_v8_fn)
};

struct collnet_v9 { /* net_v9.h */
  COLLNET_MEMBERS(collnet_init_v8_fn, net_get_properties_v9_fn, collnet_listen_v8_fn,
                  collnet_iallreduce_v9_fn)
  net_make_vdevice_v9_fn *makeVDevice;
};

struct collnet_v10 { /* net_v10.h; its properties are those of v9 */
  COLLNET_MEMBERS(collnet_init_v8_fn, net_get_properties_v9_fn, collnet_listen_v8_fn,
                  collnet_iallreduce_v9_fn)
  net_make_vdevice_v9_fn *makeVDevice;
};

struct collnet_v11 { /* net_v11.h */
  COLLNET_MEMBERS(collnet_init_v11_fn, net_get_properties_v11_fn, collnet_listen_v11_fn,
                  collnet_iallreduce_v9_fn)
  net_make_vdevice_v9_fn *makeVDevice;
  collnet_finalize_fn *finalize;
};

struct collnet_v12 { /* net_v12.h */
  COLLNET_MEMBERS(collnet_init_v11_fn, net_get_properties_v12_fn, collnet_listen_v11_fn,
                  collnet_iallreduce_v9_fn)
  net_make_vdevice_v12_fn *makeVDevice;
  collnet_finalize_fn *finalize;
};

extern const struct collnet_v8 ncclCollNetPlugin_v8;
extern const struct collnet_v9 ncclCollNetPlugin_v9;
extern const struct collnet_v10 ncclCollNetPlugin_v10;
extern const struct collnet_v11 ncclCollNetPlugin_v11;
extern const struct collnet_v12 ncclCollNetPlugin_v12;

#endif
