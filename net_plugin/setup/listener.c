/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, and the end of everything: see setup.h. */
#include "net_plugin/setup/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/random.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/setup/acceptor.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/port.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/settings.h"

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
      handle->addresses[handle->count] = port_address(port);
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

static void drop_listeners(struct engine *engine) {
  engine_assert_locked(engine);
  struct list_node *node;
  while ((node = list_first(&engine_lists(engine)->listeners))) {
    struct listener *listener = LIST_ENTRY(node, struct listener, node);
    forget(listener);
    listener_free(listener);
  }
}

static void leave_engine(struct engine *engine, void *unused) {
  (void)unused;
  connector_drop_all(engine);
  drop_listeners(engine);
  connection_detach_all(engine);
}

static void stop_engine(struct engine *engine) {
  struct connection *connection;
  while ((connection = connection_next(engine, NULL))) {
    connection_destroy(connection);
  }
  port_close_all(engine);
}

void setup_stop(void) {
  engine_visit_all(leave_engine, NULL);
  engine_stop_all(SETUP_CLOSE_NS, stop_engine);
  endpoint_stop_all();
}
