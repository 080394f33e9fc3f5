/* SPDX-License-Identifier: Apache-2.0 */
/* librdmacm of the fake provider: identifiers find devices by the addresses among their GIDs, and
 * each other by address and port; what the kernel would do later is an event at once. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/fake_verbs_state.h"

enum { DATA_BYTES = 56 }; /* of a request over InfiniBand; told padded with zeros */

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

struct fake_cm_id *fake_cm_ids;
static uint16_t last_port = 20000;

static struct fake_cm_channel *channel_of(struct rdma_event_channel *channel) {
  return (struct fake_cm_channel *)channel; /* the same */
}

int fake_cm_done(int error) {
  pthread_mutex_unlock(&fake.lock);
  errno = error;
  return error ? -1 : 0;
}

/* ---- events ---- */

static void free_id(struct fake_cm_id *id);

/* Returns the type that it has now, or FAKE_CM_NOTHING. */
static int change(enum rdma_cm_event_type type) {
  for (unsigned i = 0; i < FAKE_FAULTS_MAX; i++) {
    struct fake_cm_fault *fault = &fake.cm_faults[i];
    if (fault->times && fault->type == type) {
      fault->times--;
      return fault->becomes;
    }
  }
  return (int)type;
}

static void garble(struct fake_cm_event *event) {
  if (fake.cm_garbled) {
    fake.cm_garbled--;
    memset(event->data, 0xff, sizeof(event->data));
    /* Sometimes there is none at all. */
    event->base.param.conn.private_data = fake.cm_garbled % 2 ? event->data : NULL;
    event->base.param.conn.private_data_len = fake.cm_garbled % 2 ? DATA_BYTES : 0;
  }
}

void fake_cm_push(struct fake_cm_id *owner, struct fake_cm_id *about, enum rdma_cm_event_type type,
                  int status, const struct rdma_conn_param *told) {
  int becomes = change(type);
  struct fake_cm_event *event = calloc(1, sizeof(*event));
  struct fake_cm_event **place = &channel_of(owner->base.channel)->first;
  if (becomes == FAKE_CM_NOTHING || !event) {
    free(event);
    if (owner != about) { /* a request that nobody will ever see */
      about->peer->peer = NULL;
      about->peer = NULL;
      free_id(about);
    }
    return;
  }
  event->owner = owner;
  event->base.id = &about->base;
  event->base.listen_id = owner != about ? &owner->base : NULL;
  event->base.event = (enum rdma_cm_event_type)becomes;
  event->base.status = becomes == (int)type ? status : -EIO;
  if (told) {
    event->base.param.conn = *told;
    event->base.param.conn.private_data = event->data;
    event->base.param.conn.private_data_len = DATA_BYTES;
    memcpy(event->data, told->private_data, told->private_data_len);
    garble(event);
  }
  while (*place) {
    place = &(*place)->next;
  }
  *place = event;
  eventfd_write(owner->base.channel->fd, 1);
}

static int get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event) {
  uint64_t one;
  pthread_mutex_lock(&fake.lock);
  if (fake_cm_done(fake_call_fault(FAKE_CM_EVENT)) != 0) {
    return -1;
  }
  if (read(base->fd, &one, sizeof(one)) != sizeof(one)) {
    return -1;
  }
  pthread_mutex_lock(&fake.lock);
  struct fake_cm_event *first = channel_of(base)->first;
  channel_of(base)->first = first->next;
  first->owner->unacknowledged++;
  *event = &first->base;
  return fake_cm_done(0);
}

static int ack_cm_event(struct rdma_cm_event *base) {
  struct fake_cm_event *event = (struct fake_cm_event *)base;
  pthread_mutex_lock(&fake.lock);
  event->owner->unacknowledged--;
  free(event);
  return fake_cm_done(0);
}

static const char *event_str(enum rdma_cm_event_type type) {
  static const char *const names[] = {
    "ADDR_RESOLVED",   "ADDR_ERROR",       "ROUTE_RESOLVED", "ROUTE_ERROR",
    "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",  "UNREACHABLE",
    "REJECTED",        "ESTABLISHED",      "DISCONNECTED",   "DEVICE_REMOVAL",
  };
  return (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : "other";
}

/* ---- channels and identifiers ---- */

static struct rdma_event_channel *create_event_channel(void) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_CHANNEL);
  struct fake_cm_channel *channel = error ? NULL : calloc(1, sizeof(*channel));
  if (channel) {
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    fake.counts.cm_channels++;
  }
  fake_cm_done(error);
  return channel ? &channel->base : NULL;
}

static void destroy_event_channel(struct rdma_event_channel *base) {
  pthread_mutex_lock(&fake.lock);
  if (channel_of(base)->first) {
    fake_fatal("an event channel is destroyed before its identifiers");
  }
  fake.counts.cm_channels--;
  pthread_mutex_unlock(&fake.lock);
  close(base->fd);
  free(base);
}

struct fake_cm_id *fake_cm_new_id(struct rdma_event_channel *channel) {
  struct fake_cm_id *id = calloc(1, sizeof(*id));
  if (id) {
    id->base.channel = channel;
    id->base.ps = RDMA_PS_TCP;
    id->psn = 0x777u + last_port++;
    id->next = fake_cm_ids;
    fake_cm_ids = id;
    fake.counts.cm_ids++;
  }
  return id;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                     enum rdma_port_space space) {
  (void)context;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ID);
  struct fake_cm_id *id = error || space != RDMA_PS_TCP ? NULL : fake_cm_new_id(channel);
  *out = id ? &id->base : NULL;
  return fake_cm_done(id ? 0 : error ? error : EINVAL);
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
      free_id(fake_cm_id_of(event->base.id));
    }
    free(event);
  }
}

