/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of net v7 to v12. Until v10 there is one init per process and no finalize, from v11 on
 * a context per communicator; v10 brought handles for a profiler, which are not used. The number of
 * a function is the first version that has it. */
#include "net_plugin/abi/shims.h"

#include <errno.h>
#include <limits.h>

#include "common/nccl_version.h"
#include "net_plugin/abi/logger.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/plugin/plugin.h"

/* NCCL's contract for plugins (its plugins/net/README.md, "Error codes"): ncclSystemError when a
 * local call failed, ncclRemoteError when the peer closed the connection, ncclInternalError for
 * bugs in NCCL or plugin, ncclInvalidUsage for what the user has to change. */
enum nccl_result shims_result(int error) {
  switch (-error) {
  case 0:
    return NCCL_SUCCESS;
  case ECONNRESET:
  case ECONNABORTED:
  case ECONNREFUSED:
  case EPIPE:
  case ETIMEDOUT:
  case ENOTCONN:
  case ESHUTDOWN:
  case EHOSTDOWN:
  case ETIME:
  case ENETRESET:
  case EREMOTEIO:
  case ECOMM:
  case ESRCH:
    return NCCL_REMOTE_ERROR;
  case EPROTO:          /* the peer's configuration does not fit */
  case EPROTONOSUPPORT: /* the peer speaks another version */
  case EMSGSIZE:        /* the peer sends more than was asked for */
  case EACCES:          /* the peer has another secret, or what protects cannot */
    return NCCL_INVALID_USAGE;
  case EINVAL:
  case EFAULT:
  case ERANGE:
  case ENOTSUP:
    return NCCL_INTERNAL_ERROR;
  default:
    return NCCL_SYSTEM_ERROR;
  }
}

/* ---- start and end ---- */

enum nccl_result shims_init_process(int api_version, nccl_logger_fn *logger) {
  SHIMS_FAIL_IN_CHILD;
  logger_use(logger);
  const struct plugin_host host = {
    .api_version = api_version,
    .nccl_version = nccl_version_find((nccl_version_any_fn *)logger),
    .traffic_class = PLUGIN_TRAFFIC_CLASS_NONE,
  };
  return shims_result(plugin_init(&host, NULL));
}

#define INIT(version)                                                                              \
  static enum nccl_result init_v##version(nccl_logger_fn *logger) {                                \
    return shims_init_process(version, logger);                                                    \
  }
INIT(7)
INIT(8)
INIT(9)

static enum nccl_result init_v10(nccl_logger_fn *logger, net_profiler_fn *profiler) {
  (void)profiler;
  return shims_init_process(10, logger);
}

static enum nccl_result init_context(int api_version, void **context, struct net_config_v10 *config,
                                     nccl_logger_fn *logger) {
  SHIMS_FAIL_IN_CHILD;
  logger_use(logger);
  const struct plugin_host host = {
    .api_version = api_version,
    .nccl_version = nccl_version_find((nccl_version_any_fn *)logger),
    .traffic_class = config ? config->trafficClass : PLUGIN_TRAFFIC_CLASS_NONE,
  };
  struct plugin_context *created = NULL;
  int rc = plugin_init(&host, &created);
  *context = created;
  return shims_result(rc);
}

#define INIT_CONTEXT(version)                                                                      \
  static enum nccl_result init_v##version(void **context, uint64_t communicator,                   \
                                          struct net_config_v10 *config, nccl_logger_fn *logger,   \
                                          net_profiler_fn *profiler) {                             \
    (void)communicator, (void)profiler;                                                            \
    return init_context(version, context, config, logger);                                         \
  }
INIT_CONTEXT(11)
INIT_CONTEXT(12)

static enum nccl_result finalize_v11(void *context) {
  SHIMS_DO_NOTHING_IN_CHILD;
  plugin_finalize(context);
  return NCCL_SUCCESS;
}

/* ---- devices ---- */

