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
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/flow_budget.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/nic_shares.h"
#include "net_plugin/setup/no_path.h"
#include "net_plugin/setup/peer.h"
#include "net_plugin/setup/refusal.h"

struct lane_dial {
  struct peering *peering;
  unsigned lane;
  uint32_t epoch;
  unsigned failures;          /* since it was up */
  unsigned endpoint_failures; /* in a row */
  uint64_t endpoint_ns;       /* when its endpoint was connected; 0: it has none */
  uint64_t no_endpoint_ns;    /* none is tried before */
  struct path path;           /* that it was dialled on last */
  struct dial *dial;          /* NULL: none in progress */
};

struct peering {
  struct connection *connection;
  struct engine *engine;
  bool is_sender;
  struct hello hello; /* each dial fills in lane and epoch; receiver: the peer's */
  struct auth_keys keys;
  struct wire_address addresses[ADDRESSES_MAX]; /* receiver: see peering_set_addresses */
  struct peering_route route;
  uint64_t counted;    /* lanes in flow_budget.h's count */
  uint64_t connecting; /* sender: lanes that are to be up and are not, as far as is known here */
  struct refusal refusal;
  int last_error; /* of a dial, or an inquiry; 0: it succeeded, or there was none */
  struct peer *process;
  struct sockaddr_storage listens; /* receiver: where the peer's process does; AF_UNSPEC: unknown */
  struct dial *inquiry;            /* receiver; NULL: none is in progress */
  struct engine_timer inquire;     /* receiver: the next one */
  struct nic_shares shares;        /* sender */
  struct engine_timer upgrade;     /* sender */
  unsigned vain_upgrades;          /* in a row */
  char peer[CONNECTION_NAME_BYTES];
  struct lane_dial dials[]; /* sender: one per lane */
};

void peering_name(char name[CONNECTION_NAME_BYTES], const char *host,
                  const struct sockaddr_storage *address, const char *nic) {
  char text[TCP_ADDRESS_TEXT];
  snprintf(name, CONNECTION_NAME_BYTES, "%.60s (%s, %.15s)", host, tcp_address_text(address, text),
           nic);
}

/* A lane waits for its home path: it must be there when a NIC comes back, and others carry its
 * share meanwhile. Only when less than half of the lanes are left it takes a detour, and stays
 * there. */
static struct nic choose(const struct peering *peering, struct lane_dial *dial) {
  unsigned failures = dial->failures;
  bool is_in_need = connection_open_lanes(peering->connection) <
                    (unsigned)__builtin_popcountll(peering->connecting);
  unsigned turn = is_in_need && failures % 2 ? (failures + 1) / 2 : 0;
  enum peering_binding binding = PEERING_BIND_DEVICE;
  if (failures % 4 >= 2) {
    binding = is_in_need && failures % 8 >= 4 ? PEERING_BIND_NOTHING : PEERING_BIND_ADDRESS;
  }
  dial->path = peering_route_choose(&peering->route, dial->lane, turn);
  return peering_route_nic(&peering->route, dial->path, binding);
}

static bool is_refused_for_good(struct peering *peering, bool is_refused) {
  const struct connection *connection = peering->connection;
  uint64_t now_ns = clock_now_ns();
  bool is_confirmed = is_refused && (peer_has_left(peering->process, peering->refusal.since_ns) ||
                                     connection_has_failed_sibling(connection));
  bool is_gone = refusal_heard(&peering->refusal, is_refused, connection_open_lanes(connection) > 0,
                               is_confirmed, now_ns);
  if (is_gone) {
    peer_left(peering->process, now_ns); /* the others need not find out by themselves */
  }
  return is_gone;
}

/* What it was to send cannot come either. Its connections in the other direction have found out for
 * themselves that nobody listens, or still try. */
static void process_is_gone(const struct peering *gone) {
  struct connection *next = connection_next(gone->engine, NULL);
  while (next) {
    struct connection *connection = next;
    const struct peering *peering = connection_setup_data(connection);
    next = connection_next(gone->engine, connection); /* who has failed may be freed */
    if (!peering->is_sender && peering->hello.process == gone->route.process &&
        connection_open_lanes(connection) == 0) {
      connection_fail(connection, -ESRCH);
    }
  }
  connection_fail(gone->connection, -ESRCH);
}

/* ---- who only receives asks ---- */

static void inquire_later(struct peering *peering, uint64_t wait_ns) {
  bool is_over = connection_open_lanes(peering->connection) > 0 ||
                 connection_has_failed(peering->connection) ||
                 connection_is_peer_closed(peering->connection);
  if (is_over) {
    refusal_over(&peering->refusal);
  } else if (!peering->inquiry) {
    engine_timer_set(peering->engine, &peering->inquire, clock_now_ns() + wait_ns);
  }
}

