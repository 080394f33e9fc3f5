/* SPDX-License-Identifier: Apache-2.0 */
/* One switch per call whose arguments changed between versions. */
#include "tests/abi/net_calls.h"

const char *host_name(const struct host *host) {
  return *(const char *const *)host->table; /* the first member of every version */
}

/* NCCL hands one over; the plugin has nothing to tell it. */
static enum nccl_result profiler(void **event, int type, void *phandle, int64_t id, void *data) {
  (void)event, (void)type, (void)phandle, (void)id, (void)data;
  CHECK(false);
}

enum nccl_result host_init(const struct host *host, void **context, nccl_logger_fn *logger) {
  struct net_config_v10 config = { host->traffic_class }; /* as in NCCL, gone when init returns */
  *context = NULL;
  return host->version < 10 ? HOST_TABLE(host, 7)->init(logger)
         : host->version == 10
             ? HOST_TABLE(host, 10)->init(logger, profiler)
             : HOST_TABLE(host, 11)->init(context, 0x1234, &config, logger, profiler);
}

enum nccl_result host_finalize(const struct host *host, void *context) {
  return host->version < 11 ? NCCL_SUCCESS : HOST_TABLE(host, 11)->finalize(context);
}

/* Reads into a struct full of 0xa5 with more of it behind: members that the plugin forgets and
 * bytes that it writes too many show. */
#define HOST_READ_PROPERTIES(v)                                                                    \
  struct {                                                                                         \
    struct net_properties_v##v p;                                                                  \
    unsigned char behind[64];                                                                      \
  } raw;                                                                                           \
  memset(&raw, 0xa5, sizeof(raw));                                                                 \
  enum nccl_result result = HOST_TABLE(host, v)->getProperties(device, &raw.p);                    \
  for (size_t i = 0; i < sizeof(raw.behind); i++) {                                                \
    CHECK(raw.behind[i] == 0xa5);                                                                  \
  }                                                                                                \
  if (result != NCCL_SUCCESS) {                                                                    \
    return result;                                                                                 \
  }                                                                                                \
  out->name = raw.p.name, out->pci_path = raw.p.pciPath, out->ptr_support = raw.p.ptrSupport;      \
  out->speed = raw.p.speed, out->port = raw.p.port, out->latency = raw.p.latency;                  \
  out->max_comms = raw.p.maxComms, out->max_recvs = raw.p.maxRecvs

#define HOST_COPY_DEVICE_TYPE out->device_type = (int)raw.p.netDeviceType
#define HOST_COPY_V9                                                                               \
  HOST_COPY_DEVICE_TYPE, out->reg_is_global = raw.p.regIsGlobal,                                   \
                         out->force_flush = raw.p.forceFlush, out->ndevs = raw.p.vProps.ndevs,     \
                         out->dev0 = raw.p.vProps.devs[0], out->max_p2p_bytes = raw.p.maxP2pBytes

enum nccl_result host_properties(const struct host *host, int device, struct host_properties *out) {
  enum { NONE = -77 };
  *out = (struct host_properties){ .device_type = NONE,
                                   .reg_is_global = NONE,
                                   .force_flush = NONE,
                                   .ndevs = NONE,
                                   .dev0 = NONE,
                                   .multi_request = NONE,
                                   .rail = NONE,
                                   .plane = NONE };
  if (host->version == 7) {
    HOST_READ_PROPERTIES(7);
    HOST_COPY_DEVICE_TYPE;
  } else if (host->version == 8) {
    HOST_READ_PROPERTIES(8);
    HOST_COPY_DEVICE_TYPE, out->reg_is_global = raw.p.regIsGlobal;
  } else if (host->version <= 10) {
    HOST_READ_PROPERTIES(9);
    HOST_COPY_V9;
  } else if (host->version == 11) {
    HOST_READ_PROPERTIES(11);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
  } else {
    HOST_READ_PROPERTIES(12);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
    out->rail = raw.p.railId, out->plane = raw.p.planeId;
  }
  return NCCL_SUCCESS;
}