enum nccl_result shims_devices(int *count) {
  SHIMS_FAIL_IN_CHILD;
  return shims_result(plugin_device_count(count));
}

SHIMS_GET_PROPERTIES(7, SHIMS_COPY_V7)
SHIMS_GET_PROPERTIES(8, SHIMS_COPY_V8)
SHIMS_GET_PROPERTIES(9, SHIMS_COPY_V9) /* v10 has the same */
SHIMS_GET_PROPERTIES(11, SHIMS_COPY_V11)
SHIMS_GET_PROPERTIES(12, SHIMS_COPY_V12)

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
  return shims_result(rc);
}

static enum nccl_result make_vdevice_v10(int *device, struct net_vdevice_v9 *parts) {
  SHIMS_FAIL_IN_CHILD;
  return shims_result(
      plugin_fuse_devices(parts->devs, parts->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V11, device));
}

static enum nccl_result make_vdevice_v12(int *device, struct net_vdevice_v12 *parts) {
  SHIMS_FAIL_IN_CHILD;
  return shims_result(
      plugin_fuse_devices(parts->devs, parts->ndevs, NCCL_NET_MAX_DEVS_PER_NIC_V12, device));
}

/* Advisory. NCCL changes them before each kind of operation, when its connections exist already;
 * and they are bounds that follow from the communicator's size. So they do not choose the number of
 * lanes: a connection's own traffic does. */
static enum nccl_result set_attributes_v11(void *context, struct net_attributes_v11 *attributes) {
  (void)context, (void)attributes;
  return NCCL_SUCCESS;
}

/* ---- connections ---- */

static enum nccl_result listen_v7(int device, void *handle, void **listen_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct listener *listener = NULL;
  int rc = plugin_listen(device, handle, &listener);
  *listen_comm = listener;
  return shims_result(rc);
}

static enum nccl_result listen_v11(void *context, int device, void *handle, void **listen_comm) {
  (void)context;
  return listen_v7(device, handle, listen_comm);
}

/* Nothing comes with an error: NCCL from 2.28 on closes what does, and closes it again at the end
 * (sendProxyConnect and sendProxyFree, src/transport/net.cc). It closes nothing else twice. */
static enum nccl_result start_connect(const struct plugin_context *context, int device,
                                      int traffic_class, void *handle, void **send_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct connection *connection = NULL;
  int rc = plugin_connect(context, device, traffic_class, 0, handle, &connection);
  *send_comm = connection;
  return shims_result(rc);
}

/* *device_handle stays as NCCL made it: there is no device code that would need one. */
static enum nccl_result connect_v7(int device, void *handle, void **send_comm,
                                   struct net_device_handle **device_handle) {
  (void)device_handle;
  return start_connect(NULL, device, PLUGIN_TRAFFIC_CLASS_NONE, handle, send_comm);
}

static enum nccl_result connect_v10(int device, struct net_config_v10 *config, void *handle,
                                    void **send_comm, struct net_device_handle **device_handle) {
  (void)device_handle;
  int traffic_class = config ? config->trafficClass : PLUGIN_TRAFFIC_CLASS_NONE;
  return start_connect(NULL, device, traffic_class, handle, send_comm);
}

static enum nccl_result connect_v11(void *context, int device, void *handle, void **send_comm,
                                    struct net_device_handle **device_handle) {
  (void)device_handle;
  return start_connect(context, device, PLUGIN_TRAFFIC_CLASS_NONE, handle, send_comm);
}

static enum nccl_result accept_v7(void *listen_comm, void **recv_comm,
                                  struct net_device_handle **device_handle) {
  SHIMS_FAIL_IN_CHILD;
  (void)device_handle;
  struct connection *connection = NULL;
  int rc = listener_accept(listen_comm, &connection);
  *recv_comm = connection;
  return shims_result(rc);
}

static enum nccl_result close_comm(void *comm) {
  SHIMS_DO_NOTHING_IN_CHILD;
  connection_detach(comm);
  return NCCL_SUCCESS;
}