static void free_id(struct fake_cm_id *id) {
  struct fake_cm_id **place = &fake_cm_ids;
  forget_events(id);
  while (*place && *place != id) {
    place = &(*place)->next;
  }
  if (!*place || id->unacknowledged) {
    fake_fatal(
        "an identifier is destroyed twice, or with events not acknowledged: the real library "
        "waits forever");
  }
  if (id->peer) {
    id->peer->peer = NULL;
    bool was_connected = id->is_accepted || id->peer->is_accepted;
    fake_cm_push(id->peer, id->peer,
                 was_connected ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED,
                 was_connected ? 0 : FAKE_CM_BY_CONSUMER, NULL);
  }
  *place = id->next;
  fake.counts.cm_ids--;
  free(id);
}

static int destroy_id(struct rdma_cm_id *id) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_DESTROY_ID);
  if (error) {
    return fake_cm_done(error);
  }
  free_id(fake_cm_id_of(id));
  return fake_cm_done(0);
}

/* ---- addresses ---- */

static void make_gid(const struct sockaddr_storage *address, union ibv_gid *gid) {
  memset(gid, 0, sizeof(*gid));
  if (address->ss_family == AF_INET6) {
    memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
  } else {
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
  }
}

struct fake_device *fake_cm_find_device(const struct sockaddr_storage *address) {
  union ibv_gid gid;
  make_gid(address, &gid);
  for (unsigned i = 0; i < fake.device_count; i++) {
    struct fake_device *device = fake.devices[i];
    for (uint8_t j = 0; j < FAKE_ADDRESSES_MAX && !device->is_removed; j++) {
      if (!memcmp(&device->gids[j], &gid, sizeof(gid))) {
        return device;
      }
    }
  }
  return NULL;
}

void fake_cm_set_device(struct fake_cm_id *id) {
  id->device = fake_cm_find_device(&id->at);
  if (id->device) {
    id->context.device = &id->device->base;
    id->base.verbs = &id->context;
    id->base.port_num = 1;
  }
}

/* Port and address; in6's and in's ports lie at the same place. */
static void set_address(struct sockaddr_storage *to, const struct sockaddr *from) {
  memcpy(to, from,
         from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

static __be16 *port_of(struct sockaddr_storage *address) {
  return (__be16 *)&((struct sockaddr_in *)address)->sin_port;
}

static int bind_addr(struct rdma_cm_id *base, struct sockaddr *address) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_BIND);
  set_address(&id->at, address);
  fake_cm_set_device(id);
  *port_of(&id->at) = htobe16(last_port++);
  return fake_cm_done(error ? error : id->device ? 0 : ENODEV);
}

static int listen_id(struct rdma_cm_id *id, int backlog) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_LISTEN);
  fake_cm_id_of(id)->is_listening = !error && backlog > 0;
  return fake_cm_done(error);
}

static __be16 get_src_port(struct rdma_cm_id *id) {
  return *port_of(&fake_cm_id_of(id)->at);
}

static int resolve_addr(struct rdma_cm_id *base, struct sockaddr *source,
                        struct sockaddr *destination, int timeout_ms) {
  struct fake_cm_id *id = fake_cm_id_of(base);
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ADDRESS);
  if (!error && timeout_ms > 0) {
    set_address(&id->at, source);
    set_address(&id->target, destination);
    fake_cm_set_device(id);
    bool is_found = id->device && fake_cm_find_device(&id->target);
    fake_cm_push(id, id, is_found ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
                 is_found ? 0 : -ENODEV, NULL);
  }
  return fake_cm_done(error);
}

static int resolve_route(struct rdma_cm_id *id, int timeout_ms) {
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_ROUTE);
  if (!error && timeout_ms > 0) {
    fake_cm_push(fake_cm_id_of(id), fake_cm_id_of(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL);
  }
  return fake_cm_done(error);
}

static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes) {
  (void)id;
  (void)value;
  bool is_known = level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS && bytes == 1;
  pthread_mutex_lock(&fake.lock);
  int error = fake_call_fault(FAKE_CM_OPTION);
  return fake_cm_done(error ? error : is_known ? 0 : ENOSYS);
}

/* ---- for fake_verbs ---- */

unsigned fake_cm_connected(void) {
  unsigned connected = 0;
  for (const struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
    connected += id->peer && (id->is_accepted || id->peer->is_accepted);
  }
  return connected;
}

void fake_cm_remove(const struct fake_device *device) {
  for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
    if (id->device == device) {
      fake_cm_push(id, id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
    }
  }
}

void fake_verbs_cm_event(enum rdma_cm_event_type type) {
  pthread_mutex_lock(&fake.lock);
  for (struct fake_cm_id *id = fake_cm_ids; id; id = id->next) {
    fake_cm_push(id, id, type, 0, NULL);
  }
  pthread_mutex_unlock(&fake.lock);
}

static struct rdmacm_api fake_cm = {
  .create_event_channel = create_event_channel,
  .destroy_event_channel = destroy_event_channel,
  .create_id = create_id,
  .destroy_id = destroy_id,
  .bind_addr = bind_addr,
  .resolve_addr = resolve_addr,
  .resolve_route = resolve_route,
  .listen = listen_id,
  .get_cm_event = get_cm_event,
  .ack_cm_event = ack_cm_event,
  .event_str = event_str,
  .get_src_port = get_src_port,
  .set_option = set_option,
};

void fake_verbs_fill_cm(struct verbs_api *api) {
  fake_cm_fill_connecting(&fake_cm);
  api->cm = &fake_cm;
}
