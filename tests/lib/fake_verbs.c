/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts of the fake provider, its faults and its time. */
#include "tests/lib/fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/random.h"
#include "tests/lib/fake_verbs_state.h"
#include "tests/lib/fault_state.h"

struct fake_state fake = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .has_work = PTHREAD_COND_INITIALIZER,
  .is_acknowledged = PTHREAD_COND_INITIALIZER,
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

/* ---- devices ---- */

struct fake_device *fake_device_find(const char *name) {
  for (unsigned i = 0; i < fake.device_count; i++) {
    if (!fake.devices[i]->is_removed && !strcmp(fake.devices[i]->base.name, name)) {
      return fake.devices[i];
    }
  }
  return NULL;
}

static struct fake_device *find_or_fail(const char *name) {
  struct fake_device *device = fake_device_find(name);
  if (!device) {
    fake_fatal("there is no device %s", name);
  }
  return device;
}

void fake_gid_parse(const char *text, union ibv_gid *gid) {
  struct in_addr ipv4;
  memset(gid, 0, sizeof(*gid));
  if (!text) {
    return;
  }
  if (inet_pton(AF_INET, text, &ipv4) == 1) {
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, &ipv4, sizeof(ipv4));
  } else if (inet_pton(AF_INET6, text, gid->raw) != 1) {
    fake_fatal("%s is no address for a GID", text);
  }
}

void fake_verbs_add(const struct fake_hca *hca) {
  take_lock();
  struct fake_device *device = calloc(1, sizeof(*device));
  if (!device || fake.device_count == FAKE_DEVICES_MAX || fake_device_find(hca->name)) {
    fake_fatal("cannot add device %s", hca->name);
  }
  device->hca = hca;
  device->is_up = !hca->is_down;
  device->base.node_type = hca->is_iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  device->base.transport_type = hca->is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  snprintf(device->base.name, sizeof(device->base.name), "%s", hca->name);
  snprintf(device->base.dev_name, sizeof(device->base.dev_name), "uverbs%u", fake.device_count);
  for (int i = 0; i < FAKE_ADDRESSES_MAX; i++) {
    fake_gid_parse(hca->addresses[i], &device->gids[i]);
  }
  fake.devices[fake.device_count++] = device;
  drop_lock();
}

static void tell_all(struct fake_device *device, enum ibv_event_type type) {
  for (struct fake_context *it = fake.contexts; it; it = it->next) {
    if (it->device == device) {
      fake_context_push(it, type, NULL, NULL);
    }
  }
}

void fake_verbs_remove(const char *name) {
  take_lock();
  struct fake_device *device = find_or_fail(name);
  device->is_removed = true;
  device->is_up = false;
  for (struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    if (fake_context_of(qp->base.context)->device == device && qp->state != IBV_QPS_RESET) {
      fake_qp_break(qp);
    }
  }
  tell_all(device, IBV_EVENT_DEVICE_FATAL);
  fake_cm_remove(device);
  drop_lock();
}

void fake_verbs_set_port(const char *name, bool is_up) {
  take_lock();
  struct fake_device *device = find_or_fail(name);
  device->is_up = is_up;
  tell_all(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
  drop_lock();
}

void fake_verbs_event(const char *name, enum ibv_event_type type, struct ibv_qp *qp) {
  take_lock();
  if (qp) {
    fake_context_push(fake_context_of(qp->context), type, qp, NULL);
  } else {
    tell_all(find_or_fail(name), type);
  }
  drop_lock();
}

/* ---- faults ---- */

int fake_call_fault(enum fake_call call) {
  struct fake_call_fault *fault = &fake.calls[call];
  if (fake.called) {
    fake.called(call);
  }
  while (fault->is_held) {
    fake.held++;
    pthread_cond_wait(&fake.may_go, &fake.lock);
    fake.held--;
  }
  if (fault->countdown && --fault->countdown == 0) {
    return fault->error;
  }
  bool is_polling = call == FAKE_POLL_CQ || call == FAKE_CM_EVENT;
  if (!is_polling && fault_is_due(FAULT_VERBS)) {
    return errno;
  }
  return fault->error_always;
}

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
    fake.calls[i] = (struct fake_call_fault){ .is_held = fake.calls[i].is_held };
  }
  drop_lock();
  return have_all_failed;
}

bool fake_work_fault(struct fake_work_fault *faults, struct fake_work_fault *hit) {
  bool is_hit = false;
  for (int i = 0; i < FAKE_FAULTS_MAX; i++) {
    if (faults[i].countdown && --faults[i].countdown == 0) {
      *hit = faults[i];
      is_hit = true;
    }
  }
  return is_hit;
}

