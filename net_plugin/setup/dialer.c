/* SPDX-License-Identifier: Apache-2.0 */
/* See dialer.h. */
#include "net_plugin/setup/dialer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/listener.h"

/* Until there is a connection every path is tried, then with less firm bindings. Later a lane waits
 * for its home path: it must be there when a NIC comes back, and others carry its share meanwhile.
 * Only when less than half of the lanes are left it takes a detour, and stays there. */
static struct nic choose(struct dialer *dialer, struct lane_dial *dial) {
  const struct connection *connection = dialer->peering.connection;
  unsigned failures = dial->failures, turn = failures;
  enum peering_binding binding = failures / dialer->route.path_count % PEERING_BINDINGS;
  if (connection) {
    bool is_in_need =
        connection_open_lanes(connection) < (unsigned)__builtin_popcountll(dialer->connecting);
    turn = is_in_need && failures % 2 ? (failures + 1) / 2 : 0;
    binding = failures % 4 < 2                  ? PEERING_BIND_DEVICE
              : is_in_need && failures % 8 >= 4 ? PEERING_BIND_NOTHING
                                                : PEERING_BIND_ADDRESS;
  }
  dial->path = peering_route_choose(&dialer->route, dial->lane, turn);
  return peering_route_nic(&dialer->route, dial->path, binding);
}

/* What it was to send cannot come either. Its connections in the other direction have found out for
 * themselves that nobody listens, or still try. */
static void process_is_gone(const struct peering *gone) {
  struct connection *next = connection_next(gone->engine, NULL);
  while (next) {
    struct connection *connection = next;
    const struct peering *peering = connection_setup_data(connection);
    next = connection_next(gone->engine, connection); /* who has failed may be freed */
    if (!connection_is_sender(connection) && peering->process == gone->process &&
        connection_open_lanes(connection) == 0) {
      connection_fail(connection, -ESRCH);
    }
  }
  connection_fail(gone->connection, -ESRCH);
}

static void lane_closed(struct connection *connection, unsigned lane, bool has_left) {
  struct dialer *dialer = connection_setup_data(connection);
  peering_lane_closed(&dialer->peering, lane, has_left);
  nic_shares_closed(&dialer->shares, lane);
}

static void lane_refused(struct lane_dial *dial) {
  struct dialer *dialer = dial->dialer;
  dialer->connecting &= ~lane_bit(dial->lane);
  peering_give_lane(&dialer->peering, dial->lane);
  connection_lane_refused(dialer->peering.connection, dial->lane, dial->epoch);
}

static void lane_failed(struct lane_dial *dial, int error) {
  struct dialer *dialer = dial->dialer;
  nic_shares_failed(&dialer->shares, dial->path, error);
  peering_give_lane(&dialer->peering, dial->lane);
  connection_lane_failed(dialer->peering.connection, dial->lane, dial->epoch);
}

/* ---- endpoints ---- */

static void note_endpoint_failure(struct lane_dial *dial, uint64_t now_ns) {
  unsigned doublings = dial->endpoint_failures < ENDPOINT_BACKOFF_DOUBLINGS
                           ? dial->endpoint_failures
                           : ENDPOINT_BACKOFF_DOUBLINGS;
  dial->endpoint_failures++;
  dial->no_endpoint_ns = now_ns + (ENDPOINT_BACKOFF_NS << doublings);
}

/* The lane reconnects: what about the endpoint that it had? */
static void note_endpoint_end(struct lane_dial *dial, uint64_t now_ns) {
  if (dial->endpoint_ns && now_ns - dial->endpoint_ns < ENDPOINT_SOON_NS) {
    note_endpoint_failure(dial, now_ns);
  } else if (dial->endpoint_ns) {
    dial->endpoint_failures = 0;
  }
  dial->endpoint_ns = 0;
}

static void upgrade_later(struct dialer *dialer) {
  unsigned doublings =
      dialer->vain_upgrades < UPGRADE_DOUBLINGS ? dialer->vain_upgrades : UPGRADE_DOUBLINGS;
  if (dialer->hello.params.remote_keys && !dialer->upgrade.deadline_ns) {
    engine_timer_set(dialer->peering.engine, &dialer->upgrade,
                     clock_now_ns() + (UPGRADE_NS << doublings));
  }
}

