/* SPDX-License-Identifier: Apache-2.0 */
/* net_driver: calls a network plugin through the table of any version, filling in what the version
 * lacks as NCCL's own adapters do (src/plugin/net/net_v7.cc to net_v12.cc of NCCL v2.30.7), and
 * connects it with itself to send messages the way NCCL's proxy does: a window of requests, of
 * which the oldest is tested. Owns: nothing.  Threads: any; exchange_run has one of its own.
 * Blocks: exchanges, for 20 s without progress.  Fails: of exchanges whatever goes wrong ends the
 * process. */
#ifndef TESTS_ABI_NET_DRIVER_H
#define TESTS_ABI_NET_DRIVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/abi/net_abi.h"
#include "tests/abi/cases.h"

enum { HANDLE_BYTES = 128, PTR_HOST = 1, PTR_CUDA = 2 };

struct host {
  int version;
  void *library;
  const void *table; /* struct net_v<version> */
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

#define HOST_TABLE(host, v) ((const struct net_v##v *)(host)->table)

/* Of a member that never changed. Members are at the same place in all versions that have them
 * (layouts.c), so a table is read as the first version that has the wanted type. */
#define HOST_CALL(host, member, ...) (HOST_TABLE(host, 7)->member(__VA_ARGS__))

/* The plugin, and the table that cases_release takes of it, or of any version. */
struct host host_open(void);
void host_use(struct host *host, int version);
const char *host_name(const struct host *host);
enum nccl_result host_init(const struct host *host, void **context, nccl_logger_fn *logger);
/* Does nothing where the version has no finalize. */
enum nccl_result host_finalize(const struct host *host, void *context);
enum nccl_result host_properties(const struct host *host, int device, struct host_properties *out);
enum nccl_result host_listen(const struct host *host, void *context, int device, void *handle,
                             void **listen_comm);
enum nccl_result host_connect(const struct host *host, void *context, int device, void *handle,
                              void **send_comm);
enum nccl_result host_accept(const struct host *host, void *listen_comm, void **recv_comm);
enum nccl_result host_register(const struct host *host, void *comm, void *data, size_t bytes,
                               int type, void **mhandle);
enum nccl_result host_isend(const struct host *host, void *comm, void *data, size_t bytes,
                            void *mhandle, void *phandle, void **request);
/* `is_hinted`: from 2.24 on NCCL stores 1 in *request for LL and LL128; its adapters for v7 and v8
 * take that away again (net_v8.cc), v9 and later see it. */
enum nccl_result host_irecv(const struct host *host, void *comm, int count, void *data,
                            size_t bytes, void *mhandle, void *phandle, bool is_hinted,
                            void **request);
/* NCCL_INVALID_USAGE where the version has no such call. */
enum nccl_result host_fuse(const struct host *host, int *device, int count, int a, int b);
/* Advisory, where the version has it. */
enum nccl_result host_set_attributes(const struct host *host, void *context);

/* ---- exchanges ---- */

struct exchange_pair {
  const struct host *host;
  void *listen, *send, *recv;
};

/* Both ends in this thread, each asked again until it is there; the former of a pair that listens,
 * and may have begun to connect. */
void exchange_meet(struct exchange_pair *pair, void *context, void *handle);
void exchange_connect(const struct host *host, void *context, struct exchange_pair *pair);

/* Any order is allowed: 0 sender, 1 receiver or 2 listener first. */
void exchange_close(struct exchange_pair *pair, int order);

/* Sends messages of these sizes, the sender in a thread of its own, and checks what arrives. */
void exchange_run(const struct exchange_pair *pair, const size_t *sizes, int count);

#endif
