/* SPDX-License-Identifier: Apache-2.0 */
/* See setup.h and accept.h. */
#include "net_plugin/setup/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/random.h"
#include "common/version.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/accept.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/negotiate.h"
#include "net_plugin/setup/port.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/receiver.h"
#include "net_plugin/setup/settings.h"

struct listener {
  struct engine *engine;
  uint8_t id[TOKEN_BYTES], secret[AUTH_SECRET_BYTES];
  uint8_t handle_key[AUTH_KEY_BYTES]; /* made once, not for each stranger */
  /* Those of the handle and the others; none: the handle has all. */
  struct wire_address addresses[ADDRESSES_MAX];
  struct connection *pending[LISTENER_MAX_PENDING];
  unsigned pending_count;
  int error; /* what accept returns when nothing is pending */
  struct list_node node;
};

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

static struct listener *find(struct engine *engine, const uint8_t id[TOKEN_BYTES]) {
  engine_assert_locked(engine);
  uint8_t *found = id_tree_find(&engine_lists(engine)->listener_ids, id);
  struct listener *listener = found ? LIST_ENTRY(found, struct listener, id) : NULL;
  return listener && listener->pending_count < LISTENER_MAX_PENDING ? listener : NULL;
}

/* ---- handshakes ---- */

static void reply_prepare(struct reply *reply, const struct nic *nic) {
  memset(reply, 0, sizeof *reply);
  snprintf(reply->host, sizeof reply->host, "%s", settings_host_name());
  memcpy(reply->nic, nic->name, sizeof reply->nic);
  reply->process = settings_process();
  reply->decision = decision_get();
}

static int reply_send(int fd, const struct reply *reply) {
  uint8_t bytes[REPLY_BYTES];
  reply_encode(reply, bytes);
  return tcp_socket_send_whole(fd, bytes, REPLY_BYTES);
}

static void refuse(const struct accept_peer *peer, enum reply_status status) {
  struct reply reply;
  reply_prepare(&reply, peer->nic);
  reply.status = (uint16_t)status;
  if (reply_send(peer->talk.fd, &reply) != 0) {
    LOG_TRACE("%s: a peer left before it was refused", peer->nic->name);
  }
}

void accept_refuse_version(const struct accept_peer *peer, const struct handshake_prefix *theirs) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(
      SETUP_WARN_INTERVAL_NS,
      "%s: refused a connection from %s: it runs stratus %s (wire version %u), this host "
      "%s (wire version %u). Install the same release on every host",
      peer->nic->name, tcp_address_text(&peer->from, text), theirs->version, theirs->wire_version,
      STRATUS_VERSION, HANDSHAKE_WIRE_VERSION);
  refuse(peer, REPLY_OTHER_VERSION);
}

static struct terms agree(const struct nic *nic, const struct hello *hello,
                          const struct settings *settings) {
  unsigned keys =
      hello->terms.remote_keys ? endpoint_remote_keys(nic, 1, settings->wants_encryption) : 0;
  struct terms ours = terms_of_listener(settings, keys);
  return negotiate(&ours, &hello->terms);
}

static void warn_if_versions_differ(const struct hello *hello,
                                    const struct sockaddr_storage *from) {
  if (strcmp(hello->prefix.version, STRATUS_VERSION) != 0) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(
        SETUP_WARN_INTERVAL_NS,
        "%s (%s) runs stratus %s, this host %s: compatible, but install the same release "
        "on every host",
        hello->host, tcp_address_text(from, text), hello->prefix.version, STRATUS_VERSION);
  }
}

/* What a hello is for: a connection (another lane, a lane that reconnects, or a first hello whose
 * reply got lost), or a listener, for a new connection. Looked up for each message of the peer:
 * both may have gone in between. */
struct destination {
  struct receiver *receiver;
  struct listener *listener;
  struct auth_keys keys; /* of who knows the handle */
};

static bool destination_find(struct engine *engine, const struct hello *hello,
                             struct destination *to) {
  *to = (struct destination){ .receiver = receiver_find(engine, hello->connection) };
  if (to->receiver) {
    /* The peer may have missed that it has failed. */
    return !connection_has_failed(to->receiver->peering.connection);
  }
  to->listener = hello->is_first ? find(engine, hello->listener) : NULL;
  return to->listener != NULL;
}

int accept_hello(struct accept_peer *peer) {
  engine_assert_locked(peer->talk.engine);
  struct hello hello;
  struct destination to;
  struct challenge challenge = { 0 };
  if (hello_decode(peer->talk.message, &hello) != 0) {
    return -EPROTO;
  }
  memcpy(peer->talk.transcript.hello, peer->talk.message, HELLO_BYTES);
  if (!destination_find(peer->talk.engine, &hello, &to)) {
    refuse(peer, REPLY_UNKNOWN);
    return -ENOENT;
  }
  int error = random_secret(challenge.nonce, NONCE_BYTES);
  if (error) {
    return error;
  }
  challenge_encode(&challenge, peer->talk.transcript.challenge);
  return tcp_socket_send_whole(peer->talk.fd, peer->talk.transcript.challenge, CHALLENGE_BYTES);
}