/* One lane at a time: the others carry its share meanwhile. */
static void upgrade_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct dialer *dialer = LIST_ENTRY(timer, struct dialer, upgrade);
  struct connection *connection = dialer->peering.connection;
  for (unsigned i = 0; i < dialer->hello.params.lanes; i++) {
    struct lane_dial *dial = &dialer->dials[i];
    if (!connection_lane_is_flow(connection, i) || dial->dial) {
      continue;
    }
    upgrade_later(dialer);
    struct path home = peering_route_choose(&dialer->route, i, 0);
    struct nic nic = peering_route_nic(&dialer->route, home, PEERING_BIND_DEVICE);
    struct lane_offer unused;
    if (now_ns >= dial->no_endpoint_ns && endpoint_offer(&nic, &unused)) {
      dialer->vain_upgrades++; /* until it comes up with one */
      connection_lane_outdated(connection, i);
      return;
    }
  }
}

static void note_endpoint_connected(struct lane_dial *dial) {
  struct dialer *dialer = dial->dialer;
  dial->endpoint_ns = clock_now_ns();
  dialer->vain_upgrades = 0;
  if (dialer->upgrade.deadline_ns) {
    engine_timer_set(dialer->peering.engine, &dialer->upgrade, dial->endpoint_ns + NEXT_UPGRADE_NS);
  }
}

/* ---- dials ---- */

static const struct connection_setup dialer_setup;

/* Of the first reply. Both links must be made with the same. */
static int make_connection(struct dialer *dialer, const struct reply *reply) {
  struct peering_route *route = &dialer->route;
  peering_route_learn(route, reply, dialer->dials[0].path);
  dialer->hello.params = params_agreed(&dialer->hello.params, &reply->params);
  const struct link_config link =
      settings_of_link(LINK_SENDER, &dialer->hello.params, &dialer->settings, route->home_count);
  dialer->peering.least_lanes = route->nic_count;
  int error = peering_connect(&dialer->peering, &link, &dialer_setup, &reply->params,
                              &route->remote.addresses[0], route->nics[0].name);
  if (!error) {
    dialer->hello.is_first = 0;
    dialer->dials[0].path = peering_route_choose(route, 0, 0);
    nic_shares_init(&dialer->shares, dialer->peering.engine, route, dialer->peering.peer);
  }
  return error;
}

static void log_cipher(const struct lane_crypto *crypto) {
  static atomic_flag is_logged = ATOMIC_FLAG_INIT;
  char name[LANE_CRYPTO_NAME_MAX];
  if (crypto && !atomic_flag_test_and_set(&is_logged)) {
    LOG_INFO("data between hosts is encrypted with %s", lane_crypto_name(crypto->cipher, name));
  }
}

/* earlier: see nic_shares.h. */
static void lane_dialled(struct lane_dial *dial, const struct lane_path *path,
                         const struct reply *reply, int earlier) {
  struct dialer *dialer = dial->dialer;
  struct connection *connection = dialer->peering.connection;
  dial->failures = 0;
  dialer->connecting &= ~lane_bit(dial->lane);
  if (path->endpoint) {
    note_endpoint_connected(dial);
  } else {
    upgrade_later(dialer);
  }
  if (!reply->params.codec) {
    connection_lane_is_raw(connection, dial->lane);
  }
  log_cipher(path->crypto);
  peer_came(dialer->peering.process);
  nic_shares_up(&dialer->shares, dial->path, dial->lane, path, earlier);
  connection_lane_opened(connection, dial->lane, dial->epoch, path);
}

static void lane_not_dialled(struct lane_dial *dial, int error, const struct reply *reply) {
  struct peering *peering = &dial->dialer->peering;
  bool is_unknown = error == -ENOLINK && reply->status == REPLY_UNKNOWN;
  bool is_gone = peering_heard(peering, error == -ECONNREFUSED || is_unknown);
  if (is_gone && is_unknown) {
    LOG_INFO("%s has closed the connection", peering->peer);
    connection_fail(peering->connection, -ECONNRESET);
  } else if (is_gone) {
    LOG_INFO("%s: nobody listens there any more", peering->peer);
    process_is_gone(peering);
  } else if (error == -ENOLINK && reply->status == REPLY_NO_RESOURCES) {
    lane_refused(dial);
  } else {
    LOG_TRACE("flow %u to %s: %s", dial->lane, peering->peer,
              error == -ENOLINK ? reply_status_text(reply->status) : strerror(-error));
    dial->failures++;
    lane_failed(dial, error);
  }
}

