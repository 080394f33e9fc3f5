/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of CollNet v8 to v12: AllReduce across hosts on the hosts (collnet/collnet.h).
 *
 * They show no device unless STRATUS_COLLNET is set: NCCL counts CollNet's devices even where it
 * does not use them, and a difference between ranks ends its init. */
#include <errno.h>
#include <limits.h>

#include "net_plugin/abi/collnet_abi.h"
#include "net_plugin/abi/shims.h"
#include "net_plugin/collnet/collnet.h"
#include "net_plugin/plugin/plugin.h"

/* ---- start and end: the process's devices, as for the network interface ----
 *
 * NCCL inits CollNet after the network of the same plugin, and does not end it where it showed no
 * device. So where CollNet is off it starts nothing, and its context is NULL. */

#define INIT(version)                                                                              \
  static enum nccl_result init_v##version(nccl_logger_fn *logger) {                                \
    return collnet_mode() == COLLNET_OFF ? NCCL_SUCCESS : shims_init_process(version, logger);     \
  }
INIT(8)
INIT(9)
INIT(10)

#define INIT_CONTEXT(version)                                                                      \
  static enum nccl_result init_v##version(void **context, uint64_t communicator,                   \
                                          nccl_logger_fn *logger) {                                \
    *context = NULL;                                                                               \
    return collnet_mode() == COLLNET_OFF                                                           \
               ? NCCL_SUCCESS                                                                      \
               : ncclNetPlugin_v##version.init(context, communicator, NULL, logger, NULL);         \
  }
INIT_CONTEXT(11)
INIT_CONTEXT(12)

static enum nccl_result devices(int *count) {
  *count = 0;
  return collnet_mode() == COLLNET_OFF ? NCCL_SUCCESS : shims_devices(count);
}

static enum nccl_result finalize(void *context) {
  return context ? ncclNetPlugin_v11.finalize(context) : NCCL_SUCCESS;
}

static enum nccl_result make_vdevice_v9(int *device, struct net_vdevice_v9 *parts) {
  return ncclNetPlugin_v9.makeVDevice(device, parts);
}

static enum nccl_result make_vdevice_v12(int *device, struct net_vdevice_v12 *parts) {
  return ncclNetPlugin_v12.makeVDevice(device, parts);
}

#define LIMITED(COPY, to, from)                                                                    \
  do {                                                                                             \
    COPY(to, from);                                                                                \
    (to)->maxCollBytes = COLLNET_BYTES_MAX;                                                        \
  } while (0)
#define COPY_V9(to, from) LIMITED(SHIMS_COPY_V9, to, from)
#define COPY_V11(to, from) LIMITED(SHIMS_COPY_V11, to, from)
#define COPY_V12(to, from) LIMITED(SHIMS_COPY_V12, to, from)
SHIMS_GET_PROPERTIES(8, SHIMS_COPY_V8)
SHIMS_GET_PROPERTIES(9, COPY_V9) /* v10 has the same */
SHIMS_GET_PROPERTIES(11, COPY_V11)
SHIMS_GET_PROPERTIES(12, COPY_V12)

/* ---- groups ---- */

static enum nccl_result listen_v8(int device, void *handle, void **listen_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct collnet_listener *listener;
  collnet_listen(device, handle, &listener);
  *listen_comm = listener;
  return NCCL_SUCCESS;
}

static enum nccl_result listen_v11(void *context, int device, void *handle, void **listen_comm) {
  (void)context;
  return listen_v8(device, handle, listen_comm);
}

/* NCCL takes a group that is NULL for a reason to go on without CollNet, and an error for one to
 * end (sharedConnect and sendProxyConnect, src/transport/coll_net.cc at v2.30.7). It closes the
 * listener after a success only, so this one always is. */
static enum nccl_result connect_group(void *handles[], int members, int member, void *listen_comm,
                                      void **coll_comm) {
  SHIMS_FAIL_IN_CHILD;
  struct collnet_group *group = NULL;
  collnet_connect(handles, members, member, listen_comm, &group);
  *coll_comm = group;
  return NCCL_SUCCESS;
}

static enum nccl_result close_listen(void *listen_comm) {
  SHIMS_DO_NOTHING_IN_CHILD;
  collnet_close_listener(listen_comm);
  return NCCL_SUCCESS;
}

static enum nccl_result close_group(void *coll_comm) {
  SHIMS_DO_NOTHING_IN_CHILD;
  collnet_close(coll_comm);
  return NCCL_SUCCESS;
}

static enum nccl_result reduce_support(int type, int op, int *is_supported) {
  *is_supported = collnet_supports((enum reduce_type)type, (enum reduce_op)op);
  return NCCL_SUCCESS;
}

/* ---- memory ---- */

