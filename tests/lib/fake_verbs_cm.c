/* SPDX-License-Identifier: Apache-2.0 */
/* librdmacm of the fake provider: identifiers find devices by their addresses, and each other by
 * address and port; what the kernel would do later is an event at once. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/fake_verbs_state.h"

enum { DATA_BYTES = 56 }; /* of a request over InfiniBand; told padded with zeros */
enum {
  KERNEL_BITS = 0xE00000
}; /* the kernel's own in masks for RoCE; fake_qp_modify refuses them */

struct fake_cm_id {
  struct rdma_cm_id base; /* the first member, as below */
  struct fake_cm_id *next;
  struct sockaddr_storage at, target; /* with ports */
  bool is_listening, is_accepted;
  struct fake_cm_id *peer;
  uint32_t number; /* of the queue pair */
  unsigned unacknowledged;
};

struct fake_cm_event {
  struct rdma_cm_event base;
  struct fake_cm_event *next;
  struct fake_cm_id *owner; /* whose destruction waits for it */
  uint8_t data[DATA_BYTES];
};

struct fake_cm_channel {
  struct rdma_event_channel base;
  struct fake_cm_event *first;
};

static struct fake_cm_id *ids;
static uint16_t last_port = 20000;

static struct fake_cm_id *id_of(struct rdma_cm_id *id) {
  return (struct fake_cm_id *)id;
}

static struct fake_cm_channel *channel_of(struct rdma_event_channel *channel) {
  return (struct fake_cm_channel *)channel;
}

/* As librdmacm's functions return. */
static int done(int error) {
  return fake_end(error) ? -1 : 0;
}

/* ---- events ---- */

static void free_id(struct fake_cm_id *id);

/* Returns the type that it has now, or FAKE_CM_NOTHING. */
static int change(enum rdma_cm_event_type type) {
  bool is_hit = fake.cm_fault.is_set && fake.cm_fault.type == type;
  fake.cm_fault.is_set &= !is_hit;
  return is_hit ? fake.cm_fault.becomes : (int)type;
}

/* An event on the owner's channel. told: what the other end said with it. */
static void push(struct fake_cm_id *owner, struct fake_cm_id *about, enum rdma_cm_event_type type,
                 const struct rdma_conn_param *told) {
  int becomes = change(type);
  struct fake_cm_event **place = &channel_of(owner->base.channel)->first;
  if (becomes == FAKE_CM_NOTHING) {
    if (owner != about) { /* a request that nobody will ever see */
      about->peer->peer = NULL;
      about->peer = NULL;
      free_id(about);
    }
    return;
  }
  struct fake_cm_event *event = calloc(1, sizeof(*event));
  if (!event) {
    fake_fatal("no memory");
  }
  event->owner = owner;
  event->base.id = &about->base;
  event->base.listen_id = owner != about ? &owner->base : NULL;
  event->base.event = (enum rdma_cm_event_type)becomes;
  event->base.status = becomes == (int)type ? 0 : -EIO;
  if (told) {
    bool is_missing = fake.is_cm_garbled && last_port % 2;
    event->base.param.conn.private_data = is_missing ? NULL : event->data;
    event->base.param.conn.private_data_len = is_missing ? 0 : DATA_BYTES;
    memcpy(event->data, told->private_data, told->private_data_len);
    event->data[0] ^= fake.is_cm_garbled;
  }
  while (*place) {
    place = &(*place)->next;
  }
  *place = event;
  eventfd_write(owner->base.channel->fd, 1);
}

static void push_own(struct fake_cm_id *id, enum rdma_cm_event_type type) {
  push(id, id, type, NULL);
}

int fake_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event) {
  uint64_t one;
  if (done(fake_begin(FAKE_CM_EVENT)) != 0 || read(base->fd, &one, sizeof(one)) != sizeof(one)) {
    return -1;
  }
  pthread_mutex_lock(&fake.lock);
  struct fake_cm_event *first = channel_of(base)->first;
  channel_of(base)->first = first->next;
  first->owner->unacknowledged++;
  *event = &first->base;
  return done(0);
}

int fake_ack_cm_event(struct rdma_cm_event *base) {
  struct fake_cm_event *event = (struct fake_cm_event *)base;
  pthread_mutex_lock(&fake.lock);
  event->owner->unacknowledged--;
  free(event);
  return done(0);
}

const char *fake_event_str(enum rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_DEVICE_REMOVAL ? "DEVICE_REMOVAL" : "other";
}

void fake_cm_remove(const struct fake_device *device) {
  for (struct fake_cm_id *id = ids; id; id = id->next) {
    if (id->base.verbs && fake_device_of(id->base.verbs) == device) {
      push_own(id, RDMA_CM_EVENT_DEVICE_REMOVAL);
    }
  }
}

/* ---- channels and identifiers ---- */

struct rdma_event_channel *fake_create_event_channel(void) {
  int error = fake_begin(FAKE_CM_CHANNEL);
  struct fake_cm_channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (channel) {
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    fake.counts.cm_channels++;
  }
  fake_end(error);
  return channel ? &channel->base : NULL;
}

