/* SPDX-License-Identifier: Apache-2.0 */
/* See receiver.h. */
#include "net_plugin/setup/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"

static void inquire_later(struct receiver *receiver, uint64_t wait_ns) {
  struct peering *peering = &receiver->peering;
  bool is_over = connection_open_lanes(peering->connection) > 0 ||
                 connection_has_failed(peering->connection) ||
                 connection_is_peer_closed(peering->connection);
  if (is_over) {
    peering->refused_ns = 0;
  } else if (!receiver->inquiry) {
    engine_timer_set(peering->engine, &receiver->inquire, clock_now_ns() + wait_ns);
  }
}

static void inquiry_done(void *argument, int error, const struct lane_path *path,
                         const struct reply *reply) {
  struct receiver *receiver = argument;
  struct peering *peering = &receiver->peering;
  (void)path, (void)reply;
  receiver->inquiry = NULL;
  peering->last_error = error == -EISCONN ? 0 : error;
  if (peering_heard(peering, error == -ECONNREFUSED)) {
    LOG_INFO("%s: nobody listens there any more", peering->peer);
    connection_fail(peering->connection, -ESRCH);
  } else {
    inquire_later(receiver, REFUSAL_INQUIRY_NS);
  }
}

/* Bound to no NIC. */
static void inquire_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct receiver *receiver = LIST_ENTRY(timer, struct receiver, inquire);
  struct engine *engine = receiver->peering.engine;
  struct nic nic = *engine_nic(engine);
  int error = 0;
  nic.address.ss_family = AF_UNSPEC;
  if (connection_open_lanes(receiver->peering.connection) == 0) {
    receiver->inquiry = dial_start(engine, &nic, &receiver->listens, NULL, NULL,
                                   now_ns + INQUIRY_TIMEOUT_NS, inquiry_done, receiver, &error);
  }
  if (error) {
    inquiry_done(receiver, error, NULL, NULL);
  } else {
    inquire_later(receiver, REFUSAL_INQUIRY_NS);
  }
}

static void lane_closed(struct connection *connection, unsigned lane, bool has_left) {
  struct receiver *receiver = connection_setup_data(connection);
  peering_lane_closed(&receiver->peering, lane, has_left);
  if (receiver->listens.ss_family != AF_UNSPEC) {
    inquire_later(receiver, REFUSAL_FIRST_INQUIRY_NS);
  }
}

/* By the NIC that it was accepted on. */
static const char *path_text(struct connection *connection, char text[CONNECTION_PATH_TEXT]) {
  const struct peering *peering = connection_setup_data(connection);
  return peering_path_text(peering, engine_nic(peering->engine), 1, text);
}

static void receiver_free(struct receiver *receiver) {
  id_tree_remove(&engine_lists(receiver->peering.engine)->receivers, receiver->id);
  peering_end(&receiver->peering);
  hash_wipe(&receiver->peering.keys, sizeof receiver->peering.keys);
  free(receiver);
}

static void connection_gone(struct connection *connection) {
  struct receiver *receiver = connection_setup_data(connection);
  engine_timer_stop(&receiver->inquire);
  if (receiver->inquiry) {
    dial_cancel(receiver->inquiry);
  }
  receiver_free(receiver);
}

static const struct connection_setup receiver_setup = { NULL, lane_closed, path_text,
                                                        connection_gone };

int receiver_new(struct engine *engine, const struct hello *hello,
                 const struct sockaddr_storage *from, const struct auth_keys *keys,
                 const struct link_config *link, const char *nic, struct receiver **result) {
  engine_assert_locked(engine);
  struct receiver *receiver = calloc(1, sizeof *receiver);
  if (!receiver) {
    return -ENOMEM;
  }
  receiver->peering.engine = engine;
  receiver->peering.keys = *keys;
  receiver->peering.least_lanes = 1;
  receiver->inquire.expired = inquire_expired;
  memcpy(receiver->id, hello->connection, TOKEN_BYTES);
  int error = id_tree_add(&engine_lists(engine)->receivers, receiver->id);
  if (error) {
    free(receiver);
    return error;
  }
  error = peering_connect(&receiver->peering, link, &receiver_setup, &hello->params, from, nic);
  if (error) {
    receiver_free(receiver);
    return error;
  }
  *result = receiver;
  return 0;
}

struct receiver *receiver_find(struct engine *engine, const uint8_t id[TOKEN_BYTES]) {
  engine_assert_locked(engine);
  uint8_t *found = id_tree_find(&engine_lists(engine)->receivers, id);
  return found ? LIST_ENTRY(found, struct receiver, id) : NULL;
}

void receiver_note_listener(struct receiver *receiver, const struct hello *hello,
                            const struct sockaddr_storage *from) {
  struct sockaddr_storage listens;
  peer_came(receiver->peering.process);
  receiver->listens.ss_family = AF_UNSPEC;
  if (!address_from_wire(&hello->listens, &listens) || listens.ss_family != from->ss_family) {
    return;
  }
  if (!tcp_address_is_same_ip(&listens, from)) {
    char text[TCP_ADDRESS_TEXT];
    if (peer_note_translated(receiver->peering.process)) {
      LOG_INFO("%s: another address dials in place of %s, where its process listens: a proxy or "
               "address translation?",
               receiver->peering.peer, tcp_address_text(&listens, text));
    }
    return;
  }
  receiver->listens = *from; /* with its scope */
  tcp_address_set_port(&receiver->listens, tcp_address_port(&listens));
}
