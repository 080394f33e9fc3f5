/* SPDX-License-Identifier: Apache-2.0 */
/* See setup.h and listener.h. */
#include "net_plugin/setup/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "common/random.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/acceptor.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/setup/setup.h"

/* ---- ports ---- */

struct port {
  struct engine_source source;
  struct engine_timer pause;
  struct sockaddr_storage address;
  int fd;
  struct acceptor acceptor; /* with engine and NIC */
  struct list_node node;
};

static atomic_uint port_count; /* of the process */

static unsigned share(void) {
  uint64_t budget = open_files_limit() / PENDING_PEERS_PART;
  budget = budget < PENDING_PEERS_MAX ? budget : PENDING_PEERS_MAX;
  uint64_t each = budget / atomic_load(&port_count);
  return each > PENDING_PEERS_LEAST ? (unsigned)each : PENDING_PEERS_LEAST;
}

/* ---- no descriptor is left ---- */

/* One descriptor of the process that serves nothing, so that there is one to accept with when the
 * application has all others. -1: it is in use. */
static atomic_int spare = -1;

static void spare_keep(void) {
  if (atomic_load(&spare) < 0) {
    int none = -1, fd = DESCRIPTOR(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (fd >= 0 && !atomic_compare_exchange_strong(&spare, &none, fd)) {
      descriptor_close(fd);
    }
  }
}

/* True: there is one descriptor now, unless another thread takes it. */
static bool spare_use(void) {
  int fd = atomic_exchange(&spare, -1);
  if (fd >= 0) {
    descriptor_close(fd);
  }
  return fd >= 0;
}

struct eviction {
  uint64_t before_ns;
  bool is_done;
};

static void evict(struct engine *engine, void *argument) {
  struct eviction *eviction = argument;
  LIST_FOR_EACH(node, &engine_lists(engine)->ports) {
    struct port *port = LIST_ENTRY(node, struct port, node);
    if (acceptor_evict_oldest(&port->acceptor, eviction->before_ns)) {
      eviction->is_done = true;
      return;
    }
  }
}

/* More engines than there are; while one is being made their number is not known. */
#define ENGINES_LOOKED_AT 256

/* Closes a pending peer of the process that has had its turn, else uses the spare descriptor.
 * Engines that are busy are left out: they accept for themselves. True: accept may succeed now. */
static bool make_room(struct engine *here) {
  struct eviction eviction = { .before_ns = clock_now_ns() - PORT_TURN_NS };
  int error = 0;
  for (unsigned i = 0; i < ENGINES_LOOKED_AT && error != -ENOENT && !eviction.is_done; i++) {
    error = engine_try_visit(here, i, evict, &eviction);
  }
  return eviction.is_done || spare_use();
}

/* ---- the port ---- */

static void pause_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct port *port = LIST_ENTRY(timer, struct port, pause);
  engine_rewatch(port->acceptor.engine, &port->source, EPOLLIN);
}

static void port_pause(struct port *port, uint64_t pause_ns) {
  engine_rewatch(port->acceptor.engine, &port->source, 0);
  engine_timer_set(port->acceptor.engine, &port->pause, clock_now_ns() + pause_ns);
}

static void port_ready(struct engine_source *source, uint32_t events) {
  struct port *port = (struct port *)source;
  (void)events;
  spare_keep();
  for (int i = 0; i < PORT_ACCEPTS_PER_EVENT; i++) {
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    int fd = DESCRIPTOR(
        accept4(port->fd, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0) {
      acceptor_admit(&port->acceptor, fd, &from, share());
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
      char why[OPEN_FILES_TEXT];
      int error = -errno;
      bool is_short = open_files_are_short(error);
      LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS, "%s: cannot accept a connection: %s",
                     port->acceptor.nic.name, open_files_why(error, why));
      if (!is_short || !make_room(port->acceptor.engine)) {
        port_pause(port, is_short ? PORT_TURN_NS : PORT_PAUSE_NS);
        return;
      }
    } /* else: that one died in the queue; the next may be fine */
  }
}

