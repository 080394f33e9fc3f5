/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_context.h. */
#include "net_plugin/lane/rdma/rdma_context.h"
#include "common/descriptor.h"
#include "common/fork_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct ibv_context *open_by_name(const struct verbs_api *api, const char *name,
                                        char why[RDMA_WHY_MAX]) {
  int count = 0;
  struct ibv_device **list = api->get_device_list(&count);
  struct ibv_context *context = NULL;
  bool is_listed = false;
  for (int i = 0; list && i < count && !is_listed; i++) {
    is_listed = !strcmp(api->get_device_name(list[i]), name);
    if (is_listed) {
      errno = 0;
      fork_guard_unmap("/dev/infiniband/");
      descriptor_begin();
      context = api->open_device(list[i]);
      descriptor_mark(context ? context->cmd_fd : -1);
      descriptor_mark(context ? context->async_fd : -1);
      descriptor_end();
    }
  }
  if (!is_listed) {
    snprintf(
        why, RDMA_WHY_MAX,
        "libibverbs does not list %s: /dev/infiniband is missing here, or rdma-core's driver for "
        "it",
        name);
  } else if (!context) {
    snprintf(why, RDMA_WHY_MAX,
             "%s cannot be opened: %s; /dev/infiniband must be readable and "
             "writable",
             name, strerror(errno));
  }
  if (list) {
    api->free_device_list(list);
  }
  return context;
}

/* What the device itself reports. */
static bool query(struct rdma_device *device, char why[RDMA_WHY_MAX]) {
  struct rdma_port *port = &device->port;
  struct ibv_device_attr attributes;
  struct ibv_port_attr now;
  int error = device->api->query_device(device->context, &attributes);
  error = error ? error : verbs_query_port(device->api, device->context, port->port, &now);
  if (error) {
    snprintf(why, RDMA_WHY_MAX, "%s cannot be queried: %s", port->name, strerror(error));
    return false;
  }
  if (now.state != IBV_PORT_ACTIVE) {
    snprintf(why, RDMA_WHY_MAX, "port %d of %s is %s", port->port, port->name,
             device->api->port_state_str(now.state));
    return false;
  }
  port->mtu = now.active_mtu;
  port->max_send_sge = attributes.max_sge > 0 ? (uint32_t)attributes.max_sge : 0;
  if (port->traits.max_send_sge && port->traits.max_send_sge < port->max_send_sge) {
    port->max_send_sge = port->traits.max_send_sge;
  }
  return true;
}

static void describe(const struct rdma_sysfs_port *from, struct rdma_port *out) {
  memcpy(out->name, from->name, sizeof(out->name));
  out->port = (uint8_t)from->port;
  out->is_infiniband = from->is_infiniband;
  out->is_iwarp = from->is_iwarp;
  rdma_quirks_find(from, &out->traits);
}

/* Whatever there is of it. */
void rdma_context_close(struct rdma_device *device) {
  if (device->pd) {
    device->api->dealloc_pd(device->pd);
  }
  if (device->context) {
    descriptor_begin();
    descriptor_unmark(device->context->cmd_fd);
    descriptor_unmark(device->context->async_fd);
    device->api->close_device(device->context);
    descriptor_end();
  }
  if (device->lost_fd >= 0) {
    descriptor_close(device->lost_fd);
  }
  free(device);
}

/* libibverbs keeps the path: /sys/class/infiniband_verbs/uverbs0. */
bool rdma_context_has_entry(const struct rdma_device *device) {
  const char *path = device->context->device->dev_path;
  return path[0] && access(path, F_OK) == 0;
}

/* Reading events must not block. */
static bool make_nonblocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct rdma_device *rdma_context_open(const struct rdma_sysfs_port *from, const struct nic *nic,
                                      const struct rdma_settings *settings,
                                      char why[RDMA_WHY_MAX]) {
  /* Only now: most machines have no HCA, and need no library. */
  const struct verbs_api *api = verbs_api_get();
  if (!api) {
    snprintf(why, RDMA_WHY_MAX, "%s needs libibverbs: %.150s", from->name, verbs_api_reason());
    return NULL;
  }
  struct rdma_device *device = calloc(1, sizeof(*device));
  if (!device) {
    snprintf(why, RDMA_WHY_MAX, "out of memory");
    return NULL;
  }
  device->api = api;
  device->nic = *nic;
  device->settings = *settings;
  device->lost_fd = -1;
  describe(from, &device->port);
  if (!verbs_api_cm()) {
    snprintf(why, RDMA_WHY_MAX, "%s needs librdmacm: %.150s", from->name, verbs_api_reason());
    goto destroy;
  }
  device->context = open_by_name(api, from->name, why);
  if (!device->context || !query(device, why)) {
    goto destroy;
  }
  device->has_entry = rdma_context_has_entry(device);
  device->pd = api->alloc_pd(device->context);
  device->lost_fd = DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!device->pd || device->lost_fd < 0 || !make_nonblocking(device->context->async_fd)) {
    snprintf(why, RDMA_WHY_MAX, "%s cannot be used: %s", from->name, strerror(errno));
    goto destroy;
  }
  return device;
destroy:
  rdma_context_close(device);
  return NULL;
}