static void inquiry_done(void *argument, int error, const struct lane_path *path,
                         const struct reply *reply) {
  struct peering *peering = argument;
  (void)path, (void)reply;
  peering->inquiry = NULL;
  peering->last_error = error == -EISCONN ? 0 : error;
  if (is_refused_for_good(peering, error == -ECONNREFUSED)) {
    LOG_INFO("%s: nobody listens there any more", peering->peer);
    connection_fail(peering->connection, -ESRCH);
  } else {
    inquire_later(peering, REFUSAL_INQUIRY_NS);
  }
}

/* Bound to no NIC. */
static void inquire_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct peering *peering = LIST_ENTRY(timer, struct peering, inquire);
  struct nic nic = *engine_nic(peering->engine);
  int error = 0;
  nic.address.ss_family = AF_UNSPEC;
  if (connection_open_lanes(peering->connection) == 0) {
    peering->inquiry = dial_start(peering->engine, &nic, &peering->listens, NULL, NULL,
                                  now_ns + INQUIRY_TIMEOUT_NS, inquiry_done, peering, &error);
  }
  if (error && !peering->inquiry) {
    inquiry_done(peering, error, NULL, NULL);
  } else {
    inquire_later(peering, REFUSAL_INQUIRY_NS);
  }
}

/* ---- descriptors ---- */

static bool take_lane(struct peering *peering, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  unsigned least = peering->is_sender ? peering->route.nic_count : 1;
  bool is_counted = (peering->counted & bit) != 0 ||
                    flow_budget_take((unsigned)__builtin_popcountll(peering->counted), least);
  peering->counted |= is_counted ? bit : 0;
  return is_counted;
}

static void give_lane(struct peering *peering, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  flow_budget_give((peering->counted & bit) != 0);
  peering->counted &= ~bit;
}

bool peering_take_lane(struct connection *connection, unsigned lane) {
  return take_lane(connection_setup_data(connection), lane);
}

static void lane_closed(struct connection *connection, unsigned lane, bool has_left) {
  struct peering *peering = connection_setup_data(connection);
  give_lane(peering, lane);
  nic_shares_closed(&peering->shares, lane);
  if (has_left) {
    peer_left(peering->process, clock_now_ns());
  }
  if (peering->listens.ss_family != AF_UNSPEC) {
    inquire_later(peering, REFUSAL_FIRST_INQUIRY_NS);
  }
}

static void lane_refused(struct lane_dial *dial) {
  struct peering *peering = dial->peering;
  peering->connecting &= ~lane_bit(dial->lane);
  give_lane(peering, dial->lane);
  connection_lane_refused(peering->connection, dial->lane, dial->epoch);
}

static void lane_failed(struct lane_dial *dial, int error) {
  struct peering *peering = dial->peering;
  dial->failures++;
  nic_shares_failed(&peering->shares, dial->path, error);
  give_lane(peering, dial->lane);
  connection_lane_failed(peering->connection, dial->lane, dial->epoch);
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

static void upgrade_later(struct peering *peering) {
  unsigned doublings =
      peering->vain_upgrades < UPGRADE_DOUBLINGS ? peering->vain_upgrades : UPGRADE_DOUBLINGS;
  if (peering->hello.terms.remote_keys && !peering->upgrade.deadline_ns) {
    engine_timer_set(peering->engine, &peering->upgrade,
                     clock_now_ns() + (UPGRADE_NS << doublings));
  }
}

/* One lane at a time: the others carry its share meanwhile. */
static void upgrade_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct peering *peering = LIST_ENTRY(timer, struct peering, upgrade);
  for (unsigned i = 0; i < peering->hello.terms.lanes; i++) {
    struct lane_dial *dial = &peering->dials[i];
    if (!connection_lane_is_flow(peering->connection, i) || dial->dial) {
      continue;
    }
    upgrade_later(peering);
    struct path home = peering_route_choose(&peering->route, i, 0);
    struct nic nic = peering_route_nic(&peering->route, home, PEERING_BIND_DEVICE);
    if (now_ns >= dial->no_endpoint_ns && endpoint_has_device(&nic)) {
      peering->vain_upgrades++; /* until it comes up with one */
      connection_lane_outdated(peering->connection, i);
      return;
    }
  }
}

static void note_endpoint_connected(struct lane_dial *dial) {
  struct peering *peering = dial->peering;
  dial->endpoint_ns = clock_now_ns();
  peering->vain_upgrades = 0;
  if (peering->upgrade.deadline_ns) {
    engine_timer_set(peering->engine, &peering->upgrade, dial->endpoint_ns + NEXT_UPGRADE_NS);
  }
}

/* ---- dials ---- */

