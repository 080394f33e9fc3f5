/* SPDX-License-Identifier: Apache-2.0 */
/* net_abi: NCCL's network plugin interface, versions 7 to 12, as facts: member order and types.
 *
 * Sources: NVIDIA/nccl at tag v2.30.7-1, src/include/plugin/net/net_v7.h to net_v12.h,
 * src/include/plugin/nccl_net.h, src/include/nccl_device/net_device.h.
 * Which release asks for which version: 2.19 v7; 2.20-2.23 v8; 2.24-2.25 v9; 2.26-2.27 v10;
 * 2.28-2.29 v11; 2.30-2.32 v12; older versions after those, newest first.
 * tests/abi/layouts.c compares every member with those headers. */
#ifndef NET_PLUGIN_ABI_NET_ABI_H
#define NET_PLUGIN_ABI_NET_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "common/nccl_abi.h"

enum {
  NCCL_PTR_HOST = 0x1, /* src/include/plugin/nccl_net.h:25-27 */
  NCCL_PTR_CUDA = 0x2,
  NCCL_PTR_DMABUF = 0x4,
  NCCL_NET_DEVICE_HOST = 0, /* src/include/nccl_device/net_device.h:19 */
  NCCL_NET_DEVICE_INVALID_VERSION = 0,
  NCCL_NET_MAX_DEVS_PER_NIC_V11 = 4, /* net_v11.h:11; v9 and v10 use it too */
  NCCL_NET_MAX_DEVS_PER_NIC_V12 = 8, /* net_v12.h:11 */
  NCCL_NET_TRAFFIC_CLASS_UNDEF = -1, /* net_v12.h:18 */
  NCCL_NET_ID_UNDEF = -1,            /* net_v12.h:50 */
};

/* The handle of device code, which this plugin has none of: only NULL is ever stored in it. */
struct net_device_handle;

/* ---- devices that are fused into one; net_v9.h:11-14 (v10, v11 the same), net_v12.h:13-16 ---- */

struct net_vdevice_v9 {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V11];
};

struct net_vdevice_v12 {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
};

/* ---- configuration of a communicator; net_v10.h:18-21 (v11 and v12 the same) ---- */

struct net_config_v10 {
  int trafficClass;
};

/* ---- what NCCL tells about its traffic; net_v11.h:57-70 (v12 the same) ---- */

struct net_comm_attributes_v11 {
  int32_t maxConcurrentPeers;
  int32_t minConcurrentPeers;
  int32_t maxFlowsPerPeer;
  int32_t minFlowsPerPeer;
};

struct net_attributes_v11 {
  struct net_comm_attributes_v11 sendCommAttr;
  struct net_comm_attributes_v11 recvCommAttr;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
};

/* ---- properties of a device ---- */

