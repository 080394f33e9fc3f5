/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters that several versions share. */
#include "net_plugin/abi/shims.h"

#include <errno.h>
#include <limits.h>

#include "common/log.h"
#include "common/nccl_version.h"
#include "net_plugin/abi/logger.h"
#include "net_plugin/abi/result.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/plugin/plugin.h"

enum nccl_result shims_init_process(int api_version, nccl_logger_fn *logger,
                                    profiler_callback_fn *profiler) {
  SHIMS_FAIL_IN_CHILD;
  logger_keep(logger);
  const struct plugin_host host = {
    .api_version = api_version,
    .nccl_version = nccl_version_find((nccl_version_any_fn *)logger),
    .traffic_class = PLUGIN_TRAFFIC_CLASS_NONE,
    .profiler = profiler,
  };
  return result_from_errno(plugin_init(&host, NULL));
}

enum nccl_result shims_devices(int *count) {
  SHIMS_FAIL_IN_CHILD;
  return result_from_errno(plugin_device_count(count));
}

/* ---- connections ---- */

enum nccl_result shims_listen(int device, void *handle, void **listen_comm) {
  return shims_listen_v11(NULL, device, handle, listen_comm);
}

enum nccl_result shims_listen_v11(void *context, int device, void *handle, void **listen_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct listener *listener = NULL;
  int rc = plugin_listen(context, device, handle, &listener);
  *listen_comm = listener;
  return result_from_errno(rc);
}

enum nccl_result shims_connect(const struct plugin_context *context, int device, int traffic_class,
                               void *handle, void **send_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct connection *connection = NULL;
  int rc = plugin_connect(context, device, traffic_class, 0, handle, &connection);
  *send_comm = connection;
  return result_from_errno(rc);
}

/* *device_handle stays as NCCL made it: there is no device code that would need one. */
enum nccl_result shims_connect_v7(int device, void *handle, void **send_comm,
                                  struct net_device_handle **device_handle) {
  (void)device_handle;
  return shims_connect(NULL, device, PLUGIN_TRAFFIC_CLASS_NONE, handle, send_comm);
}

enum nccl_result shims_accept(void *listen_comm, void **recv_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct connection *connection = NULL;
  int rc = listener_accept(listen_comm, &connection);
  *recv_comm = connection;
  return result_from_errno(rc);
}

enum nccl_result shims_accept_v7(void *listen_comm, void **recv_comm,
                                 struct net_device_handle **device_handle) {
  (void)device_handle;
  return shims_accept(listen_comm, recv_comm);
}

enum nccl_result shims_close(void *comm) {
  SHIMS_DO_NOTHING_IN_CHILD;
  connection_detach(comm);
  return NCCL_SUCCESS;
}

enum nccl_result shims_close_listen(void *listen_comm) {
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

enum nccl_result shims_reg_mr(void *comm, void *data, size_t bytes, int type, void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  const struct memory *memory = NULL;
  int rc = memory_register(data, bytes, (enum memory_type)type, use_of(comm), &memory);
  *mhandle = (void *)(uintptr_t)memory;
  return result_from_errno(rc);
}

enum nccl_result shims_reg_mr_int(void *comm, void *data, int bytes, int type, void **mhandle) {
  return bytes < 0 ? result_from_errno(-EINVAL)
                   : shims_reg_mr(comm, data, (size_t)bytes, type, mhandle);
}

enum nccl_result shims_reg_mr_dma_buf(void *comm, void *data, size_t bytes, int type,
                                      uint64_t offset, int fd, void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  (void)type; /* only GPU memory is exported this way */
  const struct memory *memory = NULL;
  int rc = memory_register_dma_buf(data, bytes, offset, fd, use_of(comm), &memory);
  *mhandle = (void *)(uintptr_t)memory;
  return result_from_errno(rc);
}

enum nccl_result shims_dereg_mr(void *comm, void *mhandle) {
  SHIMS_DO_NOTHING_IN_CHILD;
  plugin_deregister(comm, mhandle);
  return NCCL_SUCCESS;
}

/* ---- transfers ---- */

enum nccl_result shims_isend_int(void *send_comm, void *data, int bytes, int tag, void *mhandle,
                                 void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tag; /* one connection per pair of ranks and channel: order says which is which */
  struct request *posted = NULL;
  int rc =
      bytes < 0 ? -EINVAL : plugin_post(send_comm, data, (size_t)bytes, mhandle, NULL, &posted);
  *request = posted;
  return result_from_errno(rc);
}

enum nccl_result shims_irecv_int(void *recv_comm, int count, void **data, int *bytes, int *tags,
                                 void **mhandles, void **request) {
  SHIMS_FAIL_IN_CHILD;
  (void)tags;
  struct request *posted = NULL;
  size_t size = count == 1 && bytes[0] > 0 ? (size_t)bytes[0] : 0;
  int rc = plugin_irecv(recv_comm, count, data, &size, mhandles, NULL, &posted);
  *request = posted;
  return result_from_errno(rc);
}

/* The CPU wrote the data itself, or the memory is the host's (memory.c, cache_add), so there is
 * nothing to wait for. NCCL tests a request only if there is one (src/transport/net.cc:1699-1700 at
 * v2.30.7). */
enum nccl_result shims_iflush(void *recv_comm, int count, void **data, int *bytes, void **mhandles,
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

enum nccl_result shims_test(void *request, int *is_done, int *bytes) {
  SHIMS_FAIL_IN_CHILD;
  bool is_complete = false;
  size_t size = 0;
  int rc = plugin_test(request, &is_complete, &size);
  *is_done = is_complete;
  if (is_complete && bytes) {
    *bytes = size > INT_MAX ? INT_MAX : (int)size; /* NCCL's requests are 1 GiB at most */
  }
  return result_from_errno(rc);
}
