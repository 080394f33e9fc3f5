/* SPDX-License-Identifier: Apache-2.0 */
/* The device is opened a second time here: librdmacm keeps its own context open for as long as the
 * process lives, and shares it between NICs, so that neither the end of a device nor the events of
 * one NIC's port could be told by it. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/fork_guard.h"
#include "common/log.h"
#include "common/sysfs.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/tcp_socket.h"

/* Alibaba Cloud's elastic RDMA, as ibv_query_device tells it (the erdma driver of Linux 6.12). */
#define VENDOR_ERDMA 0x1ded

enum { REFUSALS_MAX = 16 };
/* A NIC that has no device at the moment. */
struct refusal {
  struct nic nic;
  uint64_t until_ns;
  bool has_device; /* one that may work some day */
  char why[RDMA_WHY_MAX];
  char logged[RDMA_WHY_MAX]; /* the reason that was logged last */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. */
static struct rdma_device *devices;
static struct refusal refusals[REFUSALS_MAX];
static unsigned next_refusal;
static bool is_configured;
static struct rdma_settings current;

/* Held while a device is being opened; taken before the lock, never with it. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static const struct rdma_settings *configured(void) {
  if (!is_configured) {
    rdma_settings_read(&current);
    is_configured = true;
  }
  return &current;
}

void rdma_device_configure(const struct rdma_settings *wanted) {
  pthread_mutex_lock(&lock);
  if (wanted) {
    current = *wanted;
  } else {
    rdma_settings_read(&current);
  }
  is_configured = true;
  memset(refusals, 0, sizeof(refusals));
  pthread_mutex_unlock(&lock);
}

struct rdma_settings rdma_device_settings(void) {
  pthread_mutex_lock(&lock);
  struct rdma_settings settings = *configured();
  pthread_mutex_unlock(&lock);
  return settings;
}

/* ---- found by the NIC's address ---- */

/* What is bound to the address of a NIC, and so to its device, for a moment. */
struct binding {
  struct rdma_event_channel *channel;
  struct rdma_cm_id *id;
};

/* False: why. What there is of it is unbound in any case. */
static bool bind_to(const struct rdmacm_api *cm, const struct nic *nic, struct binding *binding,
                    char why[RDMA_WHY_MAX]) {
  struct sockaddr_storage address = nic->address;
  *binding = (struct binding){ .channel = rdmacm_open_channel(cm) };
  tcp_address_set_port(&address, 0);
  if (!binding->channel || cm->create_id(binding->channel, &binding->id, NULL, RDMA_PS_TCP) != 0) {
    snprintf(why, RDMA_WHY_MAX, "librdmacm cannot be used (rdma_create_id: %s)", strerror(errno));
    return false;
  }
  bool is_bound = cm->bind_addr(binding->id, (struct sockaddr *)&address) == 0;
  if (!is_bound || !binding->id->verbs) {
    snprintf(why, RDMA_WHY_MAX,
             "librdmacm finds no RDMA device at its address (rdma_bind_addr: %s)",
             strerror(is_bound ? ENODEV : errno));
  }
  return is_bound && binding->id->verbs;
}

static void unbind(const struct rdmacm_api *cm, const struct binding *binding) {
  rdmacm_destroy_id(cm, binding->id);
  rdmacm_close_channel(cm, binding->channel);
}

/* ---- opening ---- */

static struct ibv_context *open_context(const struct verbs_api *api, struct ibv_device *from) {
  errno = 0;
  fork_guard_unmap("/dev/infiniband/");
  descriptor_begin();
  struct ibv_context *context = api->open_device(from);
  descriptor_mark(context ? context->cmd_fd : -1);
  descriptor_mark(context ? context->async_fd : -1);
  descriptor_end();
  return context;
}

/* Whatever there is of it. */
static void close_context(struct rdma_device *device) {
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
  bool is_iwarp = device->context->device->transport_type == IBV_TRANSPORT_IWARP;
  port->transport = is_iwarp                                      ? RDMA_IWARP
                    : now.link_layer == IBV_LINK_LAYER_INFINIBAND ? RDMA_INFINIBAND
                                                                  : RDMA_ROCE;
  port->can_gather = attributes.max_sge >= 2;
  port->is_erdma = attributes.vendor_id == VENDOR_ERDMA;
  /* iWARP knows it as an extension only; eRDMA, which is iWARP in its standard mode, has it
   * (Alibaba Cloud's manual). */
  port->has_immediate = !is_iwarp || port->is_erdma;
  return true;
}

/* The device that librdmacm has found. */
static struct rdma_device *open_found(const struct verbs_api *api, const struct rdma_cm_id *id,
                                      const struct nic *nic, const struct rdma_settings *settings,
                                      char why[RDMA_WHY_MAX]) {
  struct rdma_device *device = calloc(1, sizeof(*device));
  if (!device) {
    snprintf(why, RDMA_WHY_MAX, "out of memory");
    return NULL;
  }
  device->api = api;
  device->nic = *nic;
  device->settings = *settings;
  device->lost_fd = -1;
  snprintf(device->port.name, sizeof(device->port.name), "%s", id->verbs->device->name);
  device->port.port = id->port_num;
  device->context = open_context(api, id->verbs->device);
  if (!device->context) {
    snprintf(why, RDMA_WHY_MAX,
             "%s cannot be opened: %s; /dev/infiniband must be readable and writable",
             device->port.name, strerror(errno));
    goto destroy;
  }
  if (!query(device, why)) {
    goto destroy;
  }
  device->pd = api->alloc_pd(device->context);
  device->lost_fd = DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!device->pd || device->lost_fd < 0 || !verbs_make_nonblocking(device->context->async_fd)) {
    snprintf(why, RDMA_WHY_MAX, "%s cannot be used: %s", device->port.name, strerror(errno));
    goto destroy;
  }
  return device;
destroy:
  close_context(device);
  return NULL;
}