static void lane_dial_done(void *argument, int error, const struct lane_path *path,
                           const struct reply *reply) {
  struct lane_dial *dial = argument;
  struct dialer *dialer = dial->dialer;
  struct peering *peering = &dialer->peering;
  int earlier = peering->last_error;
  bool is_first = !peering->connection;
  dial->dial = NULL;
  peering->last_error = error;
  if (error == -ENODEV) {
    note_endpoint_failure(dial, clock_now_ns()); /* TCP works, as this dial shows */
  }
  if (error && is_first) {
    dialer->first_failed(dialer, error, reply, false);
  } else if (error) {
    lane_not_dialled(dial, error, reply);
  } else if (is_first && (error = make_connection(dialer, reply)) != 0) {
    lane_path_drop(path);
    LOG_WARN("cannot set up the connection to %s: %s", reply->params.host, strerror(-error));
    dialer->first_failed(dialer, error, reply, true);
  } else {
    peering->refused_ns = 0;
    lane_dialled(dial, path, reply, is_first ? earlier : 0);
  }
}

static int dial_lane(struct lane_dial *dial, uint64_t deadline_ns) {
  struct dialer *dialer = dial->dialer;
  struct engine *engine = dialer->peering.engine;
  struct nic nic = choose(dialer, dial);
  const struct sockaddr_storage *address = &dialer->route.remote.addresses[dial->path.address];
  struct hello hello = dialer->hello;
  uint64_t now_ns = clock_now_ns();
  int error;
  hello.lane = (uint16_t)dial->lane;
  hello.epoch = dial->epoch;
  memcpy(hello.params.nic, nic.name, sizeof hello.params.nic);
  listener_for_hello(engine, &nic, &hello.listens);
  note_endpoint_end(dial, now_ns);
  hello.params.remote_keys = now_ns >= dial->no_endpoint_ns ? hello.params.remote_keys : 0;
  dial->dial = dial_start(engine, &nic, address, &hello, &dialer->peering.keys, deadline_ns,
                          lane_dial_done, dial, &error);
  return error;
}

static void open_lane(struct connection *connection, unsigned lane, uint32_t epoch) {
  struct dialer *dialer = connection_setup_data(connection);
  struct peering *peering = &dialer->peering;
  struct lane_dial *dial = &dialer->dials[lane];
  dial->epoch = epoch;
  if (!peering_take_lane(peering, lane)) {
    lane_refused(dial);
    return;
  }
  dialer->connecting |= lane_bit(lane);
  if (dial->dial) {
    dial_cancel(dial->dial);
  }
  int error = dial_lane(dial, clock_now_ns() + PEERING_DIAL_TIMEOUT_NS);
  nic_shares_dialled(&dialer->shares, dial->path);
  if (error) {
    LOG_WARN_EVERY(SETUP_NIC_WARN_INTERVAL_NS,
                   "cannot dial a flow to %s from %s: %s; it is tried again", peering->peer,
                   dialer->route.nics[dial->path.nic].name, strerror(-error));
    peering->refused_ns = 0;
    peering->last_error = error;
    dial->failures++;
    lane_failed(dial, error);
  }
}

/* ---- its life ---- */

static const char *path_text(struct connection *connection, char text[CONNECTION_PATH_TEXT]) {
  const struct dialer *dialer = connection_setup_data(connection);
  return peering_path_text(&dialer->peering, dialer->route.nics, dialer->route.nic_count, text);
}

static void connection_gone(struct connection *connection) {
  dialer_free(connection_setup_data(connection));
}

static const struct connection_setup dialer_setup = { open_lane, lane_closed, path_text,
                                                      connection_gone };

int dialer_dial_first(struct dialer *dialer, uint64_t deadline_ns) {
  engine_assert_locked(dialer->peering.engine);
  dialer->dials[0].epoch++;
  return dial_lane(&dialer->dials[0], deadline_ns);
}

struct dialer *dialer_new(size_t bytes, unsigned lanes) {
  struct dialer *dialer = calloc(1, bytes + lanes * sizeof(struct lane_dial));
  if (dialer) {
    dialer->dials = (struct lane_dial *)(void *)((char *)dialer + bytes);
    dialer->upgrade.expired = upgrade_expired;
    dialer->bytes = bytes;
    for (unsigned i = 0; i < lanes; i++) {
      dialer->dials[i] = (struct lane_dial){ .dialer = dialer, .lane = i };
    }
  }
  return dialer;
}

void dialer_free(struct dialer *dialer) {
  for (unsigned i = 0; i < dialer->hello.params.lanes; i++) {
    if (dialer->dials[i].dial) {
      dial_cancel(dialer->dials[i].dial);
    }
  }
  engine_timer_stop(&dialer->upgrade);
  nic_shares_stop(&dialer->shares);
  peering_end(&dialer->peering);
  hash_wipe(dialer, dialer->bytes);
  free(dialer);
}
