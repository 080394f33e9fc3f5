/* SPDX-License-Identifier: Apache-2.0 */
/* Each NIC has a device of its own, since its GID is part of it: two interfaces on one port are two
 * contexts. What is open is found by the NIC; only the first one to ask reads sysfs. */
#include "net_plugin/lane/rdma/rdma_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_context.h"

enum { REFUSALS_MAX = 16 };
/* A NIC that has no device at the moment. */
struct refusal {
  char nic[IF_NAMESIZE];
  uint64_t until_ns;
  bool has_port; /* one that may work some day */
  char why[RDMA_WHY_MAX];
};

/* What devices are searched with. */
struct configuration {
  struct rdma_settings settings;
  char sysfs_root[SYSFS_PATH_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by the lock. */
static struct rdma_device *devices;
static struct refusal refusals[REFUSALS_MAX];
static unsigned next_refusal;
static bool is_configured;
static struct configuration current;

/* Held while a device is being opened; taken before the lock, never with it. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
/* Below: covered by it. */
static struct configuration chosen;
static struct rdma_sysfs_port ports[RDMA_PORTS_MAX]; /* too large for a stack */

unsigned rdma_mtu_bytes(enum ibv_mtu mtu) {
  return 128u << (unsigned)mtu;
}

static void configure(const struct rdma_settings *wanted, const char *root) {
  if (wanted) {
    current.settings = *wanted;
  } else {
    rdma_settings_read(&current.settings);
  }
  snprintf(current.sysfs_root, sizeof(current.sysfs_root), "%s",
           root ? root : param_string(PARAM_SYSFS_ROOT));
  is_configured = true;
}

/* With the lock held. */
static const struct configuration *configured(void) {
  if (!is_configured) {
    configure(NULL, NULL);
  }
  return &current;
}

void rdma_device_configure(const struct rdma_settings *wanted, const char *root) {
  pthread_mutex_lock(&lock);
  is_configured = false;
  if (wanted || root) {
    configure(wanted, root);
  }
  memset(refusals, 0, sizeof(refusals));
  pthread_mutex_unlock(&lock);
}

const char *rdma_device_settings(struct rdma_settings *out) {
  pthread_mutex_lock(&lock);
  *out = configured()->settings;
  pthread_mutex_unlock(&lock);
  return current.sysfs_root;
}

/* ---- choosing ---- */

/* The port of the NIC, or NULL and why; *is_there: there is one that may be used when it works. */
static const struct rdma_sysfs_port *find_port(const struct nic *nic, bool *is_there,
                                               char why[RDMA_WHY_MAX]) {
  int gid;
  *is_there = false;
  unsigned count = rdma_sysfs_list(chosen.sysfs_root, ports);
  snprintf(why, RDMA_WHY_MAX, count ? "no HCA belongs to %s" : "there is no HCA", nic->name);
  for (unsigned i = 0; i < count; i++) {
    if (!rdma_choice_is_of_nic(chosen.sysfs_root, &ports[i], nic)) {
      continue;
    }
    *is_there |= rdma_choice_is_allowed(&ports[i], &chosen.settings, why);
    if (rdma_choice_judge(&ports[i], &chosen.settings, nic, &gid, why) == 0) {
      why[0] = '\0';
      return &ports[i];
    }
  }
  return NULL;
}

/* ---- opening ---- */

/* Once for each interface, and as NCCL's other warnings at the first connection. */
static void warn_of_settings(const struct rdma_sysfs_port *port, const struct nic *nic) {
  static char warned[RDMA_PORTS_MAX][IF_NAMESIZE];
  char text[RDMA_QUIRKS_TEXT_MAX];
  if (!rdma_choice_warning(chosen.sysfs_root, port, nic, text)) {
    return;
  }
  for (int i = 0; i < RDMA_PORTS_MAX; i++) {
    if (!strcmp(warned[i], nic->name)) {
      return;
    }
    if (!warned[i][0]) {
      snprintf(warned[i], sizeof(warned[i]), "%s", nic->name);
      break;
    }
  }
  LOG_WARN("%s", text);
}

/* With `opening` held. */
static struct rdma_device *open_new(const struct nic *nic, bool *is_there, char why[RDMA_WHY_MAX]) {
  const struct rdma_sysfs_port *port = find_port(nic, is_there, why);
  if (!port) {
    return NULL;
  }
  struct rdma_device *device = rdma_context_open(port, nic, &chosen.settings, why);
  if (device) {
    warn_of_settings(port, nic);
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
  case IBV_EVENT_GID_CHANGE:
  case IBV_EVENT_LID_CHANGE:
  case IBV_EVENT_PKEY_CHANGE:
    if (event->element.port_num == device->port.port) {
      atomic_store(&device->is_stale, true);
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

void rdma_device_check_all(void) {
  pthread_mutex_lock(&lock);
  for (struct rdma_device *it = devices; it; it = it->next) {
    take_events(it);
    if (it->has_entry && !rdma_context_has_entry(it)) {
      rdma_device_lose(it, "it is being removed");
    }
  }
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
      if (!atomic_load(&it->is_lost) && !atomic_load(&it->is_stale) &&
          (!must_be_attached || atomic_load(&it->is_attached))) {
        return it;
      }
    }
  }
  return NULL;
}

static struct refusal *find_refusal(const char *nic) {
  for (int i = 0; i < REFUSALS_MAX; i++) {
    if (!strcmp(refusals[i].nic, nic)) {
      return &refusals[i];
    }
  }
  return NULL;
}

static void refuse(const char *nic, const char *why, bool has_port, uint64_t asked_ns) {
  uint64_t now_ns = clock_now_ns(), pause_ns = RDMA_REFUSAL_FACTOR * (now_ns - asked_ns);
  pause_ns = pause_ns < RDMA_REFUSAL_NS ? RDMA_REFUSAL_NS : pause_ns;
  pause_ns = pause_ns > RDMA_REFUSAL_MOST_NS ? RDMA_REFUSAL_MOST_NS : pause_ns;
  struct refusal *refusal = find_refusal(nic);
  if (!refusal && current.settings.is_wanted) {
    LOG_WARN("STRATUS_RDMA=on, but %s falls back to TCP: %s", nic, why);
  }
  refusal = refusal ? refusal : &refusals[next_refusal++ % REFUSALS_MAX];
  snprintf(refusal->nic, sizeof(refusal->nic), "%s", nic);
  snprintf(refusal->why, sizeof(refusal->why), "%s", why);
  refusal->has_port = has_port;
  refusal->until_ns = now_ns + pause_ns;
}

void rdma_device_refuse(const struct nic *nic, const char *why) {
  pthread_mutex_lock(&lock);
  refuse(nic->name, why, true, clock_now_ns());
  pthread_mutex_unlock(&lock);
}

bool rdma_device_may_come(const struct nic *nic) {
  pthread_mutex_lock(&lock);
  const struct refusal *refusal = find_refusal(nic->name);
  bool may_come = refusal && refusal->has_port;
  pthread_mutex_unlock(&lock);
  return may_come;
}

/* NULL: why has the reason, if one is known. */
static struct rdma_device *find_and_hold(const struct nic *nic, bool must_be_attached,
                                         char why[RDMA_WHY_MAX]) {
  why[0] = '\0';
  pthread_mutex_lock(&lock);
  const struct configuration *now = configured();
  struct rdma_device *device = find_open(nic, must_be_attached);
  const struct refusal *refusal = find_refusal(nic->name);
  if (device) {
    device->holders++;
  } else if (now->settings.is_off) {
    snprintf(why, RDMA_WHY_MAX, "%s", now->settings.off_why);
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
    bool is_there;
    pthread_mutex_lock(&lock);
    chosen = *configured();
    pthread_mutex_unlock(&lock);
    device = open_new(nic, &is_there, why);
    pthread_mutex_lock(&lock);
    if (device) {
      device->holders = 1;
      device->next = devices;
      devices = device;
    } else {
      refuse(nic->name, why, is_there, asked_ns);
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
    rdma_context_close(device);
  }
}

static bool close_left(struct rdma_job *job) {
  rdma_context_close(LIST_ENTRY(job, struct rdma_device, closing));
  return true;
}

void rdma_device_release(struct rdma_device *device) {
  if (leave(device)) {
    device->closing.run = close_left;
    rdma_worker_submit(RDMA_QUEUE_DESTROY, NULL, &device->closing);
  }
}