/* Does NCCL_PROTO let NCCL take LL128? "LL,Simple", "^LL128". */
static bool may_use_ll128(const char *protocols) {
  bool is_listed = protocols && strcasestr(protocols, "LL128");
  return !protocols || !*protocols || is_listed != (*protocols == '^');
}

/* With other MTUs the packets of eRDMA end in the middle of LL128's lines of 128 bytes, and their
 * parts may become visible out of order (Alibaba Cloud's manual of eRDMA). */
static void warn_of_mtu(const struct rdma_device *device) {
  enum { JUMBO_MTU = 8500, PLAIN_MTU = 1400 };
  int64_t mtu;
  if (device->port.is_erdma && may_use_ll128(getenv("NCCL_PROTO")) &&
      sysfs_read_int(sysfs_process_root, &mtu, "sys/class/net/%s/mtu", device->nic.name) >= 0 &&
      mtu != JUMBO_MTU && mtu != PLAIN_MTU) {
    LOG_WARN("%s: the MTU of %s is %d, and with eRDMA NCCL's LL128 protocol may then deliver wrong "
             "data: set the MTU to %d (or %d without jumbo frames), or NCCL_PROTO=^LL128",
             device->port.name, device->nic.name, (int)mtu, JUMBO_MTU, PLAIN_MTU);
  }
}

/* With `opening` held. *is_there: the NIC has a device that may be used, once it works. */
static struct rdma_device *open_new(const struct nic *nic, const struct rdma_settings *settings,
                                    bool *is_there, char why[RDMA_WHY_MAX]) {
  struct rdma_device *device = NULL;
  struct binding binding;
  *is_there = false;
  if (nic->advertised.ss_family != AF_UNSPEC) {
    snprintf(why, RDMA_WHY_MAX,
             "others dial it by STRATUS_ADVERTISE_ADDRESS, and what translates that passes on TCP");
    return NULL;
  }
  const struct verbs_api *api = verbs_api_get();
  if (!api) {
    snprintf(why, RDMA_WHY_MAX, "%.250s", verbs_api_reason());
    return NULL;
  }
  if (bind_to(api->cm, nic, &binding, why)) {
    const char *name = binding.id->verbs->device->name;
    *is_there = name_list_has(&settings->hcas, name, binding.id->port_num);
    if (*is_there) {
      device = open_found(api, binding.id, nic, settings, why);
    } else {
      snprintf(why, RDMA_WHY_MAX, "NCCL_IB_HCA leaves out %s:%d", name, binding.id->port_num);
    }
  }
  unbind(api->cm, &binding);
  if (device) {
    warn_of_mtu(device);
  }
  return device;
}

