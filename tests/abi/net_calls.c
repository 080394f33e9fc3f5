/* SPDX-License-Identifier: Apache-2.0 */
/* One switch per call whose arguments changed between versions. */
#include "tests/abi/net_calls.h"

const char *host_name(const struct host *host) {
  return *(const char *const *)host->table; /* the first member of every version */
}

/* NCCL hands one over; the plugin has nothing to tell it. */
static ncclResult_t profiler(void **event, int type, void *phandle, int64_t id, void *data) {
  (void)event, (void)type, (void)phandle, (void)id, (void)data;
  CHECK(false);
}

ncclResult_t host_init(const struct host *host, void **context, ncclDebugLogger_t logger) {
  ncclNetCommConfig_t config = { host->traffic_class }; /* as in NCCL, gone when init returns */
  *context = NULL;
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->init(logger);
  case 7:
    return HOST_TABLE(host, 7)->init(logger);
  case 8:
    return HOST_TABLE(host, 8)->init(logger);
  case 9:
    return HOST_TABLE(host, 9)->init(logger);
  case 10:
    return HOST_TABLE(host, 10)->init(logger, profiler);
  case 11:
    return HOST_TABLE(host, 11)->init(context, 0x1234, &config, logger, profiler);
  default:
    return HOST_TABLE(host, 12)->init(context, 0x1234, &config, logger, profiler);
  }
}

/* Does nothing where the version has no finalize. */
ncclResult_t host_finalize(const struct host *host, void *context) {
  return host->version == 11   ? HOST_TABLE(host, 11)->finalize(context)
         : host->version == 12 ? HOST_TABLE(host, 12)->finalize(context)
                               : ncclSuccess;
}

/* Reads into a struct full of 0xa5 with more of it behind: members that the plugin forgets and
 * bytes that it writes too many show. */
#define HOST_READ_PROPERTIES(v)                                                                    \
  struct {                                                                                         \
    ncclNetProperties_v##v##_t p;                                                                  \
    unsigned char behind[64];                                                                      \
  } raw;                                                                                           \
  memset(&raw, 0xa5, sizeof(raw));                                                                 \
  ncclResult_t result = HOST_TABLE(host, v)->getProperties(device, &raw.p);                        \
  for (size_t i = 0; i < sizeof(raw.behind); i++) {                                                \
    CHECK(raw.behind[i] == 0xa5);                                                                  \
  }                                                                                                \
  if (result != ncclSuccess) {                                                                     \
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

ncclResult_t host_properties(const struct host *host, int device, struct host_properties *out) {
  enum { NONE = -77 };
  *out = (struct host_properties){ .device_type = NONE,
                                   .reg_is_global = NONE,
                                   .force_flush = NONE,
                                   .ndevs = NONE,
                                   .dev0 = NONE,
                                   .multi_request = NONE,
                                   .rail = NONE,
                                   .plane = NONE };
  if (host->version == 6) {
    HOST_READ_PROPERTIES(6);
  } else if (host->version == 7) {
    HOST_READ_PROPERTIES(7);
    HOST_COPY_DEVICE_TYPE;
  } else if (host->version == 8) {
    HOST_READ_PROPERTIES(8);
    HOST_COPY_DEVICE_TYPE, out->reg_is_global = raw.p.regIsGlobal;
  } else if (host->version == 9) {
    HOST_READ_PROPERTIES(9);
    HOST_COPY_V9;
  } else if (host->version == 10) {
    HOST_READ_PROPERTIES(10);
    HOST_COPY_V9;
  } else if (host->version == 11) {
    HOST_READ_PROPERTIES(11);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
  } else {
    HOST_READ_PROPERTIES(12);
    HOST_COPY_V9, out->multi_request = raw.p.maxMultiRequestSize;
    out->rail = raw.p.railId, out->plane = raw.p.planeId;
  }
  return ncclSuccess;
}

ncclResult_t host_listen(const struct host *host, void *context, int device, void *handle,
                         void **listen_comm) {
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->listen(device, handle, listen_comm);
  case 7:
    return HOST_TABLE(host, 7)->listen(device, handle, listen_comm);
  case 8:
    return HOST_TABLE(host, 8)->listen(device, handle, listen_comm);
  case 9:
    return HOST_TABLE(host, 9)->listen(device, handle, listen_comm);
  case 10:
    return HOST_TABLE(host, 10)->listen(device, handle, listen_comm);
  case 11:
    return HOST_TABLE(host, 11)->listen(context, device, handle, listen_comm);
  default:
    return HOST_TABLE(host, 12)->listen(context, device, handle, listen_comm);
  }
}

ncclResult_t host_connect(const struct host *host, void *context, int device, void *handle,
                          void **send_comm) {
  ncclNetDeviceHandle_t *device_handle = NULL;
  ncclNetCommConfig_t config = { host->traffic_class };
  ncclResult_t result;
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->connect(device, handle, send_comm);
  case 7:
    result = HOST_TABLE(host, 7)->connect(device, handle, send_comm, &device_handle);
    break;
  case 8:
    result = HOST_TABLE(host, 8)->connect(device, handle, send_comm, &device_handle);
    break;
  case 9:
    result = HOST_TABLE(host, 9)->connect(device, handle, send_comm, &device_handle);
    break;
  case 10:
    result = HOST_TABLE(host, 10)->connect(device, &config, handle, send_comm, &device_handle);
    break;
  case 11:
    result = HOST_TABLE(host, 11)->connect(context, device, handle, send_comm, &device_handle);
    break;
  default:
    result = HOST_TABLE(host, 12)->connect(context, device, handle, send_comm, &device_handle);
    break;
  }
  CHECK(device_handle == NULL); /* no device code asked for */
  return result;
}