static enum nccl_result close_listen(void *listen_comm) {
  SHIMS_DO_NOTHING_IN_CHILD;
  listener_close(listen_comm);
  return NCCL_SUCCESS;
}

/* ---- memory
 *
 * The rule: after deregMr returns, or close begins, whichever comes first, nothing of the plugin,
 * no thread and no NIC, reads or writes that memory, whatever is in flight. NCCL frees it in
 * between (sendProxyFree and recvProxyFree, src/transport/net.cc at v2.30.7).
 *
 * NCCL asks on the connection that it will use the memory with (sendProxyRegBuffer and
 * recvProxyRegBuffer there), so a send's memory need not be writable for peers. Were a handle used
 * with another connection all the same, the message would be copied. ---- */

static enum memory_use use_of(const void *comm) {
  return connection_is_sender(comm) ? MEMORY_SENT : MEMORY_RECEIVED;
}

static enum nccl_result reg_mr_v8(void *comm, void *data, size_t bytes, int type, void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  const struct memory *memory = NULL;
  int rc = memory_register(data, bytes, (enum memory_type)type, use_of(comm), &memory);
  *mhandle = (void *)(uintptr_t)memory;
  return shims_result(rc);
}

static enum nccl_result reg_mr_v7(void *comm, void *data, int bytes, int type, void **mhandle) {
  return bytes < 0 ? shims_result(-EINVAL) : reg_mr_v8(comm, data, (size_t)bytes, type, mhandle);
}

static enum nccl_result reg_mr_dma_buf(void *comm, void *data, size_t bytes, int type,
                                       uint64_t offset, int fd, void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  (void)type; /* only GPU memory is exported this way */
  const struct memory *memory = NULL;
  int rc = memory_register_dma_buf(data, bytes, offset, fd, use_of(comm), &memory);
  *mhandle = (void *)(uintptr_t)memory;
  return shims_result(rc);
}

static enum nccl_result dereg_mr(void *comm, void *mhandle) {
  SHIMS_DO_NOTHING_IN_CHILD;
  plugin_deregister(comm, mhandle);
  return NCCL_SUCCESS;
}

/* ---- transfers ---- */

static enum nccl_result isend_v10(void *send_comm, void *data, size_t bytes, int tag, void *mhandle,
                                  void *phandle, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tag; /* one connection per pair of ranks and channel: order says which is which */
  (void)phandle;
  struct request *posted = NULL;
  int rc = plugin_post(send_comm, data, bytes, mhandle, &posted);
  *request = posted;
  return shims_result(rc);
}

static enum nccl_result isend_v9(void *send_comm, void *data, size_t bytes, int tag, void *mhandle,
                                 void **request) {
  return isend_v10(send_comm, data, bytes, tag, mhandle, NULL, request);
}

static enum nccl_result isend_v7(void *send_comm, void *data, int bytes, int tag, void *mhandle,
                                 void **request) {
  *request = NULL;
  return bytes < 0 ? shims_result(-EINVAL)
                   : isend_v9(send_comm, data, (size_t)bytes, tag, mhandle, request);
}

/* NCCL stores 1 in *request to say that it can do without the completion (nccl_net.h:19); it is
 * overwritten, since LL data counts as arrived only when all of it was copied. */
static enum nccl_result irecv_v10(void *recv_comm, int count, void **data, size_t *bytes, int *tags,
                                  void **mhandles, void **phandles, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tags;
  (void)phandles;
  struct request *posted = NULL;
  int rc = plugin_irecv(recv_comm, count, data, bytes, mhandles, &posted);
  *request = posted;
  return shims_result(rc);
}

static enum nccl_result irecv_v9(void *recv_comm, int count, void **data, size_t *bytes, int *tags,
                                 void **mhandles, void **request) {
  return irecv_v10(recv_comm, count, data, bytes, tags, mhandles, NULL, request);
}