void fake_destroy_event_channel(struct rdma_event_channel *base) {
  pthread_mutex_lock(&fake.lock);
  if (channel_of(base)->first) {
    fake_fatal("an event channel is destroyed before its identifiers");
  }
  fake.counts.cm_channels--;
  close(base->fd);
  free(base);
  fake_end(0);
}

static struct fake_cm_id *new_id(struct rdma_event_channel *channel, void *context) {
  struct fake_cm_id *id = calloc(1, sizeof(*id));
  if (!id) {
    fake_fatal("no memory");
  }
  id->base.channel = channel;
  id->base.context = context;
  id->next = ids;
  ids = id;
  fake.counts.cm_ids++;
  return id;
}

int fake_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                   enum rdma_port_space space) {
  int error = fake_begin(FAKE_CM_ID);
  *out = error ? NULL : &new_id(channel, context)->base;
  return done(error);
}

/* What nobody has fetched goes with it, also requests that it was asked. */
static void forget_events(struct fake_cm_id *id) {
  struct fake_cm_event **place = &channel_of(id->base.channel)->first;
  while (*place) {
    struct fake_cm_event *event = *place;
    uint64_t one;
    if (event->owner != id) {
      place = &event->next;
      continue;
    }
    *place = event->next;
    if (read(id->base.channel->fd, &one, sizeof(one)) != sizeof(one)) {
      fake_fatal("an event was fetched while its identifier was destroyed");
    }
    if (event->base.listen_id) {
      free_id(id_of(event->base.id));
    }
    free(event);
  }
}

static void free_id(struct fake_cm_id *id) {
  struct fake_cm_id **place = &ids;
  forget_events(id);
  while (*place && *place != id) {
    place = &(*place)->next;
  }
  if (!*place || id->unacknowledged) {
    fake_fatal("an identifier is destroyed twice, or with events not acknowledged: the real "
               "library waits forever");
  }
  if (id->peer) {
    bool was_connected = id->is_accepted || id->peer->is_accepted;
    id->peer->peer = NULL;
    push_own(id->peer, was_connected ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED);
  }
  *place = id->next;
  fake.counts.cm_ids--;
  free(id);
}

int fake_destroy_id(struct rdma_cm_id *id) {
  int error = fake_begin(FAKE_CM_DESTROY_ID);
  if (!error) {
    free_id(id_of(id));
  }
  return done(error);
}

/* ---- addresses ---- */

static bool is_at(const char *text, const struct sockaddr_storage *address) {
  struct in6_addr wanted;
  bool is_ipv6 = address->ss_family == AF_INET6;
  const void *number = is_ipv6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
                               : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
  return text && inet_pton(address->ss_family, text, &wanted) == 1 &&
         !memcmp(&wanted, number, is_ipv6 ? 16 : 4);
}

static struct fake_device *find_device(const struct sockaddr_storage *address) {
  for (unsigned i = 0; i < fake.device_count * FAKE_ADDRESSES_MAX; i++) {
    struct fake_device *device = fake.devices[i / FAKE_ADDRESSES_MAX];
    if (!device->is_removed && is_at(device->hca->addresses[i % FAKE_ADDRESSES_MAX], address)) {
      return device;
    }
  }
  return NULL;
}

/* By its own address. */
static bool set_device(struct fake_cm_id *id) {
  struct fake_device *device = find_device(&id->at);
  id->base.verbs = device ? &device->context : NULL;
  id->base.port_num = 1;
  return device != NULL;
}