ncclResult_t host_accept(const struct host *host, void *listen_comm, void **recv_comm) {
  ncclNetDeviceHandle_t *device_handle = NULL;
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->accept(listen_comm, recv_comm);
  case 7:
    return HOST_TABLE(host, 7)->accept(listen_comm, recv_comm, &device_handle);
  case 8:
    return HOST_TABLE(host, 8)->accept(listen_comm, recv_comm, &device_handle);
  case 9:
    return HOST_TABLE(host, 9)->accept(listen_comm, recv_comm, &device_handle);
  case 10:
    return HOST_TABLE(host, 10)->accept(listen_comm, recv_comm, &device_handle);
  case 11:
    return HOST_TABLE(host, 11)->accept(listen_comm, recv_comm, &device_handle);
  default:
    return HOST_TABLE(host, 12)->accept(listen_comm, recv_comm, &device_handle);
  }
}

ncclResult_t host_register(const struct host *host, void *comm, void *data, size_t bytes, int type,
                           void **mhandle) {
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->regMr(comm, data, (int)bytes, type, mhandle);
  case 7:
    return HOST_TABLE(host, 7)->regMr(comm, data, (int)bytes, type, mhandle);
  case 8:
    return HOST_TABLE(host, 8)->regMr(comm, data, bytes, type, mhandle);
  case 9:
    return HOST_TABLE(host, 9)->regMr(comm, data, bytes, type, mhandle);
  case 10:
    return HOST_TABLE(host, 10)->regMr(comm, data, bytes, type, mhandle);
  case 11:
    return HOST_TABLE(host, 11)->regMr(comm, data, bytes, type, mhandle);
  default:
    return HOST_TABLE(host, 12)->regMr(comm, data, bytes, type, mhandle);
  }
}

ncclResult_t host_isend(const struct host *host, void *comm, void *data, size_t bytes,
                        void *mhandle, void *phandle, void **request) {
  enum { TAG = 3 };
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->isend(comm, data, (int)bytes, TAG, mhandle, request);
  case 7:
    return HOST_TABLE(host, 7)->isend(comm, data, (int)bytes, TAG, mhandle, request);
  case 8:
    return HOST_TABLE(host, 8)->isend(comm, data, (int)bytes, TAG, mhandle, request);
  case 9:
    return HOST_TABLE(host, 9)->isend(comm, data, bytes, TAG, mhandle, request);
  case 10:
    return HOST_TABLE(host, 10)->isend(comm, data, bytes, TAG, mhandle, phandle, request);
  case 11:
    return HOST_TABLE(host, 11)->isend(comm, data, bytes, TAG, mhandle, phandle, request);
  default:
    return HOST_TABLE(host, 12)->isend(comm, data, bytes, TAG, mhandle, phandle, request);
  }
}

/* `is_hinted`: from 2.24 on NCCL stores 1 in *request for LL and LL128; its adapters for v6 to v8
 * take that away again (net_v8.cc), v9 and later see it. */
ncclResult_t host_irecv(const struct host *host, void *comm, int count, void *data, size_t bytes,
                        void *mhandle, void *phandle, bool is_hinted, void **request) {
  void *datas[2] = { data, data }, *mhandles[2] = { mhandle, mhandle };
  void *phandles[2] = { phandle, phandle };
  size_t sizes[2] = { bytes, bytes };
  int int_sizes[2] = { (int)bytes, (int)bytes }, tags[2] = { 3, 3 };
  *request = is_hinted && host->version >= 9 ? (void *)1 : NULL;
  switch (host->version) {
  case 6:
    return HOST_TABLE(host, 6)->irecv(comm, count, datas, int_sizes, tags, mhandles, request);
  case 7:
    return HOST_TABLE(host, 7)->irecv(comm, count, datas, int_sizes, tags, mhandles, request);
  case 8:
    return HOST_TABLE(host, 8)->irecv(comm, count, datas, int_sizes, tags, mhandles, request);
  case 9:
    return HOST_TABLE(host, 9)->irecv(comm, count, datas, sizes, tags, mhandles, request);
  case 10:
    return HOST_TABLE(host, 10)->irecv(comm, count, datas, sizes, tags, mhandles, phandles,
                                       request);
  case 11:
    return HOST_TABLE(host, 11)->irecv(comm, count, datas, sizes, tags, mhandles, phandles,
                                       request);
  default:
    return HOST_TABLE(host, 12)->irecv(comm, count, datas, sizes, tags, mhandles, phandles,
                                       request);
  }
}

/* As if the version had none: ncclResultLast. */
ncclResult_t host_fuse(const struct host *host, int *device, int count, int a, int b) {
  ncclNetVDeviceProps_v12_t parts = { .ndevs = count, .devs = { a, b } };
  ncclNetVDeviceProps_v9_t old_parts = { .ndevs = count, .devs = { a, b } };
  switch (host->version) {
  case 9:
    return HOST_TABLE(host, 9)->makeVDevice(device, &old_parts);
  case 10:
    return HOST_TABLE(host, 10)->makeVDevice(device, &old_parts);
  case 11:
    return HOST_TABLE(host, 11)->makeVDevice(device, &old_parts);
  case 12:
    return HOST_TABLE(host, 12)->makeVDevice(device, &parts);
  default:
    return ncclResultLast;
  }
}

/* Advisory, where the version has it. */
ncclResult_t host_set_attributes(const struct host *host, void *context) {
  ncclNetAttr_t attributes = { .sendComm = { 2, 1, 4, 1 }, .recvComm = { 2, 1, 4, 1 }, .op = 16 };
  return host->version == 11   ? HOST_TABLE(host, 11)->setNetAttr(context, &attributes)
         : host->version == 12 ? HOST_TABLE(host, 12)->setNetAttr(context, &attributes)
                               : ncclSuccess;
}
