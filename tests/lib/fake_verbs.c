/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the fake provider, its faults and its time. */
#include "tests/lib/fake_verbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/random.h"
#include "tests/lib/fake_verbs_state.h"

#define FAKE_CM(name, since) .name = fake_##name,
#define FAKE_VERBS(name, since, is_required) .name = fake_##name,

struct fake_state fake = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .has_work = PTHREAD_COND_INITIALIZER,
  .may_go = PTHREAD_COND_INITIALIZER,
};

void fake_fatal(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "fake_verbs: ");
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  abort();
}

static void take_lock(void) {
  pthread_mutex_lock(&fake.lock);
}

static void drop_lock(void) {
  pthread_mutex_unlock(&fake.lock);
}

/* ---- calls ---- */

int fake_call_fault(enum fake_call call) {
  if (fake.called) {
    fake.called(call);
  }
  while (fake.calls[call].is_held) {
    fake.held++;
    pthread_cond_wait(&fake.may_go, &fake.lock);
    fake.held--;
  }
  if (fake.calls[call].countdown && --fake.calls[call].countdown == 0) {
    return fake.calls[call].error;
  }
  return fake.calls[call].error_always;
}

int fake_begin(enum fake_call call) {
  take_lock();
  return fake_call_fault(call);
}

int fake_begin_on(const struct ibv_context *context, enum fake_call call) {
  int error = fake_begin(call);
  return fake_device_of(context)->is_removed ? EIO : error;
}

int fake_end(int error) {
  drop_lock();
  errno = error;
  return error;
}

/* ---- devices ---- */

int fake_query_device(struct ibv_context *context, struct ibv_device_attr *out) {
  int error = fake_begin_on(context, FAKE_QUERY_DEVICE);
  *out = (struct ibv_device_attr){ .vendor_id = fake_device_of(context)->hca->vendor_id };
  return fake_end(error);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out) {
  const struct fake_device *device = fake_device_of(context);
  int error = fake_begin_on(context, FAKE_QUERY_PORT);
  out->state = device->is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out->link_layer =
      device->hca->is_infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return fake_end(port == 1 ? error : EINVAL);
}

/* ---- contexts, for events ---- */

struct ibv_context *fake_open_device(struct ibv_device *base) {
  struct fake_device *device = (struct fake_device *)base;
  int error = fake_begin_on(&device->context, FAKE_OPEN_DEVICE);
  struct fake_context *context = error ? NULL : calloc(1, sizeof(*context));
  if (context) {
    context->base = device->context;
    context->base.cmd_fd = -1;
    context->base.async_fd = eventfd(0, EFD_CLOEXEC);
    context->next = fake.contexts;
    fake.contexts = context;
    fake.counts.contexts++;
  }
  fake_end(error);
  return context ? &context->base : NULL;
}

int fake_close_device(struct ibv_context *base) {
  struct fake_context **place = &fake.contexts;
  take_lock();
  while (&(*place)->base != base) {
    place = &(*place)->next;
  }
  struct fake_context *context = *place;
  *place = context->next;
  fake.counts.contexts--;
  close(base->async_fd);
  free(context);
  return fake_end(0);
}

int fake_get_async_event(struct ibv_context *base, struct ibv_async_event *event) {
  eventfd_t count;
  if (eventfd_read(base->async_fd, &count) != 0) {
    return -1;
  }
  take_lock();
  *event = (struct ibv_async_event){ .event_type = ((struct fake_context *)base)->event,
                                     .element.port_num = 1 };
  return fake_end(0);
}

void fake_ack_async_event(struct ibv_async_event *event) {
}

static void tell(const struct fake_device *device, enum ibv_event_type type) {
  for (struct fake_context *it = fake.contexts; it; it = it->next) {
    if (fake_device_of(&it->base) == device) {
      it->event = type;
      eventfd_write(it->base.async_fd, 1);
    }
  }
}

