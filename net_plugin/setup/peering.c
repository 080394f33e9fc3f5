/* SPDX-License-Identifier: Apache-2.0 */
/* See peering.h. */
#include "net_plugin/setup/peering.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/dial.h"

/* A dial that takes longer is given up and tried again by the link's backoff. */
#define DIAL_TIMEOUT_NS (3 * NS_PER_S)
#define WARN_INTERVAL_NS (60 * NS_PER_S)
/* All flows are gone, and every dial has been refused for this long: nobody listens any more. A
 * firewall that is being reloaded takes less. */
#define REFUSED_NS (2 * NS_PER_S)

struct lane_dial {
  struct peering *peering;
  unsigned lane;
  uint32_t epoch;
  unsigned failures; /* since it was up */
  struct dial *dial; /* NULL: none under way */
};

struct peering {
  struct connection *connection;
  struct engine *engine;
  bool is_sender;
  struct hello hello; /* lane and epoch are filled in per dial */
  struct auth_keys keys;
  struct peering_route route;
  uint64_t up;         /* sender: lanes that are not being dialled, as far as is known here */
  uint64_t refused_ns; /* sender: since when every dial is refused; 0: not so */
  char peer[CONNECTION_NAME_BYTES];
  struct lane_dial dials[]; /* sender: one per lane */
};

void peering_name(char name[CONNECTION_NAME_BYTES], const char *host,
                  const struct sockaddr_storage *address, const char *nic) {
  char text[TCP_ADDRESS_TEXT];
  snprintf(name, CONNECTION_NAME_BYTES, "%.60s (%s, %.15s)", host, tcp_address_text(address, text),
           nic);
}

void peering_choose(const struct peering_route *route, unsigned lane, unsigned turn,
                    enum peering_binding binding, struct nic *nic,
                    const struct sockaddr_storage **address) {
  struct path path = paths_choose(&route->paths, lane, turn);
  *nic = route->nics[path.nic];
  *address = &route->remote.addresses[path.address];
  nic->has_neighbours = nic->has_neighbours && binding == PEERING_BIND_DEVICE;
  if (binding == PEERING_BIND_NOTHING) {
    nic->address.ss_family = AF_UNSPEC; /* fits no peer, so nothing is bound */
  }
}

/* A lane waits for its home path: it must be there when a NIC comes back, and others carry its
 * share meanwhile. Only when less than half of the lanes are left it takes a detour, and stays
 * there. */
static void choose(const struct peering *peering, const struct lane_dial *dial, struct nic *nic,
                   const struct sockaddr_storage **address) {
  unsigned failures = dial->failures;
  bool is_in_need = 2u * (unsigned)__builtin_popcountll(peering->up) < peering->hello.lanes;
  unsigned turn = is_in_need && failures % 2 ? (failures + 1) / 2 : 0;
  enum peering_binding binding = PEERING_BIND_DEVICE;
  if (failures % 4 >= 2) {
    binding = is_in_need && failures % 8 >= 4 ? PEERING_BIND_NOTHING : PEERING_BIND_ADDRESS;
  }
  peering_choose(&peering->route, dial->lane, turn, binding, nic, address);
}

/* A process that was killed says nothing, but its host does. */
static bool is_refused_for_good(struct peering *peering, int error) {
  uint64_t now_ns = clock_now_ns();
  if (error != -ECONNREFUSED || peering->up) {
    peering->refused_ns = 0;
  } else if (!peering->refused_ns) {
    peering->refused_ns = now_ns;
  }
  return peering->refused_ns && now_ns - peering->refused_ns >= REFUSED_NS;
}

static void lane_failed(struct lane_dial *dial) {
  dial->failures++;
  connection_lane_failed(dial->peering->connection, dial->lane, dial->epoch);
}