struct net_properties_v7 { /* net_v7.h:11-24 */
  char *name;
  char *pciPath;
  uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

struct net_properties_v8 { /* net_v8.h:11-25 */
  char *name;
  char *pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

/* What v9 and later have, in order; the struct of what is fused is of the version. */
#define NET_PROPERTIES(VDEVICE)                                                                    \
  char *name;                                                                                      \
  char *pciPath;                                                                                   \
  uint64_t guid;                                                                                   \
  int ptrSupport;                                                                                  \
  int regIsGlobal;                                                                                 \
  int forceFlush;                                                                                  \
  int speed;                                                                                       \
  int port;                                                                                        \
  float latency;                                                                                   \
  int maxComms;                                                                                    \
  int maxRecvs;                                                                                    \
  int netDeviceType;                                                                               \
  int netDeviceVersion;                                                                            \
  VDEVICE vProps;                                                                                  \
  size_t maxP2pBytes;                                                                              \
  size_t maxCollBytes;

struct net_properties_v9 { /* net_v9.h:16-34; net_v10.h:23-41 is the same */
  NET_PROPERTIES(struct net_vdevice_v9)
};

struct net_properties_v11 { /* net_v11.h:25-44 */
  NET_PROPERTIES(struct net_vdevice_v9)
  int maxMultiRequestSize;
};

struct net_properties_v12 { /* net_v12.h:25-46 */
  NET_PROPERTIES(struct net_vdevice_v12)
  int maxMultiRequestSize;
  int16_t railId;
  int16_t planeId;
};

/* ---- function types; the number is the first version that has the type ---- */

typedef enum nccl_result net_init_v7_fn(nccl_logger_fn *logger);
/* ncclProfilerCallback_t, src/include/nccl_common.h:69: handed over and never called. */
typedef enum nccl_result net_profiler_fn(void **event, int type, void *phandle, int64_t plugin_id,
                                         void *data);
typedef enum nccl_result net_init_v10_fn(nccl_logger_fn *logger, net_profiler_fn *profiler);
typedef enum nccl_result net_init_v11_fn(void **context, uint64_t communicator,
                                         struct net_config_v10 *config, nccl_logger_fn *logger,
                                         net_profiler_fn *profiler);
typedef enum nccl_result net_devices_v7_fn(int *count);
typedef enum nccl_result net_get_properties_v7_fn(int device, struct net_properties_v7 *out);
typedef enum nccl_result net_get_properties_v8_fn(int device, struct net_properties_v8 *out);
typedef enum nccl_result net_get_properties_v9_fn(int device, struct net_properties_v9 *out);
typedef enum nccl_result net_get_properties_v11_fn(int device, struct net_properties_v11 *out);
typedef enum nccl_result net_get_properties_v12_fn(int device, struct net_properties_v12 *out);
typedef enum nccl_result net_listen_v7_fn(int device, void *handle, void **listen_comm);
typedef enum nccl_result net_listen_v11_fn(void *context, int device, void *handle,
                                           void **listen_comm);
typedef enum nccl_result net_connect_v7_fn(int device, void *handle, void **send_comm,
                                           struct net_device_handle **device_handle);
typedef enum nccl_result net_connect_v10_fn(int device, struct net_config_v10 *config, void *handle,
                                            void **send_comm,
                                            struct net_device_handle **device_handle);
typedef enum nccl_result net_connect_v11_fn(void *context, int device, void *handle,
                                            void **send_comm,
                                            struct net_device_handle **device_handle);
typedef enum nccl_result net_accept_v7_fn(void *listen_comm, void **recv_comm,
                                          struct net_device_handle **device_handle);
typedef enum nccl_result net_reg_mr_v7_fn(void *comm, void *data, int bytes, int type,
                                          void **mhandle);
typedef enum nccl_result net_reg_mr_v8_fn(void *comm, void *data, size_t bytes, int type,
                                          void **mhandle);
typedef enum nccl_result net_reg_mr_dma_buf_v7_fn(void *comm, void *data, size_t bytes, int type,
                                                  uint64_t offset, int fd, void **mhandle);
typedef enum nccl_result net_dereg_mr_v7_fn(void *comm, void *mhandle);
typedef enum nccl_result net_isend_v7_fn(void *send_comm, void *data, int bytes, int tag,
                                         void *mhandle, void **request);
typedef enum nccl_result net_isend_v9_fn(void *send_comm, void *data, size_t bytes, int tag,
                                         void *mhandle, void **request);
typedef enum nccl_result net_isend_v10_fn(void *send_comm, void *data, size_t bytes, int tag,
                                          void *mhandle, void *phandle, void **request);
typedef enum nccl_result net_irecv_v7_fn(void *recv_comm, int count, void **data, int *bytes,
                                         int *tags, void **mhandles, void **request);
typedef enum nccl_result net_irecv_v9_fn(void *recv_comm, int count, void **data, size_t *bytes,
                                         int *tags, void **mhandles, void **request);
typedef enum nccl_result net_irecv_v10_fn(void *recv_comm, int count, void **data, size_t *bytes,
                                          int *tags, void **mhandles, void **phandles,
                                          void **request);
typedef enum nccl_result net_iflush_v7_fn(void *recv_comm, int count, void **data, int *bytes,
                                          void **mhandles, void **request);
typedef enum nccl_result net_test_v7_fn(void *request, int *is_done, int *bytes);
typedef enum nccl_result net_close_v7_fn(void *comm);
typedef enum nccl_result net_make_vdevice_v9_fn(int *device, struct net_vdevice_v9 *parts);
typedef enum nccl_result net_make_vdevice_v12_fn(int *device, struct net_vdevice_v12 *parts);
typedef enum nccl_result net_finalize_v11_fn(void *context);
typedef enum nccl_result net_set_attributes_v11_fn(void *context,
                                                   struct net_attributes_v11 *attributes);

/* ---- function tables ---- */

/* The members that all versions have, in order; X(types of those that differ). */
#define NET_MEMBERS(INIT, PROPERTIES, LISTEN, CONNECT, ACCEPT, REG_MR, ISEND, IRECV)               \
  const char *name;                                                                                \
  INIT *init;                                                                                      \
  net_devices_v7_fn *devices;                                                                      \
  PROPERTIES *getProperties;                                                                       \
  LISTEN *listen;                                                                                  \
  CONNECT *connect;                                                                                \
  ACCEPT *accept;                                                                                  \
  REG_MR *regMr;                                                                                   \
  net_reg_mr_dma_buf_v7_fn *regMrDmaBuf;                                                           \
  net_dereg_mr_v7_fn *deregMr;                                                                     \
  ISEND *isend;                                                                                    \
  IRECV *irecv;                                                                                    \
  net_iflush_v7_fn *iflush;                                                                        \
  net_test_v7_fn *test;                                                                            \
  net_close_v7_fn *closeSend;                                                                      \
  net_close_v7_fn *closeRecv;                                                                      \
  net_close_v7_fn *closeListen;

/* Functions of plugins with device code, as this one is not. */
#define NET_DEVICE_CODE void *getDeviceMr, *irecvConsumed;

struct net_v7 { /* net_v7.h:26-79 */
  NET_MEMBERS(net_init_v7_fn, net_get_properties_v7_fn, net_listen_v7_fn, net_connect_v7_fn,
              net_accept_v7_fn, net_reg_mr_v7_fn, net_isend_v7_fn, net_irecv_v7_fn)
  NET_DEVICE_CODE
};

struct net_v8 { /* net_v8.h:27-80 */
  NET_MEMBERS(net_init_v7_fn, net_get_properties_v8_fn, net_listen_v7_fn, net_connect_v7_fn,
              net_accept_v7_fn, net_reg_mr_v8_fn, net_isend_v7_fn, net_irecv_v7_fn)
  NET_DEVICE_CODE
};

struct net_v9 { /* net_v9.h:36-93 */
  NET_MEMBERS(net_init_v7_fn, net_get_properties_v9_fn, net_listen_v7_fn, net_connect_v7_fn,
              net_accept_v7_fn, net_reg_mr_v8_fn, net_isend_v9_fn, net_irecv_v9_fn)
  NET_DEVICE_CODE
  net_make_vdevice_v9_fn *makeVDevice;
};

struct net_v10 { /* net_v10.h:43-102 */
  NET_MEMBERS(net_init_v10_fn, net_get_properties_v9_fn, net_listen_v7_fn, net_connect_v10_fn,
              net_accept_v7_fn, net_reg_mr_v8_fn, net_isend_v10_fn, net_irecv_v10_fn)
  NET_DEVICE_CODE
  net_make_vdevice_v9_fn *makeVDevice;
};

struct net_v11 { /* net_v11.h:72-135 */
  NET_MEMBERS(net_init_v11_fn, net_get_properties_v11_fn, net_listen_v11_fn, net_connect_v11_fn,
              net_accept_v7_fn, net_reg_mr_v8_fn, net_isend_v10_fn, net_irecv_v10_fn)
  NET_DEVICE_CODE
  net_make_vdevice_v9_fn *makeVDevice;
  net_finalize_v11_fn *finalize;
  net_set_attributes_v11_fn *setNetAttr;
};

struct net_v12 { /* net_v12.h:76-139; NCCL uses the plugin's struct itself, net_v12.cc:15-22 */
  NET_MEMBERS(net_init_v11_fn, net_get_properties_v12_fn, net_listen_v11_fn, net_connect_v11_fn,
              net_accept_v7_fn, net_reg_mr_v8_fn, net_isend_v10_fn, net_irecv_v10_fn)
  NET_DEVICE_CODE
  net_make_vdevice_v12_fn *makeVDevice;
  net_finalize_v11_fn *finalize;
  net_set_attributes_v11_fn *setNetAttr;
};

/* The exported symbols, by which NCCL finds the plugin (abi/exports.map). */
extern const struct net_v7 ncclNetPlugin_v7;
extern const struct net_v8 ncclNetPlugin_v8;
extern const struct net_v9 ncclNetPlugin_v9;
extern const struct net_v10 ncclNetPlugin_v10;
extern const struct net_v11 ncclNetPlugin_v11;
extern const struct net_v12 ncclNetPlugin_v12;

#endif