/* The same for every lane; where only one side wants encryption, it fails instead of falling back.
 */
static bool agree_cipher(const struct settings *settings, const struct hello *hello,
                         const struct sockaddr_storage *from, struct reply *reply) {
  unsigned theirs = hello->terms.ciphers;
  if (!theirs != !settings->wants_encryption ||
      (settings->wants_encryption && !reply->terms.ciphers)) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                   "STRATUS_ENCRYPT is %s on this host, %s, and %s on %s (%s): no connection. Set "
                   "it on every host, or on none",
                   settings->wants_encryption ? "on" : "off", settings_host_name(),
                   theirs ? "on" : "off", hello->host, tcp_address_text(from, text));
    reply->status = REPLY_OTHER_ENCRYPTION;
    return false;
  }
  return true;
}

/* It knows the secrets, so it is a rank of this job, and NCCL's accept ends with this error, too:
 * nobody else will come. */
static bool check_decisions(const struct hello *hello, const struct sockaddr_storage *from,
                            const struct destination *to, struct reply *reply) {
  struct decision ours = decision_get();
  if (decision_is_same(&ours, &hello->decision)) {
    return true;
  }
  char address[TCP_ADDRESS_TEXT];
  decision_tell(hello->host, tcp_address_text(from, address), &hello->decision);
  to->listener->error = -EPROTO;
  reply->status = REPLY_OTHER_DECISIONS;
  return false;
}

/* The peer has proved that it may join; fills in the reply, and the connection if one was made or
 * found. */
static void grant(const struct accept_peer *peer, const struct hello *hello, struct destination *to,
                  struct reply *reply) {
  struct settings settings;
  settings_get(1, &settings);
  reply->terms = agree(peer->nic, hello, &settings);
  if (!agree_cipher(&settings, hello, &peer->from, reply)) {
    return;
  }
  if (to->receiver) {
    struct connection *connection = to->receiver->peering.connection;
    if (!connection_lane_fenced(connection, hello->lane, hello->epoch, &reply->received_before)) {
      reply->status = REPLY_REFUSED;
      return;
    }
    if (!peering_take_lane(&to->receiver->peering, hello->lane)) {
      reply->status = REPLY_NO_RESOURCES;
      return;
    }
    /* An earlier hello made it, maybe with more keys than this one asks for: its link tells
     * remote buffers. */
    reply->terms.remote_keys = (uint8_t)connection_remote_keys(connection);
    reply->terms.codec = connection_takes_codec(connection, hello->lane) ? CODEC_VERSION : 0;
    reply->terms.lanes = (uint16_t)connection_lane_count(connection);
    if (hello->is_first) {
      memcpy(reply->addresses, to->receiver->addresses, sizeof reply->addresses);
    }
    return;
  }
  if (!check_decisions(hello, &peer->from, to, reply)) {
    return;
  }
  warn_if_versions_differ(hello, &peer->from);
  struct link_config link = negotiate_link(LINK_RECEIVER, &reply->terms, &settings, 0);
  if (receiver_new(peer->talk.engine, hello, &peer->from, &to->keys, &link, peer->nic->name,
                   &to->receiver) != 0) {
    reply->status = REPLY_NO_RESOURCES;
    LOG_WARN("cannot accept a connection from %s: out of memory", hello->host);
    return;
  }
  memcpy(to->receiver->addresses, to->listener->addresses, sizeof to->receiver->addresses);
  memcpy(reply->addresses, to->listener->addresses, sizeof reply->addresses);
}

/* ---- endpoints ---- */

/* Does the peer's offer get an answer? As the reply will say. */
static bool wants_endpoint(const struct nic *nic, const struct hello *hello,
                           const struct proof *proof, const struct destination *to) {
  if (lane_offer_is_none(&proof->offer)) {
    return false;
  }
  if (to->receiver) {
    return connection_remote_keys(to->receiver->peering.connection) > 0;
  }
  struct settings settings;
  settings_get(1, &settings);
  return agree(nic, hello, &settings).remote_keys > 0;
}

/* Begins to make one and to connect it. NULL: there is none. */
static struct endpoint *start_endpoint(const struct accept_peer *peer, const struct hello *hello,
                                       const struct proof *proof, const struct destination *to) {
  struct lane_tokens tokens;
  if (!wants_endpoint(peer->nic, hello, proof, to)) {
    return NULL;
  }
  auth_endpoint_tokens(&to->keys, &peer->talk.transcript, &tokens);
  const struct endpoint_peer other = { &proof->offer, &tokens, peer->talk.fd, hello->dscp };
  struct endpoint *endpoint = endpoint_accept(peer->nic, &other);
  hash_wipe(&tokens, sizeof tokens);
  return endpoint;
}

/* What was granted meanwhile may have no use for it. The peer may send from the moment that it has
 * the reply. */