static void dial_done(void *argument, int error, int fd, const struct reply *reply,
                      const struct lane_crypto *crypto) {
  struct lane_dial *dial = argument;
  struct peering *peering = dial->peering;
  dial->dial = NULL;
  bool is_gone = is_refused_for_good(peering, error);
  if (!error) {
    dial->failures = 0;
    peering->up |= 1ull << dial->lane;
    connection_lane_opened(peering->connection, dial->lane, dial->epoch, fd, crypto,
                           reply->received_before);
  } else if (error == -ENOLINK && reply->status == REPLY_UNKNOWN) {
    LOG_INFO("%s has closed the connection", peering->peer);
    connection_fail(peering->connection, -ECONNRESET);
  } else if (is_gone) {
    LOG_INFO("%s: nobody listens there any more", peering->peer);
    connection_fail(peering->connection, -ECONNRESET);
  } else {
    LOG_TRACE("flow %u to %s: %s", dial->lane, peering->peer,
              error == -ENOLINK ? reply_status_text(reply->status) : strerror(-error));
    lane_failed(dial);
  }
}

static void open_lane(struct connection *connection, unsigned lane, uint32_t epoch) {
  struct peering *peering = connection_setup_data(connection);
  struct lane_dial *dial = &peering->dials[lane];
  struct nic nic;
  const struct sockaddr_storage *address;
  peering->up &= ~(1ull << lane);
  choose(peering, dial, &nic, &address);
  peering->hello.lane = (uint16_t)lane;
  peering->hello.epoch = epoch;
  memcpy(peering->hello.nic, nic.name, sizeof nic.name);
  if (dial->dial) {
    dial_cancel(dial->dial);
  }
  dial->epoch = epoch;
  int error;
  dial->dial = dial_start(peering->engine, &nic, address, &peering->hello, &peering->keys,
                          clock_now_ns() + DIAL_TIMEOUT_NS, dial_done, dial, &error);
  if (!dial->dial) {
    LOG_WARN_EVERY(WARN_INTERVAL_NS, "cannot dial a flow to %s from %s: %s; it is tried again",
                   peering->peer, nic.name, strerror(-error));
    peering->refused_ns = 0;
    lane_failed(dial);
  }
}

static void gone(struct connection *connection) {
  struct peering *peering = connection_setup_data(connection);
  for (unsigned i = 0; peering->is_sender && i < peering->hello.lanes; i++) {
    if (peering->dials[i].dial) {
      dial_cancel(peering->dials[i].dial);
    }
  }
  hash_wipe(&peering->keys, sizeof peering->keys);
  free(peering);
}

static const struct connection_setup peering_setup = { open_lane, gone };

int peering_new(struct engine *engine, const struct connection_config *config,
                const struct hello *hello, const struct auth_keys *keys,
                const struct peering_route *route, struct connection **result) {
  size_t dials = route ? hello->lanes * sizeof(struct lane_dial) : 0;
  struct peering *peering = calloc(1, sizeof *peering + dials);
  if (!peering) {
    return -ENOMEM;
  }
  struct connection_config complete = *config;
  complete.setup = &peering_setup;
  int error = connection_new(engine, &complete, result);
  if (error) {
    free(peering);
    return error;
  }
  peering->connection = *result;
  peering->engine = engine;
  peering->hello = *hello;
  peering->hello.is_first = 0;
  peering->keys = *keys;
  memcpy(peering->peer, config->peer, sizeof peering->peer);
  if (route) {
    peering->is_sender = true;
    peering->route = *route;
    peering->up = 1; /* the first lane is why there is a connection */
    for (unsigned i = 0; i < hello->lanes; i++) {
      peering->dials[i] = (struct lane_dial){ .peering = peering, .lane = i };
    }
  }
  connection_set_setup_data(*result, peering);
  return 0;
}

struct connection *peering_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]) {
  struct connection *found = NULL;
  struct connection *connection = NULL;
  while ((connection = connection_next(engine, connection))) {
    const struct peering *peering = connection_setup_data(connection);
    if (!peering->is_sender && hash_is_equal(peering->hello.connection, id, TOKEN_BYTES)) {
      found = connection;
    }
  }
  return found;
}

const struct auth_keys *peering_keys(const struct connection *connection) {
  const struct peering *peering = connection_setup_data(connection);
  return &peering->keys;
}