static void lane_dial_done(void *argument, int error, const struct lane_path *path,
                           const struct reply *reply) {
  struct lane_dial *dial = argument;
  struct peering *peering = dial->peering;
  dial->dial = NULL;
  peering->last_error = error;
  bool is_unknown = error == -ENOLINK && reply->status == REPLY_UNKNOWN;
  bool is_gone = is_refused_for_good(peering, error == -ECONNREFUSED || is_unknown);
  if (!error) {
    dial->failures = 0;
    peering->connecting &= ~lane_bit(dial->lane);
    if (path->endpoint) {
      note_endpoint_connected(dial);
    } else {
      upgrade_later(peering);
    }
    if (!reply->terms.codec) {
      connection_lane_is_raw(peering->connection, dial->lane);
    }
    peering_lane_opened(peering->connection, dial->lane, dial->epoch, path, reply->received_before,
                        0);
  } else if (is_gone && is_unknown) {
    LOG_INFO("%s has closed the connection", peering->peer);
    connection_fail(peering->connection, -ECONNRESET);
  } else if (is_gone) {
    LOG_INFO("%s: nobody listens there any more", peering->peer);
    process_is_gone(peering);
  } else if (error == -ENOLINK && reply->status == REPLY_NO_RESOURCES) {
    lane_refused(dial);
  } else {
    if (error == -ENODEV) {
      note_endpoint_failure(dial, clock_now_ns());
    }
    LOG_TRACE("flow %u to %s: %s", dial->lane, peering->peer,
              error == -ENOLINK ? reply_status_text(reply->status) : strerror(-error));
    lane_failed(dial, error);
  }
}

static void open_lane(struct connection *connection, unsigned lane, uint32_t epoch) {
  struct peering *peering = connection_setup_data(connection);
  struct lane_dial *dial = &peering->dials[lane];
  dial->epoch = epoch;
  if (!take_lane(peering, lane)) {
    lane_refused(dial);
    return;
  }
  peering->connecting |= lane_bit(lane);
  struct nic nic = choose(peering, dial);
  const struct sockaddr_storage *address = &peering->route.remote.addresses[dial->path.address];
  nic_shares_dialled(&peering->shares, dial->path);
  if (dial->dial) {
    dial_cancel(dial->dial);
  }
  uint64_t now_ns = clock_now_ns();
  struct hello hello = peering->hello;
  hello.lane = (uint16_t)lane;
  hello.epoch = epoch;
  note_endpoint_end(dial, now_ns);
  hello.terms.remote_keys = now_ns >= dial->no_endpoint_ns ? hello.terms.remote_keys : 0;
  int error;
  dial->dial = dial_start(peering->engine, &nic, address, &hello, &peering->keys,
                          now_ns + PEERING_DIAL_TIMEOUT_NS, lane_dial_done, dial, &error);
  if (!dial->dial) {
    LOG_WARN_EVERY(SETUP_NIC_WARN_INTERVAL_NS,
                   "cannot dial a flow to %s from %s: %s; it is tried again", peering->peer,
                   nic.name, strerror(-error));
    refusal_over(&peering->refusal);
    peering->last_error = error;
    lane_failed(dial, error);
  }
}

/* ---- for messages ---- */

/* The NICs of this side. Of a receiver that is the one it was accepted on. */
static const char *path_text(struct connection *connection, char text[CONNECTION_PATH_TEXT]) {
  const struct peering *peering = connection_setup_data(connection);
  const struct nic *nics = peering->is_sender ? peering->route.nics : engine_nic(peering->engine);
  unsigned count = peering->is_sender ? peering->route.nic_count : 1;
  size_t length = 0;
  text[0] = '\0';
  for (unsigned i = 0; i < count; i++) {
    length += (size_t)snprintf(text + length, CONNECTION_PATH_TEXT - length, "%s%.15s %s",
                               i > 0 ? ", " : "", nics[i].name, no_path_nic_state(&nics[i]));
  }
  if (peering->last_error) {
    snprintf(text + length, CONNECTION_PATH_TEXT - length, ", the last try to connect: %s (%d)",
             strerror(-peering->last_error), -peering->last_error);
  }
  return text;
}

static void connection_gone(struct connection *connection) {
  struct peering *peering = connection_setup_data(connection);
  for (unsigned i = 0; peering->is_sender && i < peering->hello.terms.lanes; i++) {
    if (peering->dials[i].dial) {
      dial_cancel(peering->dials[i].dial);
    }
  }
  if (!peering->is_sender) {
    id_tree_remove(&engine_lists(peering->engine)->receivers, peering->hello.connection);
  }
  engine_timer_stop(&peering->upgrade);
  nic_shares_stop(&peering->shares);
  engine_timer_stop(&peering->inquire);
  if (peering->inquiry) {
    dial_cancel(peering->inquiry);
  }
  flow_budget_give((unsigned)__builtin_popcountll(peering->counted));
  peer_put(peering->process);
  hash_wipe(&peering->keys, sizeof peering->keys);
  free(peering);
}

