/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and their asynchronous events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/fake_verbs_state.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise) {
  return value ? value : otherwise;
}

/* ---- contexts ---- */

struct fake_context *fake_context_of(struct ibv_context *context) {
  return (struct fake_context *)context; /* base is its first member */
}

static struct ibv_context *open_device(struct ibv_device *base) {
  struct fake_device *device = (struct fake_device *)base;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_OPEN_DEVICE);
  error = device->is_removed ? ENODEV : error;
  struct fake_context *context = error ? NULL : calloc(1, sizeof(*context));
  int fd = context ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;
  if (fd < 0) {
    free(context);
    context = NULL;
    errno = error ? error : errno;
  } else {
    context->device = device;
    context->base.device = base;
    context->base.async_fd = fd;
    context->base.cmd_fd = -1;
    context->base.num_comp_vectors = 1;
    context->base.ops.poll_cq = fake_poll_cq;
    context->base.ops.req_notify_cq = fake_req_notify_cq;
    context->base.ops.post_send = fake_post_send;
    context->base.ops.post_recv = fake_post_recv;
    context->next = fake.contexts;
    fake.contexts = context;
    fake.counts.contexts++;
  }
  pthread_mutex_unlock(&fake.lock);
  return context ? &context->base : NULL;
}

/* The kernel takes back a protection domain that nobody could give back before. */
static void drop_domains(const struct ibv_context *base) {
  for (struct fake_pd **place = &fake.pds; *place;) {
    struct fake_pd *pd = *place;
    if (pd->base.context != base) {
      place = &pd->next;
      continue;
    }
    if (pd->users) {
      fake_fatal("a context is closed while queue pairs or registrations of it are in use");
    }
    *place = pd->next;
    fake.counts.pds--;
    free(pd);
  }
}

static int close_device(struct ibv_context *base) {
  pthread_mutex_lock(&fake.lock);
  drop_domains(base);
  struct fake_context **place = &fake.contexts;
  while (*place && *place != fake_context_of(base)) {
    place = &(*place)->next;
  }
  if (!*place) {
    fake_fatal("a context is closed twice");
  }
  struct fake_context *context = *place;
  *place = context->next;
  fake.counts.contexts--;
  pthread_mutex_unlock(&fake.lock);
  close(context->base.async_fd);
  free(context);
  return 0;
}

static int query_device(struct ibv_context *base, struct ibv_device_attr *out) {
  pthread_mutex_lock(&fake.lock);
  const struct fake_device *device = fake_context_of(base)->device;
  const struct fake_hca *hca = device->hca;
  int error = fake_call_fault(FAKE_QUERY_DEVICE);
  error = device->is_removed ? EIO : error;
  memset(out, 0, sizeof(*out));
  if (!error) {
    out->vendor_id = hca->vendor_id;
    out->max_sge = (int)or_default(hca->max_send_sge, 16);
  }
  pthread_mutex_unlock(&fake.lock);
  return error;
}

static int query_port(struct ibv_context *base, uint8_t port, struct ibv_port_attr *out) {
  pthread_mutex_lock(&fake.lock);
  const struct fake_device *device = fake_context_of(base)->device;
  int error = fake_call_fault(FAKE_QUERY_PORT);
  error = device->is_removed ? EIO : port != 1 ? EINVAL : error;
  if (!error) {
    out->state = device->is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    out->link_layer =
        device->hca->is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  }
  pthread_mutex_unlock(&fake.lock);
  return error;
}

/* ---- events ---- */

void fake_context_push(struct fake_context *context, enum ibv_event_type type, struct ibv_qp *qp,
                       struct ibv_cq *cq) {
  if (context->event_count == FAKE_EVENTS_MAX) {
    fake_fatal("nobody reads the events of %s", context->base.device->name);
  }
  unsigned place = (context->event_head + context->event_count++) % FAKE_EVENTS_MAX;
  struct ibv_async_event *event = &context->events[place];
  memset(event, 0, sizeof(*event));
  event->event_type = type;
  if (qp) {
    event->element.qp = qp;
  } else if (cq) {
    event->element.cq = cq;
  } else {
    event->element.port_num = 1;
  }
  eventfd_write(context->base.async_fd, 1);
}

static bool is_about_qp(enum ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR;
}

/* What nobody has fetched goes with the queue pair. */
void fake_context_forget(struct fake_context *context, const struct ibv_qp *qp) {
  unsigned kept = 0, count = context->event_count;
  for (unsigned i = 0; i < count; i++) {
    struct ibv_async_event event = context->events[(context->event_head + i) % FAKE_EVENTS_MAX];
    if (!is_about_qp(event.event_type) || event.element.qp != qp) {
      context->events[(context->event_head + kept++) % FAKE_EVENTS_MAX] = event;
      continue;
    }
    uint64_t one;
    if (read(context->base.async_fd, &one, sizeof(one)) != sizeof(one)) {
      fake_fatal("an event was fetched while its queue pair was destroyed");
    }
  }
  context->event_count = kept;
}

static int get_async_event(struct ibv_context *base, struct ibv_async_event *event) {
  uint64_t one;
  if (read(base->async_fd, &one, sizeof(one)) != sizeof(one)) {
    return -1;
  }
  pthread_mutex_lock(&fake.lock);
  struct fake_context *context = fake_context_of(base);
  *event = context->events[context->event_head];
  context->event_head = (context->event_head + 1) % FAKE_EVENTS_MAX;
  context->event_count--;
  if (is_about_qp(event->event_type)) {
    ((struct fake_qp *)event->element.qp)->unacknowledged++;
  }
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

static void ack_async_event(struct ibv_async_event *event) {
  if (is_about_qp(event->event_type)) {
    pthread_mutex_lock(&fake.lock);
    ((struct fake_qp *)event->element.qp)->unacknowledged--;
    pthread_cond_broadcast(&fake.is_acknowledged);
    pthread_mutex_unlock(&fake.lock);
  }
}

/* ---- words ---- */

static const char *wc_status_str(enum ibv_wc_status status) {
  return status == IBV_WC_SUCCESS ? "success" : "error";
}

static const char *event_type_str(enum ibv_event_type type) {
  return type == IBV_EVENT_PORT_ERR ? "port error" : "event";
}

static const char *port_state_str(enum ibv_port_state state) {
  return state == IBV_PORT_ACTIVE ? "active" : state == IBV_PORT_DOWN ? "down" : "other";
}

static int fork_init(void) {
  return 0;
}

void fake_verbs_fill_contexts(struct verbs_api *api) {
  api->open_device = open_device;
  api->close_device = close_device;
  api->query_device = query_device;
  api->query_port = query_port;
  api->get_async_event = get_async_event;
  api->ack_async_event = ack_async_event;
  api->wc_status_str = wc_status_str;
  api->event_type_str = event_type_str;
  api->port_state_str = port_state_str;
  api->fork_init = fork_init;
}