/* ---- events ---- */

void rdma_device_lose(struct rdma_device *device, const char *why) {
  if (!atomic_exchange(&device->is_lost, true)) {
    LOG_INFO("%s, the RDMA device of %s, is given up: %s", device->port.name, device->nic.name,
             why);
    eventfd_write(device->lost_fd, 1);
  }
}

static void tell_watch(const struct ibv_qp *qp, enum ibv_event_type type) {
  struct rdma_watch *watch = qp->qp_context;
  int none = 0;
  atomic_compare_exchange_strong(&watch->event, &none, (int)type + 1);
}

static void take_event(struct rdma_device *device, const struct ibv_async_event *event) {
  const char *text = device->api->event_type_str(event->event_type);
  LOG_TRACE("%s: event: %s", device->port.name, text);
  switch (event->event_type) {
  case IBV_EVENT_QP_FATAL:
  case IBV_EVENT_QP_REQ_ERR:
  case IBV_EVENT_QP_ACCESS_ERR:
    tell_watch(event->element.qp, event->event_type);
    break;
  case IBV_EVENT_DEVICE_FATAL:
  case IBV_EVENT_CQ_ERR:
    rdma_device_lose(device, text);
    break;
  case IBV_EVENT_PORT_ERR:
    if (event->element.port_num == device->port.port) {
      rdma_device_lose(device, text);
    }
    break;
  default: /* others change nothing for a lane */
    break;
  }
}

/* With the lock held. */
static void take_events(struct rdma_device *device) {
  struct ibv_async_event event;
  while (device->api->get_async_event(device->context, &event) == 0) {
    take_event(device, &event);
    device->api->ack_async_event(&event);
  }
}

void rdma_device_take_events(struct rdma_device *device) {
  pthread_mutex_lock(&lock);
  take_events(device);
  pthread_mutex_unlock(&lock);
}

/* ---- those that are open ---- */

bool rdma_device_is_same_nic(const struct nic *a, const struct nic *b) {
  return !strcmp(a->name, b->name) && !memcmp(&a->address, &b->address, sizeof(a->address));
}

/* With the lock held, as what follows. */
static struct rdma_device *find_open(const struct nic *nic, bool must_be_attached) {
  for (struct rdma_device *it = devices; it; it = it->next) {
    if (rdma_device_is_same_nic(&it->nic, nic)) {
      take_events(it); /* it may have no lane that does */
      if (!atomic_load(&it->is_lost) && (!must_be_attached || atomic_load(&it->is_attached))) {
        return it;
      }
    }
  }
  return NULL;
}

static struct refusal *find_refusal(const struct nic *nic) {
  for (int i = 0; i < REFUSALS_MAX; i++) {
    if (rdma_device_is_same_nic(&refusals[i].nic, nic)) {
      return &refusals[i];
    }
  }
  return NULL;
}

/* Of the NIC: the one that there is, or a new one. */
static struct refusal *refusal_of(const struct nic *nic) {
  struct refusal *refusal = find_refusal(nic);
  if (!refusal) {
    refusal = &refusals[next_refusal++ % REFUSALS_MAX];
    *refusal = (struct refusal){ .nic = *nic };
  }
  return refusal;
}

static void refuse(const struct nic *nic, const char *why, bool has_device, uint64_t asked_ns) {
  uint64_t now_ns = clock_now_ns(), pause_ns = RDMA_REFUSAL_FACTOR * (now_ns - asked_ns);
  pause_ns = pause_ns < RDMA_REFUSAL_NS ? RDMA_REFUSAL_NS : pause_ns;
  pause_ns = pause_ns > RDMA_REFUSAL_MOST_NS ? RDMA_REFUSAL_MOST_NS : pause_ns;
  struct refusal *refusal = refusal_of(nic);
  snprintf(refusal->why, sizeof(refusal->why), "%s", why);
  refusal->has_device = has_device;
  refusal->until_ns = now_ns + pause_ns;
}

