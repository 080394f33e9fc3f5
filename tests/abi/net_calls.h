/* SPDX-License-Identifier: Apache-2.0 */
/* net_calls: calls a network plugin through the table of any version, filling in what the version
 * lacks as NCCL's own adapters do (src/plugin/net/net_v6.cc to net_v12.cc of NCCL v2.30.7). */
#ifndef TESTS_ABI_NET_CALLS_H
#define TESTS_ABI_NET_CALLS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/abi/nccl_net_layouts.h"

/* For use in a process of its own: a failed check ends it. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);                \
      _Exit(1);                                                                                    \
    }                                                                                              \
  } while (0)
#define CHECK_OK(call) CHECK((call) == ncclSuccess)

struct host {
  const char *release;
  int version;
  void *library;
  const void *table; /* ncclNet_v<version>_t */
  int traffic_class; /* of its communicators; -1: none */
};

/* The union of what the versions tell; -77 where a version has no such member. */
struct host_properties {
  const char *name, *pci_path;
  int ptr_support, speed, port, max_comms, max_recvs;
  float latency;
  int device_type, reg_is_global, force_flush, ndevs, dev0, multi_request, rail, plane;
  size_t max_p2p_bytes;
};

#define HOST_TABLE(host, v) ((const ncclNet_v##v##_t *)(host)->table)

/* The member of that name in the table of the host's version; for members that never changed. */
#define HOST_CALL(host, member, ...)                                                               \
  ((host)->version == 6    ? HOST_TABLE(host, 6)->member(__VA_ARGS__)                              \
   : (host)->version == 7  ? HOST_TABLE(host, 7)->member(__VA_ARGS__)                              \
   : (host)->version == 8  ? HOST_TABLE(host, 8)->member(__VA_ARGS__)                              \
   : (host)->version == 9  ? HOST_TABLE(host, 9)->member(__VA_ARGS__)                              \
   : (host)->version == 10 ? HOST_TABLE(host, 10)->member(__VA_ARGS__)                             \
   : (host)->version == 11 ? HOST_TABLE(host, 11)->member(__VA_ARGS__)                             \
                           : HOST_TABLE(host, 12)->member(__VA_ARGS__))

const char *host_name(const struct host *host);
ncclResult_t host_init(const struct host *host, void **context, ncclDebugLogger_t logger);
/* Does nothing where the version has no finalize. */
ncclResult_t host_finalize(const struct host *host, void *context);
ncclResult_t host_properties(const struct host *host, int device, struct host_properties *out);
ncclResult_t host_listen(const struct host *host, void *context, int device, void *handle,
                         void **listen_comm);
ncclResult_t host_connect(const struct host *host, void *context, int device, void *handle,
                          void **send_comm);
ncclResult_t host_accept(const struct host *host, void *listen_comm, void **recv_comm);
ncclResult_t host_register(const struct host *host, void *comm, void *data, size_t bytes, int type,
                           void **mhandle);
ncclResult_t host_isend(const struct host *host, void *comm, void *data, size_t bytes,
                        void *mhandle, void *phandle, void **request);
/* `is_hinted`: from 2.24 on NCCL stores 1 in *request for LL and LL128; its adapters for v6 to v8
 * take that away again (net_v8.cc), v9 and later see it. */
ncclResult_t host_irecv(const struct host *host, void *comm, int count, void *data, size_t bytes,
                        void *mhandle, void *phandle, bool is_hinted, void **request);
/* As if the version had none: ncclResultLast. */
ncclResult_t host_fuse(const struct host *host, int *device, int count, int a, int b);
/* Advisory, where the version has it. */
ncclResult_t host_set_attributes(const struct host *host, void *context);

#endif