static enum nccl_result irecv_v7(void *recv_comm, int count, void **data, int *bytes, int *tags,
                                 void **mhandles, void **request) {
  size_t size = count == 1 && bytes[0] > 0 ? (size_t)bytes[0] : 0;
  return irecv_v9(recv_comm, count, data, &size, tags, mhandles, request);
}

/* The CPU wrote the data itself, or the memory is the host's (memory.c, cache_add), so there is
 * nothing to wait for. NCCL tests a request only if there is one (src/transport/net.cc:1699-1700 at
 * v2.30.7). */
static enum nccl_result iflush(void *recv_comm, int count, void **data, int *bytes, void **mhandles,
                               void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)recv_comm;
  (void)count;
  (void)data;
  (void)bytes;
  (void)mhandles;
  *request = NULL;
  return NCCL_SUCCESS;
}

static enum nccl_result test(void *request, int *is_done, int *bytes) {
  SHIMS_FAIL_IN_CHILD;
  bool is_complete = false;
  size_t size = 0;
  int rc = plugin_test(request, &is_complete, &size);
  *is_done = is_complete;
  if (is_complete && bytes) {
    *bytes = size > INT_MAX ? INT_MAX : (int)size; /* NCCL's requests are 1 GiB at most */
  }
  return shims_result(rc);
}

/* ---- tables ---- */

#define EXPORTED __attribute__((visibility("default")))

/* What all versions have. getDeviceMr and irecvConsumed are for plugins with device code: NULL,
 * which NCCL checks for (src/transport/net.cc:1010, 1183, 1737 at v2.30.7). */
#define TABLE(INIT, PROPERTIES, LISTEN, CONNECT, ACCEPT, REG_MR, ISEND, IRECV)                     \
  .name = SHIMS_NAME, .init = INIT, .devices = shims_devices, .getProperties = PROPERTIES,         \
  .listen = LISTEN, .connect = CONNECT, .accept = ACCEPT, .regMr = REG_MR,                         \
  .regMrDmaBuf = reg_mr_dma_buf, .deregMr = dereg_mr, .isend = ISEND, .irecv = IRECV,              \
  .iflush = iflush, .test = test, .closeSend = close_comm, .closeRecv = close_comm,                \
  .closeListen = close_listen

const struct net_v7 ncclNetPlugin_v7 EXPORTED = { TABLE(
    init_v7, get_properties_v7, listen_v7, connect_v7, accept_v7, reg_mr_v7, isend_v7, irecv_v7) };
const struct net_v8 ncclNetPlugin_v8 EXPORTED = { TABLE(
    init_v8, get_properties_v8, listen_v7, connect_v7, accept_v7, reg_mr_v8, isend_v7, irecv_v7) };
const struct net_v9 ncclNetPlugin_v9 EXPORTED = {
  TABLE(init_v9, get_properties_v9, listen_v7, connect_v7, accept_v7, reg_mr_v8, isend_v9,
        irecv_v9),
  .makeVDevice = make_vdevice_v9,
};
const struct net_v10 ncclNetPlugin_v10 EXPORTED = {
  TABLE(init_v10, get_properties_v9, listen_v7, connect_v10, accept_v7, reg_mr_v8, isend_v10,
        irecv_v10),
  .makeVDevice = make_vdevice_v10,
};
const struct net_v11 ncclNetPlugin_v11 EXPORTED = {
  TABLE(init_v11, get_properties_v11, listen_v11, connect_v11, accept_v7, reg_mr_v8, isend_v10,
        irecv_v10),
  .makeVDevice = make_vdevice_v10,
  .finalize = finalize_v11,
  .setNetAttr = set_attributes_v11,
};
const struct net_v12 ncclNetPlugin_v12 EXPORTED = {
  TABLE(init_v12, get_properties_v12, listen_v11, connect_v11, accept_v7, reg_mr_v8, isend_v10,
        irecv_v10),
  .makeVDevice = make_vdevice_v12,
  .finalize = finalize_v11,
  .setNetAttr = set_attributes_v11,
};