static void discard(struct peering *peering, struct peer *process) {
  free(peering);
  if (process) {
    peer_put(process);
  }
}

static const struct connection_setup peering_setup = { open_lane, lane_closed, path_text,
                                                       connection_gone };

int peering_new(struct engine *engine, const struct connection_config *config,
                const struct hello *hello, const struct auth_keys *keys,
                const struct peering_route *route, struct connection **result) {
  engine_assert_locked(engine);
  size_t dials = route ? hello->terms.lanes * sizeof(struct lane_dial) : 0;
  struct peering *peering = calloc(1, sizeof *peering + dials);
  struct peer *process = peer_get(route ? route->process : hello->process);
  if (!peering || !process) {
    discard(peering, process);
    return -ENOMEM;
  }
  struct connection_config complete = *config;
  complete.setup = &peering_setup;
  complete.link.policy.shared = engine_policy_shared(engine);
  complete.link.seed = clock_now_ns();
  void **receivers = &engine_lists(engine)->receivers;
  peering->hello = *hello;
  peering->hello.is_first = 0;
  int error = route ? 0 : id_tree_add(receivers, peering->hello.connection);
  if (error) {
    discard(peering, process);
    return error;
  }
  error = connection_new(engine, &complete, result);
  if (error) {
    if (!route) {
      id_tree_remove(receivers, hello->connection);
    }
    discard(peering, process);
    return error;
  }
  peering->connection = *result;
  peering->engine = engine;
  peering->process = process;
  peering->keys = *keys;
  peering->upgrade.expired = upgrade_expired;
  peering->inquire.expired = inquire_expired;
  memcpy(peering->peer, config->peer, sizeof peering->peer);
  if (route) {
    peering->is_sender = true;
    peering->route = *route;
    for (unsigned i = 0; i < hello->terms.lanes; i++) {
      peering->dials[i] = (struct lane_dial){ .peering = peering, .lane = i };
    }
    peering->dials[0].path = peering_route_choose(route, 0, 0);
    nic_shares_init(&peering->shares, engine, &peering->route, peering->peer);
  }
  take_lane(peering, 0); /* which is why there is a connection */
  connection_set_setup_data(*result, peering);
  if (route) {
    upgrade_later(peering); /* the first lane may be a TCP flow */
  }
  return 0;
}

void peering_lane_opened(struct connection *connection, unsigned lane, uint32_t epoch,
                         const struct lane_path *path, uint64_t received_before, int error) {
  struct peering *peering = connection_setup_data(connection);
  peer_came(peering->process);
  nic_shares_up(&peering->shares, peering->dials[lane].path, lane, path, error);
  connection_lane_opened(connection, lane, epoch, path, received_before);
}

struct connection *peering_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]) {
  engine_assert_locked(engine);
  uint8_t *found = id_tree_find(&engine_lists(engine)->receivers, id);
  return found ? LIST_ENTRY(found, struct peering, hello.connection)->connection : NULL;
}

void peering_set_addresses(struct connection *connection,
                           const struct wire_address addresses[ADDRESSES_MAX]) {
  struct peering *peering = connection_setup_data(connection);
  memcpy(peering->addresses, addresses, sizeof peering->addresses);
}

void peering_note_listener(struct connection *connection, const struct hello *hello,
                           const struct sockaddr_storage *from) {
  struct peering *peering = connection_setup_data(connection);
  struct sockaddr_storage listens;
  unsigned bytes;
  peer_came(peering->process);
  peering->listens.ss_family = AF_UNSPEC;
  if (!address_from_wire(&hello->listens, &listens) || listens.ss_family != from->ss_family) {
    return;
  }
  const uint8_t *told = tcp_address_ip(&listens, &bytes), *seen = tcp_address_ip(from, &bytes);
  if (memcmp(told, seen, bytes) != 0) {
    char text[TCP_ADDRESS_TEXT];
    if (peer_note_translated(peering->process)) {
      LOG_INFO("%s: another address dials in place of %s, where its process listens: a proxy or "
               "address translation?",
               peering->peer, tcp_address_text(&listens, text));
    }
    return;
  }
  peering->listens = *from; /* with its scope */
  tcp_address_set_port(&peering->listens, tcp_address_port(&listens));
}

const struct wire_address *peering_addresses(const struct connection *connection) {
  const struct peering *peering = connection_setup_data(connection);
  return peering->addresses;
}

const struct auth_keys *peering_keys(const struct connection *connection) {
  const struct peering *peering = connection_setup_data(connection);
  return &peering->keys;
}