static int port_open(struct engine *engine, const struct nic *nic, struct port **result) {
  struct port *port = calloc(1, sizeof *port);
  if (!port) {
    return -ENOMEM;
  }
  port->source = (struct engine_source){ .ready = port_ready, .fd = -1 };
  port->pause.expired = pause_expired;
  acceptor_init(&port->acceptor, engine, nic);
  int error = port->fd = tcp_socket_listen(nic, &port->address);
  if (nic->advertised.ss_family != AF_UNSPEC) {
    unsigned number = tcp_address_port(&port->address);
    port->address = nic->advertised;
    tcp_address_set_port(&port->address, number);
  }
  if (port->fd >= 0) {
    error = engine_watch(engine, &port->source, port->fd, EPOLLIN);
    if (error) {
      LOG_WARN("cannot listen on %s: %s", nic->name, strerror(-error));
      descriptor_close(port->fd);
    }
  }
  if (error < 0) {
    free(port);
    return error;
  }
  list_push_back(&engine_lists(engine)->ports, &port->node);
  atomic_fetch_add(&port_count, 1);
  spare_keep();
  *result = port;
  return 0;
}

/* A NIC may have got another address. A dial that binds nothing tells none: any of the NIC's. */
static struct port *port_find(struct engine *engine, const struct nic *nic) {
  LIST_FOR_EACH(node, &engine_lists(engine)->ports) {
    struct port *known = LIST_ENTRY(node, struct port, node);
    if (strcmp(known->acceptor.nic.name, nic->name) == 0 &&
        (nic->address.ss_family == AF_UNSPEC ||
         memcmp(&known->acceptor.nic.address, &nic->address, sizeof nic->address) == 0)) {
      return known;
    }
  }
  return NULL;
}

static int port_get(struct engine *engine, const struct nic *nic, struct port **port) {
  engine_assert_locked(engine);
  *port = port_find(engine, nic);
  return *port ? 0 : port_open(engine, nic, port);
}

void listener_for_hello(struct engine *engine, const struct nic *nic,
                        struct wire_address *listens) {
  bool may_open = param_string(PARAM_PORT_RANGE)[0] == '\0' && nic->address.ss_family != AF_UNSPEC;
  struct port *port = port_find(engine, nic);
  memset(listens, 0, sizeof *listens);
  if (port || (may_open && port_open(engine, nic, &port) == 0)) {
    address_to_wire(&port->address, listens);
  }
}

/* ---- listeners ---- */

static void forget(struct listener *listener) {
  list_remove(&listener->node);
  id_tree_remove(&engine_lists(listener->engine)->listener_ids, listener->id);
}

static void listener_free(struct listener *listener) {
  hash_wipe(listener->secret, sizeof listener->secret);
  hash_wipe(listener->handle_key, sizeof listener->handle_key);
  free(listener);
}

/* A NIC that is down has no address to listen on; the others must do. */
static int fill_handle(struct listener *listener, const struct nic *nics, unsigned count,
                       struct handle *handle) {
  memset(handle, 0, sizeof *handle);
  memcpy(handle->listener, listener->id, TOKEN_BYTES);
  memcpy(handle->secret, listener->secret, AUTH_SECRET_BYTES);
  int error = -EADDRNOTAVAIL;
  for (unsigned i = 0; i < count && handle->count < ADDRESSES_MAX; i++) {
    struct port *port;
    error = port_get(listener->engine, &nics[i], &port);
    if (!error) {
      handle->addresses[handle->count] = port->address;
      handle->advertised |= (uint8_t)((nics[i].advertised.ss_family != AF_UNSPEC) << handle->count);
      handle->count++;
    }
  }
  return handle->count ? 0 : error;
}

