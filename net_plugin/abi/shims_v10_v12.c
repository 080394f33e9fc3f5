/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of net v10 to v12: profiler handles; from v11 on a context per communicator. */
#include "common/log.h"
#include "common/nccl_version.h"
#include "net_plugin/abi/logger.h"
#include "net_plugin/abi/result.h"
#include "net_plugin/abi/shims.h"
#include "net_plugin/plugin/plugin.h"

static enum nccl_result init_v10(nccl_logger_fn *logger, profiler_callback_fn *callback) {
  return shims_init_process(10, logger, callback);
}

static enum nccl_result init_context(int api_version, void **context, struct net_config_v10 *config,
                                     nccl_logger_fn *logger, profiler_callback_fn *callback) {
  SHIMS_FAIL_IN_CHILD;
  logger_use(logger);
  const struct plugin_host host = {
    .api_version = api_version,
    .nccl_version = nccl_version_find((nccl_version_any_fn *)logger),
    .traffic_class = config ? config->trafficClass : PLUGIN_TRAFFIC_CLASS_NONE,
    .profiler = callback,
    .owner = (plugin_owner_fn *)logger,
  };
  struct plugin_context *created = NULL;
  int rc = plugin_init(&host, &created);
  if (rc) {
    logger_leave(logger);
  }
  *context = created;
  return result_from_errno(rc);
}

static enum nccl_result init_v11(void **context, uint64_t communicator,
                                 struct net_config_v10 *config, nccl_logger_fn *logger,
                                 profiler_callback_fn *callback) {
  (void)communicator;
  return init_context(11, context, config, logger, callback);
}

static enum nccl_result init_v12(void **context, uint64_t communicator,
                                 struct net_config_v10 *config, nccl_logger_fn *logger,
                                 profiler_callback_fn *callback) {
  (void)communicator;
  return init_context(12, context, config, logger, callback);
}

static enum nccl_result finalize_v11(void *context) {
  SHIMS_DO_NOTHING_IN_CHILD;
  logger_leave((nccl_logger_fn *)plugin_finalize(context));
  return NCCL_SUCCESS;
}

SHIMS_GET_PROPERTIES(9, SHIMS_COPY_V9) /* v10 has the same */
SHIMS_GET_PROPERTIES(11, SHIMS_COPY_V11)
SHIMS_GET_PROPERTIES(12, SHIMS_COPY_V12)

static enum nccl_result connect_v10(int device, struct net_config_v10 *config, void *handle,
                                    void **send_comm, struct net_device_handle **device_handle) {
  (void)device_handle;
  int traffic_class = config ? config->trafficClass : PLUGIN_TRAFFIC_CLASS_NONE;
  return shims_connect(NULL, device, traffic_class, handle, send_comm);
}

static enum nccl_result connect_v11(void *context, int device, void *handle, void **send_comm,
                                    struct net_device_handle **device_handle) {
  (void)device_handle;
  return shims_connect(context, device, PLUGIN_TRAFFIC_CLASS_NONE, handle, send_comm);
}

static enum nccl_result isend_v10(void *send_comm, void *data, size_t bytes, int tag, void *mhandle,
                                  void *phandle, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tag;
  struct request *posted = NULL;
  int rc = plugin_post(send_comm, data, bytes, mhandle, phandle, &posted);
  *request = posted;
  return result_from_errno(rc);
}

/* *request may hold a hint on entry, as in irecv_v9. */
static enum nccl_result irecv_v10(void *recv_comm, int count, void **data, size_t *bytes, int *tags,
                                  void **mhandles, void **phandles, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tags;
  struct request *posted = NULL;
  int rc = plugin_irecv(recv_comm, count, data, bytes, mhandles, phandles, &posted);
  *request = posted;
  return result_from_errno(rc);
}

static enum nccl_result make_vdevice_v10(int *device, struct net_vdevice_v9 *parts) {
  SHIMS_FAIL_IN_CHILD;
  return result_from_errno(
      plugin_fuse_devices(parts->devs, parts->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V11, device));
}

static enum nccl_result make_vdevice_v12(int *device, struct net_vdevice_v12 *parts) {
  SHIMS_FAIL_IN_CHILD;
  return result_from_errno(
      plugin_fuse_devices(parts->devs, parts->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V12, device));
}

/* Advisory: for who reads a trace. NCCL changes them before each kind of operation, when its
 * connections exist already; and they are bounds that follow from the communicator's size. So they
 * do not choose the number of lanes: a connection's own traffic does. */
static enum nccl_result set_attributes_v11(void *context, struct net_attributes_v11 *attributes) {
  SHIMS_DO_NOTHING_IN_CHILD;
  (void)context;
  const struct net_comm_attributes_v11 *send = &attributes->sendCommAttr;
  const struct net_comm_attributes_v11 *receive = &attributes->recvCommAttr;
  LOG_TRACE("coming traffic: send: %d to %d peers, %d to %d connections each; receive: %d to %d "
            "peers, %d to %d connections each; operations 0x%x, algorithms 0x%x, protocols 0x%x",
            send->minConcurrentPeers, send->maxConcurrentPeers, send->minFlowsPerPeer,
            send->maxFlowsPerPeer, receive->minConcurrentPeers, receive->maxConcurrentPeers,
            receive->minFlowsPerPeer, receive->maxFlowsPerPeer, attributes->op, attributes->algo,
            attributes->proto);
  return NCCL_SUCCESS;
}

const struct net_v10 ncclNetPlugin_v10 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v10,
  .devices = shims_devices,
  .getProperties = get_properties_v9,
  .listen = shims_listen,
  .connect = connect_v10,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = isend_v10,
  .irecv = irecv_v10,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
  .makeVDevice = make_vdevice_v10,
};

const struct net_v11 ncclNetPlugin_v11 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v11,
  .devices = shims_devices,
  .getProperties = get_properties_v11,
  .listen = shims_listen_v11,
  .connect = connect_v11,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = isend_v10,
  .irecv = irecv_v10,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
  .makeVDevice = make_vdevice_v10,
  .finalize = finalize_v11,
  .setNetAttr = set_attributes_v11,
};

const struct net_v12 ncclNetPlugin_v12 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v12,
  .devices = shims_devices,
  .getProperties = get_properties_v12,
  .listen = shims_listen_v11,
  .connect = connect_v11,
  .accept = shims_accept_v7,
  .regMr = shims_reg_mr,
  .regMrDmaBuf = shims_reg_mr_dma_buf,
  .deregMr = shims_dereg_mr,
  .isend = isend_v10,
  .irecv = irecv_v10,
  .iflush = shims_iflush,
  .test = shims_test,
  .closeSend = shims_close,
  .closeRecv = shims_close,
  .closeListen = shims_close_listen,
  .makeVDevice = make_vdevice_v12,
  .finalize = finalize_v11,
  .setNetAttr = set_attributes_v11,
};
