/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: what NCCL asks of a network, in no particular version of its interface.
 *
 * Owns: the process's device table (kept until the process ends, since NCCL keeps device numbers
 * and names across communicators), contexts until plugin_finalize.
 * Threads: init, finalize and devices: app threads; listen, connect and register: NCCL's service
 * threads; post, irecv and test: the progress thread of the connection, one at a time. What is
 * shared is locked.
 * Blocks: plugin_init and plugin_device_count, while interfaces and profiles are read;
 * plugin_listen and plugin_connect as setup.h says (up to 15 s for RDMA devices);
 * plugin_finalize of the last context as setup_stop; plugin_test as connection_progress;
 * plugin_deregister for the engine lock and for devices; post and irecv never.  Fails: negative
 * errno, after LOG_WARN. */
#ifndef NET_PLUGIN_PLUGIN_PLUGIN_H
#define NET_PLUGIN_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/plugin/device.h"
#include "net_plugin/plugin/memory.h"
#include "net_plugin/setup/setup.h"

struct plugin_context; /* one per communicator with its own resources, from v11 on */
struct connection;
struct request;

enum { PLUGIN_TRAFFIC_CLASS_NONE = -1 };

/* What NCCL gives at init. */
struct plugin_host {
  int api_version;  /* 7 to 12 */
  int nccl_version; /* as ncclGetVersion counts; 0: not known */
  int traffic_class;
};

/* `context` is NULL for versions up to 10, which know no communicators and no finalize: what they
 * use lives as long as the process. A machine without a usable interface is no error:
 * plugin_device_count is 0 then, and NCCL goes on without this plugin. */
int plugin_init(const struct plugin_host *host, struct plugin_context **context);

/* With the last context of a process in which all users have one, everything ends. NULL, as after a
 * failed init, is nothing. */
void plugin_finalize(struct plugin_context *context);

int plugin_device_count(int *count);
/* NULL, after LOG_WARN: there is none. It stays where it is, as NCCL keeps its texts. */
const struct device *plugin_device(int device);
/* The first interface of the device. */
int plugin_device_nic(int device, struct nic *nic);
int plugin_fuse_devices(const int *devices, int count, int limit, int *device);

int plugin_listen(int device, void *handle, struct listener **listener);

/* A context of NULL is that of versions up to 10. A traffic class is the byte in the IP header, of
 * which the upper six bits are the DSCP, as in NCCL's InfiniBand transport; STRATUS_DSCP wins. A
 * context has its own. group_peers: see settings_of_group. */
int plugin_connect(const struct plugin_context *context, int device, int traffic_class,
                   unsigned group_peers, void *handle, struct connection **connection);

/* An isend or irecv, as the connection sends or receives. *request is NULL if there is no room now:
 * NCCL asks again. Negative errno: the connection is truly dead, which is said once. */
int plugin_post(struct connection *connection, void *data, size_t bytes,
                const struct memory *memory, struct request **request);
int plugin_irecv(struct connection *connection, int count, void **data, const size_t *bytes,
                 void **memories, struct request **request);
/* *is_done: the request is gone, *bytes is what was sent or received. */
int plugin_test(struct request *request, bool *is_done, size_t *bytes);
/* Ends the registration, which was made for this connection. After it returns nothing reads or
 * writes the memory; requests that are not complete then never will be, and end the connection (see
 * connection_withdraw). Either may be NULL. */
void plugin_deregister(struct connection *connection, const struct memory *memory);

#endif