static void set_address(struct sockaddr_storage *to, const struct sockaddr *from) {
  memcpy(to, from,
         from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

/* in6's and in's ports lie at the same place. */
static __be16 *port_of(struct sockaddr_storage *address) {
  return (__be16 *)&((struct sockaddr_in *)address)->sin_port;
}

int fake_bind_addr(struct rdma_cm_id *base, struct sockaddr *address) {
  int error = fake_begin(FAKE_CM_BIND);
  set_address(&id_of(base)->at, address);
  bool is_found = set_device(id_of(base));
  *port_of(&id_of(base)->at) = htobe16(last_port++);
  return done(error ? error : is_found ? 0 : ENODEV);
}

int fake_listen(struct rdma_cm_id *id, int backlog) {
  int error = fake_begin(FAKE_CM_LISTEN);
  id_of(id)->is_listening = !error;
  return done(error);
}

__be16 fake_get_src_port(struct rdma_cm_id *id) {
  return *port_of(&id_of(id)->at);
}

int fake_resolve_addr(struct rdma_cm_id *base, struct sockaddr *source,
                      struct sockaddr *destination, int timeout_ms) {
  struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_ADDRESS);
  if (!error) {
    set_address(&id->at, source);
    set_address(&id->target, destination);
    bool is_found = set_device(id) && find_device(&id->target);
    push_own(id, is_found ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR);
  }
  return done(error);
}

int fake_resolve_route(struct rdma_cm_id *id, int timeout_ms) {
  int error = fake_begin(FAKE_CM_ROUTE);
  if (!error) {
    push_own(id_of(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  return done(error);
}

int fake_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes) {
  return done(fake_begin(FAKE_CM_OPTION));
}

/* ---- queue pairs ---- */

static bool is_iwarp(const struct fake_cm_id *id) {
  return fake_is_iwarp(id->base.verbs);
}

static int mask_of(enum ibv_qp_state state) {
  switch (state) {
  case IBV_QPS_INIT:
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  case IBV_QPS_RTR:
    return IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_MIN_RNR_TIMER;
  default:
    return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  }
}

int fake_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attributes, int *mask) {
  const struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_ATTRIBUTES);
  error = error ? error : !id->peer || !find_device(&id->target) ? ENOTCONN : 0;
  if (!error) {
    enum ibv_qp_state state = attributes->qp_state;
    *attributes = (struct ibv_qp_attr){ .qp_state = state, .dest_qp_num = id->peer->number };
    *mask = mask_of(state) | (state == IBV_QPS_RTR ? KERNEL_BITS : 0);
    if (is_iwarp(id)) {
      *mask = state == IBV_QPS_RTS ? 0 : IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
    }
  }
  return done(error);
}

/* As iWARP's drivers, from within. */
static int move_to_ready(struct fake_cm_id *id) {
  struct fake_qp *qp = fake_qp_find(id->number);
  int error = qp ? 0 : EINVAL;
  for (enum ibv_qp_state state = IBV_QPS_RTR; !error && state <= IBV_QPS_RTS; state++) {
    struct ibv_qp_attr attributes = { .qp_state = state, .dest_qp_num = id->peer->number };
    error = fake_qp_modify(qp, &attributes, mask_of(state));
  }
  return error;
}

static bool has_state(uint32_t number, enum ibv_qp_state state) {
  const struct fake_qp *qp = fake_qp_find(number);
  return qp && qp->state == state;
}

/* ---- connecting ---- */

static struct fake_cm_id *find_listener(const struct fake_cm_id *from) {
  struct fake_cm_id *id = ids;
  while (id && !(id->is_listening && !memcmp(&id->at, &from->target, sizeof(id->at)))) {
    id = id->next;
  }
  return id;
}

int fake_connect(struct rdma_cm_id *base, struct rdma_conn_param *told) {
  struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_CONNECT);
  error = error ? error : has_state(told->qp_num, IBV_QPS_INIT) && base->verbs ? 0 : EINVAL;
  if (error) {
    return done(error);
  }
  struct fake_cm_id *listener = find_listener(id);
  const struct fake_device *there = find_device(&id->target);
  id->number = told->qp_num;
  if (!there || !fake_device_of(base->verbs)->is_up || !there->is_up) {
    push_own(id, RDMA_CM_EVENT_UNREACHABLE);
  } else if (!listener) {
    push_own(id, RDMA_CM_EVENT_REJECTED);
  } else {
    struct fake_cm_id *child = new_id(listener->base.channel, listener->base.context);
    child->at = listener->at;
    child->target = id->at;
    set_device(child);
    child->peer = id;
    id->peer = child;
    push(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, told);
  }
  return done(0);
}

int fake_accept(struct rdma_cm_id *base, struct rdma_conn_param *told) {
  struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_ACCEPT);
  bool is_right = has_state(told->qp_num, is_iwarp(id) ? IBV_QPS_INIT : IBV_QPS_RTS);
  error = error ? error : !id->peer ? ENOTCONN : is_right ? 0 : EINVAL;
  id->number = told->qp_num;
  if (!error && is_iwarp(id)) {
    error = move_to_ready(id);
    error = error ? error : move_to_ready(id->peer);
  }
  if (!error) {
    id->is_accepted = true;
    fake.counts.cm_accepted++;
    push(id->peer, id->peer,
         is_iwarp(id) ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, told);
    if (is_iwarp(id)) {
      push_own(id, RDMA_CM_EVENT_ESTABLISHED);
    }
  }
  return done(error);
}

int fake_establish(struct rdma_cm_id *base) {
  struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_ESTABLISH);
  error = error ? error : has_state(id->number, IBV_QPS_RTS) && !is_iwarp(id) ? 0 : EINVAL;
  if (!error && id->peer) {
    push_own(id->peer, RDMA_CM_EVENT_ESTABLISHED);
  }
  return done(error);
}

int fake_reject(struct rdma_cm_id *base, const void *data, uint8_t bytes) {
  struct fake_cm_id *id = id_of(base);
  int error = fake_begin(FAKE_CM_REJECT);
  if (!error && id->peer) {
    push_own(id->peer, RDMA_CM_EVENT_REJECTED);
    id->peer->peer = NULL;
    id->peer = NULL;
    fake.counts.cm_rejected++;
  }
  return done(error);
}
