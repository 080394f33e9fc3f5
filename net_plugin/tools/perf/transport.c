/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches to the versions of the interface; what a version lacks is filled in as NCCL's own
 * adapters do (src/plugin/net/net_v6.cc to net_v12.cc of NCCL 2.30.7). */
#include "net_plugin/tools/perf/transport.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "common/cli.h"
#include "common/plugin_file.h"

/* A member is read as of the first version that has it with this type: its place is the same in all
 * that follow (net_plugin/abi/net_abi_layout.c). */
#define TABLE(transport, v) ((const struct net_v##v *)(transport)->table)

/* ---- opening ---- */

/* In place of NCCL's logger: to stderr, filtered by NCCL_DEBUG. */
__attribute__((format(printf, 5, 6))) static void print_log(enum nccl_log_level level,
                                                            unsigned long flags, const char *file,
                                                            int line, const char *format, ...) {
  (void)flags;
  const char *wanted = getenv("NCCL_DEBUG");
  bool is_wanted = level == NCCL_LOG_WARN ||
                   (wanted && ((level == NCCL_LOG_INFO && !strcasecmp(wanted, "INFO")) ||
                               !strcasecmp(wanted, "TRACE")));
  if (is_wanted) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: %s\n", file ? file : "plugin", line, text);
  }
}

static void *open_own(char tried[PLUGIN_FILE_MAX]) {
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  if (!plugin_file_find_ours(directory, why_not)) {
    return plugin_file_open(PLUGIN_KIND_NET, "stratus", 0, tried);
  }
  snprintf(tried, PLUGIN_FILE_MAX, "%s/%s", directory, PLUGIN_NET);
  return dlopen(tried, RTLD_NOW | RTLD_LOCAL);
}

static int find_table(struct transport *transport) {
  transport->table = plugin_file_table(PLUGIN_KIND_NET, transport->library, &transport->version);
  if (!transport->table) {
    return cli_fail("%s is no net plugin: it exports none of ncclNetPlugin_v6 to v12",
                    transport->path);
  }
  const struct net_v6 *table = transport->table;
  transport->name = table->name;
  transport->test = table->test;
  transport->close_send = table->closeSend;
  transport->close_receive = table->closeRecv;
  transport->close_listen = table->closeListen;
  return CLI_OK;
}

static enum nccl_result init(struct transport *transport) {
  transport->config.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF;
  return transport->version >= 11
             ? TABLE(transport, 11)
                   ->init(&transport->context, 1, &transport->config, print_log, NULL)
         : transport->version == 10 ? TABLE(transport, 10)->init(print_log, NULL)
                                    : TABLE(transport, 6)->init(print_log);
}

static int begin(struct transport *transport) {
  enum nccl_result result = init(transport);
  result = result ? result : TABLE(transport, 6)->devices(&transport->device_count);
  if (result) {
    return cli_fail("plugin %s failed to initialize: result %d; NCCL_DEBUG=INFO may show why",
                    transport->name, (int)result);
  }
  return transport->device_count > 0
             ? CLI_OK
             : cli_fail("plugin %s has no devices here; NCCL_DEBUG=INFO may show why",
                        transport->name);
}

int transport_open(struct transport *transport, const char *name) {
  char tried[PLUGIN_FILE_MAX];
  *transport = (struct transport){ 0 };
  transport->library = name ? plugin_file_open(PLUGIN_KIND_NET, name, 0, tried) : open_own(tried);
  if (!transport->library) {
    return cli_fail("%s cannot be loaded: %s", tried, dlerror());
  }
  transport->path = plugin_file_path(transport->library);
  int status = find_table(transport);
  return status ? status : begin(transport);
}

/* The library stays loaded: the process ends soon. */
void transport_close(struct transport *transport) {
  if (transport->version >= 11) {
    TABLE(transport, 11)->finalize(transport->context);
  }
  transport->context = NULL;
}

/* ---- connections ---- */

enum nccl_result transport_listen(const struct transport *transport, int device, void *handle,
                                  void **listen_comm) {
  return transport->version >= 11
             ? TABLE(transport, 11)->listen(transport->context, device, handle, listen_comm)
             : TABLE(transport, 6)->listen(device, handle, listen_comm);
}

enum nccl_result transport_connect(struct transport *transport, int device, void *handle,
                                   void **send_comm) {
  struct net_device_handle *unused = NULL;
  switch (transport->version) {
  case 6:
    return TABLE(transport, 6)->connect(device, handle, send_comm);
  case 7:
  case 8:
  case 9:
    return TABLE(transport, 7)->connect(device, handle, send_comm, &unused);
  case 10:
    return TABLE(transport, 10)->connect(device, &transport->config, handle, send_comm, &unused);
  default:
    return TABLE(transport, 11)->connect(transport->context, device, handle, send_comm, &unused);
  }
}

enum nccl_result transport_accept(const struct transport *transport, void *listen_comm,
                                  void **receive_comm) {
  struct net_device_handle *unused = NULL;
  return transport->version == 6 ? TABLE(transport, 6)->accept(listen_comm, receive_comm)
                                 : TABLE(transport, 7)->accept(listen_comm, receive_comm, &unused);
}

/* ---- memory ---- */

enum nccl_result transport_register(const struct transport *transport, void *comm, void *data,
                                    size_t bytes, void **mhandle) {
  if (transport->version < 8) {
    return bytes > INT_MAX
               ? NCCL_INVALID_USAGE
               : TABLE(transport, 6)->regMr(comm, data, (int)bytes, NCCL_PTR_HOST, mhandle);
  }
  return TABLE(transport, 8)->regMr(comm, data, bytes, NCCL_PTR_HOST, mhandle);
}

enum nccl_result transport_deregister(const struct transport *transport, void *comm,
                                      void *mhandle) {
  return TABLE(transport, 6)->deregMr(comm, mhandle);
}

/* ---- transfers; one message per request; its tag matters only for grouped receives ---- */

enum nccl_result transport_isend(const struct transport *transport, void *comm, void *data,
                                 size_t bytes, void *mhandle, void **request) {
  return transport->version >= 10
             ? TABLE(transport, 10)->isend(comm, data, bytes, 0, mhandle, NULL, request)
         : transport->version == 9
             ? TABLE(transport, 9)->isend(comm, data, bytes, 0, mhandle, request)
         : bytes > INT_MAX
             ? NCCL_INVALID_USAGE
             : TABLE(transport, 6)->isend(comm, data, (int)bytes, 0, mhandle, request);
}

enum nccl_result transport_irecv(const struct transport *transport, void *comm, void *data,
                                 size_t bytes, void *mhandle, void **request) {
  int tag = 0, int_bytes = (int)bytes;
  void *phandle = NULL;
  if (transport->version >= 10) {
    return TABLE(transport, 10)->irecv(comm, 1, &data, &bytes, &tag, &mhandle, &phandle, request);
  }
  return transport->version == 9
             ? TABLE(transport, 9)->irecv(comm, 1, &data, &bytes, &tag, &mhandle, request)
         : bytes > INT_MAX
             ? NCCL_INVALID_USAGE
             : TABLE(transport, 6)->irecv(comm, 1, &data, &int_bytes, &tag, &mhandle, request);
}