static struct fake_device *find(const char *name) {
  for (unsigned i = 0; i < fake.device_count; i++) {
    if (!fake.devices[i]->is_removed && !strcmp(fake.devices[i]->base.name, name)) {
      return fake.devices[i];
    }
  }
  return NULL;
}

static struct fake_device *find_or_fail(const char *name) {
  struct fake_device *device = find(name);
  if (!device) {
    fake_fatal("there is no device %s", name);
  }
  return device;
}

void fake_verbs_remove(const char *name) {
  take_lock();
  struct fake_device *device = find_or_fail(name);
  device->is_removed = true;
  device->is_up = false;
  for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    if (fake_device_of(qp->base.context) == device && qp->state != IBV_QPS_RESET) {
      fake_qp_break(qp);
    }
  }
  tell(device, IBV_EVENT_DEVICE_FATAL);
  fake_cm_remove(device);
  drop_lock();
}

void fake_verbs_set_port(const char *name, bool is_up) {
  take_lock();
  struct fake_device *device = find_or_fail(name);
  device->is_up = is_up;
  tell(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  drop_lock();
}

/* ---- words ---- */

const char *fake_wc_status_str(enum ibv_wc_status status) {
  return status == IBV_WC_SUCCESS ? "success" : "error";
}

const char *fake_event_type_str(enum ibv_event_type type) {
  return type == IBV_EVENT_PORT_ERR ? "port error" : "event";
}

const char *fake_port_state_str(enum ibv_port_state state) {
  return state == IBV_PORT_ACTIVE ? "active" : "down";
}

int fake_fork_init(void) {
  return 0;
}

/* ---- faults ---- */

void fake_verbs_fail_call(enum fake_call call, unsigned nth, int error) {
  take_lock();
  fake.calls[call].countdown = nth;
  fake.calls[call].error = error;
  drop_lock();
}

void fake_verbs_fail_calls(enum fake_call call, int error) {
  take_lock();
  fake.calls[call].error_always = error;
  drop_lock();
}

bool fake_verbs_heal_calls(void) {
  bool have_all_failed = true;
  take_lock();
  for (int i = 0; i < FAKE_CALLS; i++) {
    have_all_failed = have_all_failed && fake.calls[i].countdown == 0;
    fake.calls[i].countdown = 0;
    fake.calls[i].error_always = 0;
    fake.calls[i].is_held = false; /* or the end of a test that has failed would wait for them */
  }
  pthread_cond_broadcast(&fake.may_go);
  drop_lock();
  return have_all_failed;
}

bool fake_work_fault(enum fake_work work, struct fake_work_fault *hit) {
  struct fake_work_fault *fault = &fake.work[work];
  bool is_hit = fault->countdown && --fault->countdown == 0;
  *hit = is_hit ? *fault : *hit;
  return is_hit;
}

void fake_verbs_fail_work(enum fake_work work, unsigned nth, enum ibv_wc_status status,
                          bool is_delivered) {
  take_lock();
  fake.work[work] = (struct fake_work_fault){ nth, status, is_delivered };
  drop_lock();
}

void fake_verbs_change_cm_event(enum rdma_cm_event_type type, int becomes) {
  take_lock();
  fake.cm_fault = (struct fake_cm_fault){ true, type, becomes };
  drop_lock();
}

void fake_verbs_garble_cm(bool is_on) {
  take_lock();
  fake.is_cm_garbled = is_on;
  drop_lock();
}

void fake_verbs_hold_calls(enum fake_call call, bool is_held) {
  take_lock();
  fake.calls[call].is_held = is_held;
  pthread_cond_broadcast(&fake.may_go);
  drop_lock();
}

unsigned fake_verbs_held(void) {
  take_lock();
  unsigned held = fake.held;
  drop_lock();
  return held;
}

void fake_verbs_on_call(fake_called_fn *called) {
  take_lock();
  fake.called = called;
  drop_lock();
}

/* ---- time ---- */

/* A little work, then a moment in which others may post, poll or destroy. */
static void *work(void *unused) {
  take_lock();
  while (!fake.is_thread_stopping) {
    uint64_t draw = random_next(&fake.random);
    if (fake_work_some(1 + (unsigned)(draw % 4)) == 0) {
      pthread_cond_wait(&fake.has_work, &fake.lock);
    }
    drop_lock();
    usleep((unsigned)(draw >> 32 & 63));
    take_lock();
  }
  drop_lock();
  return NULL;
}

void fake_verbs_thread(bool is_on) {
  take_lock();
  bool was_on = fake.has_thread;
  fake.has_thread = is_on;
  fake.is_thread_stopping = !is_on;
  pthread_cond_signal(&fake.has_work);
  drop_lock();
  if (is_on && !was_on && pthread_create(&fake.thread, NULL, work, NULL)) {
    fake_fatal("no thread");
  }
  if (!is_on && was_on) {
    pthread_join(fake.thread, NULL);
    take_lock();
    fake_work_all();
    drop_lock();
  }
}

/* ---- life ---- */

void fake_verbs_add(const struct fake_hca *hca) {
  struct fake_device *device = calloc(1, sizeof(*device));
  take_lock();
  if (!device || fake.device_count == FAKE_DEVICES_MAX || find(hca->name)) {
    fake_fatal("cannot add device %s", hca->name);
  }
  device->hca = hca;
  device->is_up = !hca->is_down;
  device->base.transport_type = hca->is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  snprintf(device->base.name, sizeof(device->base.name), "%s", hca->name);
  device->context = (struct ibv_context){
    .device = &device->base,
    .cmd_fd = eventfd(0, EFD_CLOEXEC),
    .async_fd = -1,
    .ops = { .poll_cq = fake_poll_cq,
             .req_notify_cq = fake_req_notify_cq,
             .post_send = fake_post_send,
             .post_recv = fake_post_recv },
  };
  fake.devices[fake.device_count++] = device;
  drop_lock();
}

const struct verbs_api *fake_verbs_api(void) {
  return &fake.api;
}

struct fake_counts fake_verbs_counts(void) {
  take_lock();
  struct fake_counts counts = fake.counts;
  for (const struct fake_mr *mr = fake.mrs; mr; mr = mr->next) {
    counts.remote_mrs += (mr->access & IBV_ACCESS_REMOTE_WRITE) != 0;
  }
  for (const struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    counts.remote_qps += (qp->access & IBV_ACCESS_REMOTE_WRITE) != 0;
  }
  drop_lock();
  return counts;
}

void fake_verbs_start(void) {
  if (fake.is_started) {
    fake_fatal("started twice");
  }
  fake.is_started = true;
  fake.next_key = 0x1000;
  fake.next_qp_num = 0x100;
  fake.api = (struct verbs_api){ .query_port = query_port,
                                 RDMACM_FUNCTIONS(FAKE_CM) VERBS_FUNCTIONS(FAKE_VERBS) };
  verbs_api_replace(&fake.api, NULL);
}

void fake_verbs_stop(void) {
  fake_verbs_thread(false);
  verbs_api_replace(NULL, NULL);
  const struct fake_counts *left = &fake.counts;
  if (left->contexts || left->pds || left->mrs || left->channels || left->cqs || left->qps ||
      left->cm_channels || left->cm_ids) {
    fake_fatal("left behind: %u contexts, %u domains, %u registrations, %u channels, %u completion "
               "queues, %u "
               "queue pairs; %u channels and %u identifiers of librdmacm",
               left->contexts, left->pds, left->mrs, left->channels, left->cqs, left->qps,
               left->cm_channels, left->cm_ids);
  }
  for (unsigned i = 0; i < fake.device_count; i++) {
    close(fake.devices[i]->context.cmd_fd);
    free(fake.devices[i]);
  }
  fake.device_count = 0;
  memset(fake.calls, 0, sizeof(fake.calls));
  memset(fake.work, 0, sizeof(fake.work));
  fake.cm_fault.is_set = false;
  fake.is_cm_garbled = false;
  fake.counts = (struct fake_counts){ 0 };
  fake.is_started = false;
}