void rdma_device_refuse(const struct nic *nic, const char *why) {
  pthread_mutex_lock(&lock);
  refuse(nic, why, true, clock_now_ns());
  pthread_mutex_unlock(&lock);
}

void rdma_device_log_refusal(const struct nic *nic, const char *why) {
  pthread_mutex_lock(&lock);
  struct refusal *refusal = refusal_of(nic);
  bool is_new = strcmp(refusal->logged, why) != 0;
  snprintf(refusal->logged, sizeof(refusal->logged), "%s", why);
  enum log_level level = configured()->is_wanted ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
  pthread_mutex_unlock(&lock);
  LOG_AT(is_new ? level : LOG_LEVEL_TRACE, "no RDMA through %s, TCP is used: %s", nic->name, why);
}

bool rdma_device_may_come(const struct nic *nic) {
  pthread_mutex_lock(&lock);
  const struct refusal *refusal = find_refusal(nic);
  bool may_come = refusal && refusal->has_device;
  pthread_mutex_unlock(&lock);
  return may_come;
}

/* NULL: why has the reason, if one is known. */
static struct rdma_device *find_and_hold(const struct nic *nic, bool must_be_attached,
                                         char why[RDMA_WHY_MAX]) {
  why[0] = '\0';
  pthread_mutex_lock(&lock);
  const struct rdma_settings *settings = configured();
  struct rdma_device *device = find_open(nic, must_be_attached);
  const struct refusal *refusal = find_refusal(nic);
  if (device) {
    device->holders++;
  } else if (settings->is_off) {
    snprintf(why, RDMA_WHY_MAX, "%s", settings->off_why);
  } else if (refusal && clock_now_ns() < refusal->until_ns) {
    memcpy(why, refusal->why, RDMA_WHY_MAX);
  }
  pthread_mutex_unlock(&lock);
  return device;
}

struct rdma_device *rdma_device_find(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  return find_and_hold(nic, true, why);
}

/* The lock is not held while drivers are asked: who moves data takes it, too. */
struct rdma_device *rdma_device_open(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  pthread_mutex_lock(&opening);
  struct rdma_device *device = find_and_hold(nic, false, why);
  if (!device && !why[0]) {
    uint64_t asked_ns = clock_now_ns();
    struct rdma_settings settings = rdma_device_settings();
    bool is_there;
    device = open_new(nic, &settings, &is_there, why);
    pthread_mutex_lock(&lock);
    if (device) {
      device->holders = 1;
      device->next = devices;
      devices = device;
    } else {
      refuse(nic, why, is_there, asked_ns);
    }
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_unlock(&opening);
  return device;
}

void rdma_device_hold(struct rdma_device *device) {
  pthread_mutex_lock(&lock);
  device->holders++;
  pthread_mutex_unlock(&lock);
}

/* True: nobody else holds it. */
static bool leave(struct rdma_device *device) {
  pthread_mutex_lock(&lock);
  bool is_last = --device->holders == 0;
  if (is_last) {
    struct rdma_device **place = &devices;
    while (*place != device) {
      place = &(*place)->next;
    }
    *place = device->next;
  }
  pthread_mutex_unlock(&lock);
  return is_last;
}

void rdma_device_close(struct rdma_device *device) {
  if (leave(device)) { /* without the lock: a driver may take long over it */
    close_context(device);
  }
}

static bool close_left(struct rdma_job *job) {
  close_context(LIST_ENTRY(job, struct rdma_device, closing));
  return true;
}

void rdma_device_release(struct rdma_device *device) {
  if (leave(device)) {
    device->closing.run = close_left;
    rdma_worker_submit(RDMA_QUEUE_DESTROY, NULL, &device->closing);
  }
}
