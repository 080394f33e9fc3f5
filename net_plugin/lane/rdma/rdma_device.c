/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_device.h, and endpoint.h for what begins and ends all of it. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/fork_guard.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "common/thread.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_memory.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp_address.h"

/* Alibaba Cloud's elastic RDMA, as ibv_query_device tells it (the erdma driver of Linux 6.12). */
#define VENDOR_ERDMA 0x1ded

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t search_over;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Below: covered by the lock. */
static struct rdma_device devices[RDMA_DEVICES];
static bool is_configured;
static struct rdma_settings current;

static void make_table(void) {
  thread_init_condition(&search_over);
  for (int i = 0; i < RDMA_DEVICES; i++) {
    devices[i].index = i;
    devices[i].lost_fd = -1;
    rdma_worker_init(&devices[i].queue);
    devices[i].queue.readable = rdma_qp_take_events;
  }
}

static void take_lock(void) {
  pthread_once(&once, make_table);
  pthread_mutex_lock(&lock);
}

static void drop_lock(void) {
  pthread_mutex_unlock(&lock);
}

const char *rdma_transport_name(enum rdma_transport transport) {
  static const char *const names[RDMA_TRANSPORTS] = { "RoCE", "InfiniBand", "iWARP" };
  return names[transport];
}

/* ---- settings ---- */

/* NULL: not set, or empty, which is the same to NCCL. */
static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* Decimal, or as C has it: 0x10, 010. NCCL takes what strtoll makes of anything, so that a typing
 * error is a zero. */
static long long read_number(const char *name, long long low, long long high, long long otherwise) {
  const char *text = variable(name);
  if (!text) {
    return otherwise;
  }
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 0);
  if (errno || end == text || *end || number < low || number > high) {
    LOG_WARN("%s=%s is ignored: accepted is %lld..%lld; %lld is used", name, text, low, high,
             otherwise);
    number = otherwise;
  }
  return number;
}

static void read_settings(struct rdma_settings *out) {
  *out = (struct rdma_settings){ 0 };
  int mode = param_enum(PARAM_RDMA);
  /* NCCL takes any number but 0 for true. */
  bool is_disabled = read_number("NCCL_IB_DISABLE", INT32_MIN, INT32_MAX, 0) != 0;
  if (mode == PARAM_RDMA_OFF) {
    out->off_why = "STRATUS_RDMA=off";
  } else if (is_disabled) {
    out->off_why = "NCCL_IB_DISABLE is set";
  }
  out->is_wanted = mode == PARAM_RDMA_ON;
  name_list_parse(&out->hcas, "NCCL_IB_HCA", variable("NCCL_IB_HCA"), true);
  out->traffic_class = (int)read_number("NCCL_IB_TC", -1, 255, -1);
  out->service_level = (int)read_number("NCCL_IB_SL", -1, 15, -1);
  out->timeout = (uint8_t)read_number("NCCL_IB_TIMEOUT", 0, 31, RDMA_TIMEOUT);
  out->retry_count = (uint8_t)read_number("NCCL_IB_RETRY_CNT", 0, 7, 7);
}

/* With the lock held. */
static const struct rdma_settings *configured(void) {
  if (!is_configured) {
    read_settings(&current);
    is_configured = true;
  }
  return &current;
}

void endpoint_configure(void) {
  take_lock();
  is_configured = false;
  configured();
  for (int i = 0; i < RDMA_DEVICES; i++) {
    devices[i].until_ns = 0;
    devices[i].logged[0] = '\0';
  }
  drop_lock();
}

struct rdma_settings rdma_device_settings(void) {
  take_lock();
  struct rdma_settings settings = *configured();
  drop_lock();
  return settings;
}

/* ---- opening and closing, by workers ---- */

/* For librdmacm's events of the device and of its queue pairs. */
static bool open_channel(struct rdma_device *device) {
  errno = ENODEV;
  descriptor_begin();
  device->channel = device->api->create_event_channel();
  descriptor_mark(device->channel ? device->channel->fd : -1);
  descriptor_end();
  return device->channel && verbs_make_nonblocking(device->channel->fd) &&
         fcntl(device->channel->fd, F_SETFD, FD_CLOEXEC) == 0;
}

static void close_channel(const struct rdma_device *device) {
  descriptor_begin();
  descriptor_unmark(device->channel->fd);
  device->api->destroy_event_channel(device->channel);
  descriptor_end();
}

