/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of net v6 to v9: one init per process, no finalize. */
#include <errno.h>

#include "net_plugin/abi/result.h"
#include "net_plugin/abi/shims.h"
#include "net_plugin/plugin/plugin.h"

#define INIT(version)                                                                              \
  static enum nccl_result init_v##version(nccl_logger_fn *logger) {                                \
    return shims_init_process(version, logger, NULL);                                              \
  }
INIT(6)
INIT(7)
INIT(8)
INIT(9)

SHIMS_GET_PROPERTIES(6, SHIMS_COPY_V6)
SHIMS_GET_PROPERTIES(7, SHIMS_COPY_V7)
SHIMS_GET_PROPERTIES(8, SHIMS_COPY_V8)
SHIMS_GET_PROPERTIES(9, SHIMS_COPY_V9)

static enum nccl_result connect_v6(int device, void *handle, void **send_comm) {
  return shims_connect(NULL, device, PLUGIN_TRAFFIC_CLASS_NONE, handle, send_comm);
}

static enum nccl_result isend_v9(void *send_comm, void *data, size_t bytes, int tag, void *mhandle,
                                 void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tag;
  struct request *posted = NULL;
  int rc = plugin_post(send_comm, data, bytes, mhandle, NULL, &posted);
  *request = posted;
  return result_from_errno(rc);
}

/* NCCL stores 1 in *request to say that it can do without the completion (nccl_net.h:19); it is
 * overwritten, since LL data counts as arrived only when all of it was copied. */
static enum nccl_result irecv_v9(void *recv_comm, int count, void **data, size_t *bytes, int *tags,
                                 void **mhandles, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tags;
  struct request *posted = NULL;
  int rc = plugin_irecv(recv_comm, count, data, bytes, mhandles, NULL, &posted);
  *request = posted;
  return result_from_errno(rc);
}

/* NCCL 2.24 and 2.25 replace all physical devices by what comes out of makeVDevice, single ones
 * too, as soon as it has made any (src/graph/topo.cc:1198-1219 at v2.24.3). So parts that cannot
 * become one device are each made a device here; later releases take them apart themselves. */
static enum nccl_result make_vdevice_v9(int *device, struct net_vdevice_v9 *parts) {
  SHIMS_FAIL_IN_CHILD;
  int rc = plugin_fuse_devices(parts->devs, parts->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V11, device);
  for (int i = 0, count = rc == -ENOTSUP ? parts->ndevs : 0; i < count; i++) {
    rc = plugin_fuse_devices(&parts->devs[i], 1, NCCL_NET_MAX_DEVS_PER_NIC_V11, device);
    if (rc) {
      break;
    }
  }
  return result_from_errno(rc);
}

const struct net_v6 ncclNetPlugin_v6 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v6,
  .devices = shims_devices,
  .getProperties = get_properties_v6,
  .listen = shims_listen,
  .connect = connect_v6,
  .accept = shims_accept,
  .regMr = shims_reg_mr_int,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = shims_isend_int,
  .irecv = shims_irecv_int,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
};

/* getDeviceMr and irecvConsumed are for plugins with device code: NULL, which NCCL checks for
 * (src/transport/net.cc:1010, 1183, 1737 at v2.30.7). */
const struct net_v7 ncclNetPlugin_v7 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v7,
  .devices = shims_devices,
  .getProperties = get_properties_v7,
  .listen = shims_listen,
  .connect = shims_connect_v7,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr_int,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = shims_isend_int,
  .irecv = shims_irecv_int,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
};

const struct net_v8 ncclNetPlugin_v8 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v8,
  .devices = shims_devices,
  .getProperties = get_properties_v8,
  .listen = shims_listen,
  .connect = shims_connect_v7,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = shims_isend_int,
  .irecv = shims_irecv_int,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
};

const struct net_v9 ncclNetPlugin_v9 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v9,
  .devices = shims_devices,
  .getProperties = get_properties_v9,
  .listen = shims_listen,
  .connect = shims_connect_v7,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = isend_v9,
  .irecv = irecv_v9,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
  .makeVDevice = make_vdevice_v9,
};