static struct endpoint *describe_endpoint(const struct destination *to, struct endpoint *endpoint,
                                          struct reply *reply) {
  if (!endpoint || !to->receiver || reply->terms.remote_keys == 0) {
    endpoint_free(endpoint);
    return NULL;
  }
  endpoint->key_index = connection_key_index(to->receiver->peering.connection, endpoint->domain);
  endpoint_describe(endpoint, &reply->offer);
  reply->connect_port = endpoint->port;
  return endpoint;
}

/* Sends the reply, and does what it says. */
static void complete(const struct accept_peer *peer, const struct hello *hello,
                     const struct destination *to, const struct reply *reply,
                     const struct lane_path *path) {
  int fd = peer->talk.fd, error = reply_send(fd, reply);
  if (!to->receiver) {
    descriptor_close(fd);
    return;
  }
  struct connection *connection = to->receiver->peering.connection;
  if (error) {
    /* The peer left meanwhile. A connection that NCCL has not seen yet goes, too; others get the
     * lane later. */
    lane_path_drop(path);
    if (to->listener) {
      connection_destroy(connection);
    } else {
      connection_lane_failed(connection, hello->lane, hello->epoch);
    }
    return;
  }
  tcp_socket_tune(fd, peer->from.ss_family, hello->dscp);
  tcp_socket_bind_accepted(fd, peer->nic, &peer->from);
  receiver_note_listener(to->receiver, hello, &peer->from);
  if (to->listener) {
    to->listener->pending[to->listener->pending_count++] = connection;
  }
  connection_lane_opened(connection, hello->lane, hello->epoch, path, 0);
}

/* Both users get a warning. The listener goes on: the peer may only have read the handle. */
static void warn_of_other_secret(const struct accept_peer *peer, const struct hello *hello) {
  char text[TCP_ADDRESS_TEXT], why[PROTECTION_TEXT_BYTES];
  LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS, "%s",
                 protection_secret_differs(hello->host, tcp_address_text(&peer->from, text),
                                           hello->has_secret, why));
}

/* The proof is right: sends the reply, and does what it says. */
static void answer(const struct accept_peer *peer, const struct hello *hello, bool has_secret,
                   struct destination *to, struct endpoint *endpoint) {
  struct reply reply;
  reply_prepare(&reply, peer->nic);
  reply.has_secret = protection_has_secret();
  if (has_secret) {
    grant(peer, hello, to, &reply);
  } else {
    warn_of_other_secret(peer, hello);
    reply.status = REPLY_OTHER_SECRET;
  }
  if (reply.status != REPLY_ACCEPTED) {
    to->receiver = NULL;
  }
  struct lane_path path = { .fd = peer->talk.fd };
  path.endpoint = describe_endpoint(to, endpoint, &reply);
  auth_sign_reply(&to->keys, &peer->talk.transcript, &reply);
  struct lane_crypto crypto;
  auth_lane_keys(&to->keys, &peer->talk.transcript, terms_cipher(&reply.terms), false, &crypto);
  path.crypto = crypto.cipher != LANE_PLAIN ? &crypto : NULL;
  complete(peer, hello, to, &reply, &path);
  hash_wipe(&crypto, sizeof crypto);
}

/* -EACCES: it does not know the handle. has_secret: it knows the job's secret, too. */
static int judge(const struct transcript *transcript, const struct hello *hello,
                 const struct proof *proof, struct destination *to, bool *has_secret) {
  const uint8_t *handle_key =
      to->receiver ? to->receiver->peering.keys.handle : to->listener->handle_key;
  if (!auth_knows_handle(handle_key, transcript, proof)) {
    return -EACCES;
  }
  /* A stranger does not make us derive any. */
  if (to->receiver) {
    to->keys = to->receiver->peering.keys;
  } else {
    protection_keys(to->listener->secret, hello->connection, &to->keys);
  }
  *has_secret = auth_knows_connection(&to->keys, transcript, proof);
  return 0;
}

static int take_proof(struct accept_peer *peer, bool may_wait) {
  struct hello hello;
  struct proof proof;
  struct destination to = { 0 };
  struct endpoint **endpoint = &peer->talk.endpoint;
  bool has_secret = false, is_over = true;
  int error = 0;
  engine_assert_locked(peer->talk.engine);
  if (hello_decode(peer->talk.transcript.hello, &hello) != 0 ||
      proof_decode(peer->talk.message, &proof) != 0) {
    error = -EPROTO;
  } else if (!destination_find(peer->talk.engine, &hello, &to)) {
    refuse(peer, REPLY_UNKNOWN);
  } else {
    error = judge(&peer->talk.transcript, &hello, &proof, &to, &has_secret);
    is_over = error;
  }
  if (is_over) {
    talk_close(&peer->talk);
  } else if (may_wait && has_secret &&
             (*endpoint = start_endpoint(peer, &hello, &proof, &to)) != NULL) {
    error = -EINPROGRESS;
  } else {
    answer(peer, &hello, has_secret, &to, *endpoint);
  }
  hash_wipe(&to, sizeof to);
  return error;
}

int accept_proof(struct accept_peer *peer) {
  return take_proof(peer, true);
}

void accept_answer(struct accept_peer *peer) {
  take_proof(peer, false);
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