/* Makes the listener known to this engine. */
static int join(struct listener *listener, struct engine *engine, const struct nic *nics,
                unsigned count, uint8_t bytes[HANDLE_BYTES]) {
  struct handle handle;
  listener->engine = engine;
  engine_lock(engine);
  int error = fill_handle(listener, nics, count, &handle);
  if (!error) {
    error = id_tree_add(&engine_lists(engine)->listener_ids, listener->id);
    if (error) {
      LOG_WARN("cannot listen on %s: %s", nics[0].name, strerror(-error));
    }
  }
  if (!error) {
    if (handle_encode(&handle, bytes) < handle.count) {
      for (unsigned i = 0; i < handle.count; i++) {
        address_to_wire(&handle.addresses[i], &listener->addresses[i]);
      }
    }
    list_push_back(&engine_lists(engine)->listeners, &listener->node);
  }
  engine_unlock(engine);
  hash_wipe(&handle, sizeof handle);
  return error;
}

int listener_open(const struct nic *nics, unsigned count, uint8_t bytes[HANDLE_BYTES],
                  struct listener **result) {
  struct engine *engine;
  struct settings settings;
  int error = protection_check();
  if (!error) {
    error = engine_get(&nics[0], ENGINE_LISTENS, &engine);
  }
  if (error) {
    return error;
  }
  settings_get(count, &settings);
  endpoint_wait(nics, count, settings.wants_encryption); /* the first hello asks for them */
  struct listener *listener = calloc(1, sizeof *listener);
  if (!listener) {
    return -ENOMEM;
  }
  error = random_secret(listener->id, TOKEN_BYTES);
  error = error ? error : random_secret(listener->secret, AUTH_SECRET_BYTES);
  if (error) {
    LOG_WARN("cannot draw a random secret: %s", strerror(-error));
  }
  if (!error) {
    auth_handle_key(listener->secret, listener->handle_key);
    error = join(listener, engine, nics, count, bytes);
    if (error && engine_first(engine) != engine) {
      /* The first has ports already: STRATUS_PORT_RANGE may have none for this one. */
      error = join(listener, engine_first(engine), nics, count, bytes);
    }
  }
  if (error) {
    listener_free(listener);
    return error;
  }
  *result = listener;
  return 0;
}

int listener_accept(struct listener *listener, struct connection **connection) {
  engine_progress(listener->engine);
  engine_lock(listener->engine);
  *connection = NULL;
  int error = listener->pending_count ? 0 : listener->error;
  if (listener->pending_count) {
    *connection = listener->pending[0];
    listener->pending_count--;
    memmove(&listener->pending[0], &listener->pending[1],
            listener->pending_count * sizeof listener->pending[0]);
  }
  engine_unlock(listener->engine);
  return error;
}

void listener_close(struct listener *listener) {
  if (!listener) {
    return;
  }
  struct engine *engine = listener->engine;
  engine_lock(engine);
  forget(listener);
  for (unsigned i = 0; i < listener->pending_count; i++) {
    connection_destroy(listener->pending[i]);
  }
  engine_unlock(engine);
  listener_free(listener);
}

/* ---- the end of everything ---- */

void listener_close_ports(struct engine *engine) {
  engine_assert_locked(engine);
  struct list_node *node;
  while ((node = list_pop_front(&engine_lists(engine)->ports))) {
    struct port *port = LIST_ENTRY(node, struct port, node);
    acceptor_close_all(&port->acceptor);
    atomic_fetch_sub(&port_count, 1);
    engine_unwatch(engine, &port->source);
    engine_timer_stop(&port->pause);
    descriptor_close(port->fd);
    free(port);
  }
  spare_use();
}

void listener_drop_all(struct engine *engine) {
  engine_assert_locked(engine);
  struct list_node *node;
  while ((node = list_first(&engine_lists(engine)->listeners))) {
    struct listener *listener = LIST_ENTRY(node, struct listener, node);
    forget(listener);
    listener_free(listener);
  }
}
