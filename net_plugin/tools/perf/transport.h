/* SPDX-License-Identifier: Apache-2.0 */
/* transport: any net plugin, called as NCCL calls it, through the newest interface table that it
 * exports. Owns: the loaded library, the context and the config that init was given, until
 * transport_close.  Threads: the main thread.
 * Blocks: opening, as the plugin's init does; the rest as the plugin does, which must not.
 * Fails: opening and closing with a message; the rest with the plugin's own result. */
#ifndef NET_PLUGIN_TOOLS_PERF_TRANSPORT_H
#define NET_PLUGIN_TOOLS_PERF_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "net_plugin/abi/net_abi.h"

enum { TRANSPORT_HANDLE_BYTES = 128 };

struct transport {
  void *library;
  const void *table; /* struct net_v<version> */
  int version;
  void *context;
  struct net_config_v10 config;
  int device_count;
  const char *name, *path;
  /* The same in all versions. */
  net_test_v6_fn *test;
  net_close_v6_fn *close_send, *close_receive, *close_listen;
};

/* `name` as in NCCL_NET_PLUGIN; NULL: libnccl-net-stratus.so of this tool's own installation. */
int transport_open(struct transport *transport, const char *name);
void transport_close(struct transport *transport);

enum nccl_result transport_listen(const struct transport *transport, int device, void *handle,
                                  void **listen_comm);
/* Both store NULL while the connection is not complete: call again. */
enum nccl_result transport_connect(struct transport *transport, int device, void *handle,
                                   void **send_comm);
enum nccl_result transport_accept(const struct transport *transport, void *listen_comm,
                                  void **receive_comm);

enum nccl_result transport_register(const struct transport *transport, void *comm, void *data,
                                    size_t bytes, void **mhandle);
enum nccl_result transport_deregister(const struct transport *transport, void *comm, void *mhandle);

/* Both store NULL if the plugin cannot take a request now: call again. */
enum nccl_result transport_isend(const struct transport *transport, void *comm, void *data,
                                 size_t bytes, void *mhandle, void **request);
enum nccl_result transport_irecv(const struct transport *transport, void *comm, void *data,
                                 size_t bytes, void *mhandle, void **request);

#endif