enum nccl_result host_listen(const struct host *host, void *context, int device, void *handle,
                             void **listen_comm) {
  return host->version < 11 ? HOST_TABLE(host, 7)->listen(device, handle, listen_comm)
                            : HOST_TABLE(host, 11)->listen(context, device, handle, listen_comm);
}

enum nccl_result host_connect(const struct host *host, void *context, int device, void *handle,
                              void **send_comm) {
  struct net_device_handle *device_handle = NULL;
  struct net_config_v10 config = { host->traffic_class };
  enum nccl_result result =
      host->version < 10 ? HOST_TABLE(host, 7)->connect(device, handle, send_comm, &device_handle)
      : host->version == 10
          ? HOST_TABLE(host, 10)->connect(device, &config, handle, send_comm, &device_handle)
          : HOST_TABLE(host, 11)->connect(context, device, handle, send_comm, &device_handle);
  CHECK(device_handle == NULL); /* no device code asked for */
  return result;
}

enum nccl_result host_accept(const struct host *host, void *listen_comm, void **recv_comm) {
  struct net_device_handle *device_handle = NULL;
  return HOST_TABLE(host, 7)->accept(listen_comm, recv_comm, &device_handle);
}

enum nccl_result host_register(const struct host *host, void *comm, void *data, size_t bytes,
                               int type, void **mhandle) {
  return host->version < 8 ? HOST_TABLE(host, 7)->regMr(comm, data, (int)bytes, type, mhandle)
                           : HOST_TABLE(host, 8)->regMr(comm, data, bytes, type, mhandle);
}

enum nccl_result host_isend(const struct host *host, void *comm, void *data, size_t bytes,
                            void *mhandle, void *phandle, void **request) {
  enum { TAG = 3 };
  return host->version < 9
             ? HOST_TABLE(host, 7)->isend(comm, data, (int)bytes, TAG, mhandle, request)
         : host->version == 9
             ? HOST_TABLE(host, 9)->isend(comm, data, bytes, TAG, mhandle, request)
             : HOST_TABLE(host, 10)->isend(comm, data, bytes, TAG, mhandle, phandle, request);
}

enum nccl_result host_irecv(const struct host *host, void *comm, int count, void *data,
                            size_t bytes, void *mhandle, void *phandle, bool is_hinted,
                            void **request) {
  void *datas[2] = { data, data }, *mhandles[2] = { mhandle, mhandle };
  void *phandles[2] = { phandle, phandle };
  size_t sizes[2] = { bytes, bytes };
  int int_sizes[2] = { (int)bytes, (int)bytes }, tags[2] = { 3, 3 };
  *request = is_hinted && host->version >= 9 ? (void *)1 : NULL;
  return host->version < 9
             ? HOST_TABLE(host, 7)->irecv(comm, count, datas, int_sizes, tags, mhandles, request)
         : host->version == 9
             ? HOST_TABLE(host, 9)->irecv(comm, count, datas, sizes, tags, mhandles, request)
             : HOST_TABLE(host, 10)->irecv(comm, count, datas, sizes, tags, mhandles, phandles,
                                           request);
}

enum nccl_result host_fuse(const struct host *host, int *device, int count, int a, int b) {
  struct net_vdevice_v12 parts = { .ndevs = count, .devs = { a, b } };
  struct net_vdevice_v9 old_parts = { .ndevs = count, .devs = { a, b } };
  return host->version < 9    ? NCCL_INVALID_USAGE
         : host->version < 12 ? HOST_TABLE(host, 9)->makeVDevice(device, &old_parts)
                              : HOST_TABLE(host, 12)->makeVDevice(device, &parts);
}

enum nccl_result host_set_attributes(const struct host *host, void *context) {
  struct net_attributes_v11 attributes = { .sendCommAttr = { 2, 1, 4, 1 },
                                           .recvCommAttr = { 2, 1, 4, 1 },
                                           .op = 16 };
  return host->version < 11 ? NCCL_SUCCESS : HOST_TABLE(host, 11)->setNetAttr(context, &attributes);
}