static enum nccl_result reg_mr(void *coll_comm, void *data, size_t bytes, int type,
                               void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  struct collnet_memory *memory = NULL;
  int rc = collnet_register(coll_comm, data, bytes, type, &memory);
  *mhandle = memory;
  return shims_result(rc);
}

static enum nccl_result reg_mr_dma_buf(void *coll_comm, void *data, size_t bytes, int type,
                                       uint64_t offset, int fd, void **mhandle) {
  SHIMS_FAIL_IN_CHILD;
  (void)type;
  struct collnet_memory *memory = NULL;
  int rc = collnet_register_dma_buf(coll_comm, data, bytes, offset, fd, &memory);
  *mhandle = memory;
  return shims_result(rc);
}

static enum nccl_result dereg_mr(void *coll_comm, void *mhandle) {
  SHIMS_DO_NOTHING_IN_CHILD;
  collnet_deregister(coll_comm, mhandle);
  return NCCL_SUCCESS;
}

/* ---- operations ---- */

static enum nccl_result iallreduce_v9(void *coll_comm, void *send, void *recv, size_t count,
                                      int type, int op, void *send_mhandle, void *recv_mhandle,
                                      void **request) {
  SHIMS_FAIL_IN_CHILD;
  const struct collnet_call call = { .send = send,
                                     .recv = recv,
                                     .count = count,
                                     .type = (enum reduce_type)type,
                                     .op = (enum reduce_op)op,
                                     .send_memory = send_mhandle,
                                     .recv_memory = recv_mhandle };
  struct collnet_request *posted = NULL;
  int rc =
      collnet_supports(call.type, call.op) ? collnet_allreduce(coll_comm, &call, &posted) : -EINVAL;
  *request = posted;
  return shims_result(rc);
}

static enum nccl_result iallreduce_v8(void *coll_comm, void *send, void *recv, int count, int type,
                                      int op, void *send_mhandle, void *recv_mhandle,
                                      void **request) {
  return count < 0 ? shims_result(-EINVAL)
                   : iallreduce_v9(coll_comm, send, recv, (size_t)count, type, op, send_mhandle,
                                   recv_mhandle, request);
}

/* The CPU wrote the data itself: there is nothing to wait for. */
static enum nccl_result iflush(void *coll_comm, void *data, int bytes, void *mhandle,
                               void **request) {
  (void)coll_comm, (void)data, (void)bytes, (void)mhandle;
  *request = NULL;
  return NCCL_SUCCESS;
}

static enum nccl_result test(void *request, int *is_done, int *bytes) {
  SHIMS_FAIL_IN_CHILD;
  bool is_complete = false;
  size_t size = 0;
  int rc = collnet_test(request, &is_complete, &size);
  *is_done = is_complete;
  if (is_complete && bytes) {
    *bytes = size > INT_MAX ? INT_MAX : (int)size;
  }
  return shims_result(rc);
}

/* AllGather and ReduceScatter are NULL, which NCCL takes as not offered (src/graph/tuning.cc at
 * v2.22.3 and v2.29.7). */
#define TABLE(INIT, PROPERTIES, LISTEN, IALLREDUCE)                                                \
  .name = SHIMS_NAME, .init = INIT, .devices = devices, .getProperties = PROPERTIES,               \
  .listen = LISTEN, .connect = connect_group, .reduceSupport = reduce_support, .regMr = reg_mr,    \
  .regMrDmaBuf = reg_mr_dma_buf, .deregMr = dereg_mr, .iallreduce = IALLREDUCE, .iflush = iflush,  \
  .test = test, .closeColl = close_group, .closeListen = close_listen

#define EXPORTED __attribute__((visibility("default")))

const struct collnet_v8 ncclCollNetPlugin_v8 EXPORTED = { TABLE(init_v8, get_properties_v8,
                                                                listen_v8, iallreduce_v8) };
const struct collnet_v9 ncclCollNetPlugin_v9 EXPORTED = {
  TABLE(init_v9, get_properties_v9, listen_v8, iallreduce_v9),
  .makeVDevice = make_vdevice_v9,
};
const struct collnet_v10 ncclCollNetPlugin_v10 EXPORTED = {
  TABLE(init_v10, get_properties_v9, listen_v8, iallreduce_v9),
  .makeVDevice = make_vdevice_v9,
};
const struct collnet_v11 ncclCollNetPlugin_v11 EXPORTED = {
  TABLE(init_v11, get_properties_v11, listen_v11, iallreduce_v9),
  .makeVDevice = make_vdevice_v9,
  .finalize = finalize,
};
const struct collnet_v12 ncclCollNetPlugin_v12 EXPORTED = {
  TABLE(init_v12, get_properties_v12, listen_v11, iallreduce_v9),
  .makeVDevice = make_vdevice_v12,
  .finalize = finalize,
};