static void add_fault(struct fake_work_fault *faults, struct fake_work_fault fault) {
  take_lock();
  int i = 0;
  while (i < FAKE_FAULTS_MAX && faults[i].countdown) {
    i++;
  }
  if (i == FAKE_FAULTS_MAX) {
    fake_fatal("too many faults at once");
  }
  faults[i] = fault;
  drop_lock();
}

void fake_verbs_fail_send(unsigned nth, enum ibv_wc_status status, bool is_delivered) {
  add_fault(fake.sends, (struct fake_work_fault){ nth, status, is_delivered });
}

void fake_verbs_fail_write(unsigned nth, enum ibv_wc_status status, bool is_delivered) {
  add_fault(fake.writes, (struct fake_work_fault){ nth, status, is_delivered });
}

void fake_verbs_fail_receive(unsigned nth, enum ibv_wc_status status) {
  add_fault(fake.receives, (struct fake_work_fault){ nth, status, false });
}

void fake_verbs_change_cm_events(enum rdma_cm_event_type type, int becomes, unsigned times) {
  take_lock();
  int i = 0;
  while (i < FAKE_FAULTS_MAX && fake.cm_faults[i].times && fake.cm_faults[i].type != type) {
    i++;
  }
  if (i == FAKE_FAULTS_MAX) {
    fake_fatal("too many faults at once");
  }
  fake.cm_faults[i] = (struct fake_cm_fault){ times, type, becomes };
  drop_lock();
}

void fake_verbs_garble_cm(unsigned times) {
  take_lock();
  fake.cm_garbled = times;
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

void fake_verbs_cut(bool is_cut) {
  take_lock();
  fake.is_cut = is_cut;
  drop_lock();
}

/* ---- time ---- */

static unsigned step(unsigned most) {
  unsigned done = 0;
  for (bool has_moved = true; has_moved && done < most;) {
    has_moved = false;
    for (struct fake_qp *qp = fake.qps; qp && done < most; qp = qp->next) {
      bool is_done = fake_work_one(qp);
      done += is_done;
      has_moved |= is_done;
    }
  }
  return done;
}

/* A little work, then a moment in which others may post, poll or destroy. */
static void *work(void *unused) {
  (void)unused;
  take_lock();
  while (!fake.is_thread_stopping) {
    uint64_t draw = random_next(&fake.random);
    if (step(1 + (unsigned)(draw % 4)) == 0) {
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

const struct verbs_api *fake_verbs_api(void) {
  return &fake.api;
}

struct fake_counts fake_verbs_counts(void) {
  take_lock();
  struct fake_counts counts = fake.counts;
  counts.cm_connected = fake_cm_connected();
  for (const struct fake_mr *mr = fake.mrs; mr; mr = mr->next) {
    counts.remote_mrs += (mr->access & IBV_ACCESS_REMOTE_WRITE) != 0;
  }
  for (const struct fake_qp *qp = fake.qps; qp; qp = qp->next) {
    counts.remote_qps += (qp->attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0;
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
  memset(&fake.api, 0, sizeof(fake.api));
  fake_verbs_fill_contexts(&fake.api);
  fake_verbs_fill_objects(&fake.api);
  fake_verbs_fill_queues(&fake.api);
  fake_verbs_fill_cm(&fake.api);
  verbs_api_replace(&fake.api, NULL);
}

void fake_verbs_stop(void) {
  fake_verbs_thread(false);
  verbs_api_restore();
  const struct fake_counts *left = &fake.counts;
  if (left->contexts || left->pds || left->mrs || left->channels || left->cqs || left->qps ||
      left->cm_channels || left->cm_ids) {
    fake_fatal("left behind: %u contexts, %u domains, %u registrations, %u channels, %u completion "
               "queues, %u queue pairs; %u channels and %u identifiers of librdmacm",
               left->contexts, left->pds, left->mrs, left->channels, left->cqs, left->qps,
               left->cm_channels, left->cm_ids);
  }
  for (unsigned i = 0; i < fake.device_count; i++) {
    free(fake.devices[i]);
  }
  fake.device_count = 0;
  memset(fake.calls, 0, sizeof(fake.calls));
  memset(fake.sends, 0, sizeof(fake.sends));
  memset(fake.receives, 0, sizeof(fake.receives));
  memset(fake.writes, 0, sizeof(fake.writes));
  fake.is_cut = false;
  memset(fake.cm_faults, 0, sizeof(fake.cm_faults));
  fake.cm_garbled = 0;
  memset(&fake.counts, 0, sizeof(fake.counts));
  fake.is_started = false;
}