/* False: why. What there is of it is unbound by close_device. */
static bool bind_to_nic(struct rdma_device *device, char why[RDMA_WHY_MAX]) {
  const struct verbs_api *api = device->api;
  struct sockaddr_storage address = device->nic.address;
  tcp_address_set_port(&address, 0);
  if (!open_channel(device) ||
      api->create_id(device->channel, &device->bound, NULL, RDMA_PS_TCP) != 0) {
    snprintf(why, RDMA_WHY_MAX, "librdmacm cannot be used (rdma_create_id: %s)", strerror(errno));
    return false;
  }
  fork_guard_unmap("/dev/infiniband/");
  bool is_bound = api->bind_addr(device->bound, (struct sockaddr *)&address) == 0;
  if (!is_bound || !device->bound->verbs) {
    snprintf(why, RDMA_WHY_MAX,
             "librdmacm finds no RDMA device at its address (rdma_bind_addr: %s)",
             strerror(is_bound ? ENODEV : errno));
    return false;
  }
  descriptor_mark(device->bound->verbs->cmd_fd);
  descriptor_mark(device->bound->verbs->async_fd);
  return true;
}

static bool open_events(struct rdma_device *device, char why[RDMA_WHY_MAX]) {
  errno = 0;
  descriptor_begin();
  device->events = device->api->open_device(device->bound->verbs->device);
  descriptor_mark(device->events ? device->events->cmd_fd : -1);
  descriptor_mark(device->events ? device->events->async_fd : -1);
  descriptor_end();
  device->lost_fd = DESCRIPTOR(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  bool is_open =
      device->events && device->lost_fd >= 0 && verbs_make_nonblocking(device->events->async_fd);
  if (!is_open) {
    snprintf(why, RDMA_WHY_MAX,
             "%s cannot be opened: %s; /dev/infiniband must be readable and writable", device->name,
             strerror(errno));
  }
  return is_open;
}

/* What the device itself reports. */
static bool query(struct rdma_device *device, char why[RDMA_WHY_MAX]) {
  struct ibv_context *context = device->bound->verbs;
  struct ibv_device_attr attributes;
  struct ibv_port_attr now;
  int error = device->api->query_device(context, &attributes);
  error = error ? error : verbs_query_port(device->api, context, device->port, &now);
  if (error) {
    snprintf(why, RDMA_WHY_MAX, "%s cannot be queried: %s", device->name, strerror(error));
    return false;
  }
  if (now.state != IBV_PORT_ACTIVE) {
    snprintf(why, RDMA_WHY_MAX, "port %d of %s is %s", device->port, device->name,
             device->api->port_state_str(now.state));
    return false;
  }
  bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  device->transport = is_iwarp                                      ? RDMA_IWARP
                      : now.link_layer == IBV_LINK_LAYER_INFINIBAND ? RDMA_INFINIBAND
                                                                    : RDMA_ROCE;
  device->is_erdma = attributes.vendor_id == VENDOR_ERDMA;
  /* iWARP knows it as an extension only; eRDMA, which is iWARP in its standard mode, has it
   * (Alibaba Cloud's manual). */
  device->has_immediate = !is_iwarp || device->is_erdma;
  return true;
}

/* *may_come: the NIC has a device that may be used, once it works. */
static bool open_device(struct rdma_device *device, bool *may_come, char why[RDMA_WHY_MAX]) {
  device->api = verbs_api_get();
  if (!device->api) {
    snprintf(why, RDMA_WHY_MAX, "%.250s", verbs_api_reason());
    return false;
  }
  if (!bind_to_nic(device, why)) {
    return false;
  }
  snprintf(device->name, sizeof(device->name), "%s", device->bound->verbs->device->name);
  device->port = device->bound->port_num;
  *may_come = name_list_has(&device->settings.hcas, device->name, device->port);
  if (!*may_come) {
    snprintf(why, RDMA_WHY_MAX, "NCCL_IB_HCA leaves out %s:%d", device->name, device->port);
    return false;
  }
  if (!open_events(device, why) || !query(device, why)) {
    return false;
  }
  device->pd = device->api->alloc_pd(device->bound->verbs);
  if (!device->pd) {
    snprintf(why, RDMA_WHY_MAX, "%s cannot be used: %s", device->name, strerror(errno));
  }
  return device->pd != NULL;
}

/* Does another NIC's device have the same context? */
static bool is_shared(const struct rdma_device *device) {
  bool is_found = false;
  take_lock();
  for (int i = 0; i < RDMA_DEVICES; i++) {
    const struct rdma_device *other = &devices[i];
    is_found |=
        other != device && other->state == RDMA_OPEN && other->bound->verbs == device->bound->verbs;
  }
  drop_lock();
  return is_found;
}

/* Whatever there is of it. */
static void close_device(struct rdma_device *device) {
  /* Refused for good, it stays: what it still has was warned of. */
  for (unsigned i = 0; device->pd && i < RDMA_DESTROY_TRIES; i++) {
    device->pd = device->api->dealloc_pd(device->pd) ? device->pd : NULL;
  }
  /* librdmacm may close them from here on. */
  if (device->bound && device->bound->verbs && !is_shared(device)) {
    descriptor_unmark(device->bound->verbs->cmd_fd);
    descriptor_unmark(device->bound->verbs->async_fd);
  }
  if (device->events) {
    descriptor_begin();
    descriptor_unmark(device->events->cmd_fd);
    descriptor_unmark(device->events->async_fd);
    device->api->close_device(device->events);
    descriptor_end();
  }
  if (device->lost_fd >= 0) {
    descriptor_close(device->lost_fd);
  }
  if (device->channel) {
    rdmacm_destroy_id(device->api, device->bound);
    close_channel(device);
  }
  device->pd = NULL;
  device->events = NULL;
  device->lost_fd = -1;
  device->bound = NULL;
  device->channel = NULL;
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
  if (device->is_erdma && may_use_ll128(getenv("NCCL_PROTO")) &&
      sysfs_read_int(sysfs_process_root, &mtu, "sys/class/net/%s/mtu", device->nic.name) >= 0 &&
      mtu != JUMBO_MTU && mtu != PLAIN_MTU) {
    LOG_WARN("%s: the MTU of %s is %d, and with eRDMA NCCL's LL128 protocol may then deliver wrong "
             "data: set the MTU to %d (or %d without jumbo frames), or NCCL_PROTO=^LL128",
             device->name, device->nic.name, (int)mtu, JUMBO_MTU, PLAIN_MTU);
  }
}

/* The longer a search took, the later is the next. */
static uint64_t pause_after(uint64_t search_ns) {
  uint64_t pause_ns = RDMA_REFUSAL_FACTOR * search_ns;
  pause_ns = pause_ns < RDMA_REFUSAL_NS ? RDMA_REFUSAL_NS : pause_ns;
  return pause_ns > RDMA_REFUSAL_MOST_NS ? RDMA_REFUSAL_MOST_NS : pause_ns;
}

static void search(struct rdma_job *job) {
  struct rdma_device *device = LIST_ENTRY(job, struct rdma_device, job);
  char why[RDMA_WHY_MAX];
  bool may_come = false;
  atomic_store(&device->is_lost, false);
  bool is_open = open_device(device, &may_come, why);
  if (is_open) {
    device->queue.fd = device->channel->fd;
    rdma_memory_add(&(struct rdma_domain){ .index = device->index,
                                           .name = device->name,
                                           .api = device->api,
                                           .pd = device->pd,
                                           .is_lost = &device->is_lost });
    LOG_INFO("%s, the RDMA device of %s, is open: port %u", device->name, device->nic.name,
             device->port);
    warn_of_mtu(device);
  } else {
    close_device(device);
  }
  take_lock();
  device->state = is_open ? RDMA_OPEN : RDMA_CLOSED;
  if (!is_open) {
    uint64_t now_ns = clock_now_ns();
    device->until_ns = now_ns + pause_after(now_ns - device->since_ns);
    device->may_come = may_come;
    memcpy(device->why, why, RDMA_WHY_MAX);
  }
  pthread_cond_broadcast(&search_over);
  drop_lock();
}

static void close_lost(struct rdma_job *job) {
  struct rdma_device *device = LIST_ENTRY(job, struct rdma_device, job);
  rdma_memory_remove(device->index);
  device->queue.fd = -1;
  close_device(device);
  take_lock();
  device->state = RDMA_CLOSED;
  drop_lock();
}

/* ---- the table, with the lock held ---- */

static void begin_search(struct rdma_device *device) {
  device->state = RDMA_SEARCHING;
  device->since_ns = clock_now_ns();
  device->settings = *configured();
  device->job.run = search;
  if (!rdma_worker_submit(&device->queue, &device->job) && rdma_worker_take_back(&device->job)) {
    device->state = RDMA_CLOSED; /* no thread: the next call tries again */
  }
}

static void begin_close(struct rdma_device *device) {
  device->state = RDMA_CLOSING;
  device->job.run = close_lost;
  rdma_worker_submit(&device->queue, &device->job);
}

/* Do they stand for the same device? */
static bool is_same_nic(const struct nic *a, const struct nic *b) {
  return !strcmp(a->name, b->name) && !memcmp(&a->address, &b->address, sizeof(a->address));
}

/* The NIC's place: the one that it has, or else that of the one that was searched longest ago and
 * has no device. NULL: all have devices. */
static struct rdma_device *place_of(const struct nic *nic) {
  struct rdma_device *oldest = NULL;
  for (int i = 0; i < RDMA_DEVICES; i++) {
    struct rdma_device *device = &devices[i];
    if (is_same_nic(&device->nic, nic)) {
      return device;
    }
    if (device->state == RDMA_CLOSED && (!oldest || device->since_ns < oldest->since_ns)) {
      oldest = device;
    }
  }
  if (oldest) {
    oldest->nic = *nic;
    oldest->until_ns = 0;
    oldest->may_come = false;
    oldest->logged[0] = '\0';
  }
  return oldest;
}

/* ---- for NICs ---- */

struct rdma_device *rdma_device_take(const struct nic *nic, char why[RDMA_WHY_MAX]) {
  struct rdma_device *taken = NULL;
  why[0] = '\0';
  take_lock();
  struct rdma_device *device = place_of(nic);
  if (device && device->state == RDMA_OPEN && device->users == 0) {
    rdma_device_take_events(device); /* it has no lane that does */
    if (atomic_load(&device->is_lost)) {
      begin_close(device);
    }
  }
  if (configured()->off_why) {
    snprintf(why, RDMA_WHY_MAX, "%s", configured()->off_why);
  } else if (nic->advertised.ss_family != AF_UNSPEC) {
    snprintf(why, RDMA_WHY_MAX,
             "others dial it by STRATUS_ADVERTISE_ADDRESS, and what translates that passes on TCP");
  } else if (!device) {
    snprintf(why, RDMA_WHY_MAX, "too many RDMA devices are in use");
  } else if (device->state == RDMA_OPEN && !atomic_load(&device->is_lost)) {
    device->users++;
    taken = device;
  } else if (device->state == RDMA_CLOSED && clock_now_ns() < device->until_ns) {
    memcpy(why, device->why, RDMA_WHY_MAX);
  } else if (device->state == RDMA_CLOSED) {
    begin_search(device);
  }
  drop_lock();
  return taken;
}

void rdma_device_release(struct rdma_device *device) {
  take_lock();
  if (--device->users == 0 && atomic_load(&device->is_lost)) {
    begin_close(device);
  }
  drop_lock();
}

void endpoint_wait(const struct nic *nics, unsigned count, bool is_encrypted) {
  count = is_encrypted ? 0 : count;
  for (unsigned i = 0; i < count; i++) { /* searches begin */
    char why[RDMA_WHY_MAX];
    struct rdma_device *device = rdma_device_take(&nics[i], why);
    if (device) {
      rdma_device_release(device);
    }
  }
  take_lock();
  for (unsigned i = 0; i < count; i++) {
    struct rdma_device *device = place_of(&nics[i]);
    int error = 0;
    while (!error && device && device->state == RDMA_SEARCHING) {
      struct timespec until = clock_timespec(device->since_ns + RDMA_SEARCH_WAIT_NS);
      error = pthread_cond_timedwait(&search_over, &lock, &until);
    }
  }
  drop_lock();
}

bool rdma_device_may_come(const struct nic *nic) {
  take_lock();
  const struct rdma_device *device = place_of(nic);
  bool may_come = device && (device->may_come || device->state != RDMA_CLOSED);
  drop_lock();
  return may_come;
}

void rdma_device_log_refusal(const struct nic *nic, const char *why) {
  bool is_new = false;
  take_lock();
  struct rdma_device *device = place_of(nic);
  if (device) {
    is_new = strcmp(device->logged, why) != 0;
    snprintf(device->logged, sizeof(device->logged), "%s", why);
  }
  enum log_level level = configured()->is_wanted ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
  drop_lock();
  LOG_AT(is_new ? level : LOG_LEVEL_TRACE, "no RDMA through %s, TCP is used: %s", nic->name, why);
}

/* ---- for users of a device ---- */

void rdma_device_lose(struct rdma_device *device, const char *why) {
  if (!atomic_exchange(&device->is_lost, true)) {
    LOG_INFO("%s, the RDMA device of %s, is given up: %s", device->name, device->nic.name, why);
    eventfd_write(device->lost_fd, 1);
  }
}

void rdma_device_take_events(struct rdma_device *device) {
  struct ibv_async_event event;
  while (device->api->get_async_event(device->events, &event) == 0) {
    const char *text = device->api->event_type_str(event.event_type);
    LOG_TRACE("%s: event: %s", device->name, text);
    if (event.event_type == IBV_EVENT_DEVICE_FATAL ||
        (event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num == device->port)) {
      rdma_device_lose(device, text);
    }
    device->api->ack_async_event(&event);
  }
}

void endpoint_stop_all(void) {
  take_lock();
  for (int i = 0; i < RDMA_DEVICES; i++) {
    drop_lock();
    rdma_worker_finish(&devices[i].queue);
    take_lock();
    if (devices[i].state == RDMA_OPEN && devices[i].users == 0) {
      begin_close(&devices[i]);
      drop_lock();
      rdma_worker_finish(&devices[i].queue);
      take_lock();
    }
  }
  drop_lock();
}
