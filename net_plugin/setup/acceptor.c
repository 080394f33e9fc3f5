/* SPDX-License-Identifier: Apache-2.0 */
/* See acceptor.h. */
#include "net_plugin/setup/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/random.h"
#include "common/version.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/id_tree.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/protection.h"
#include "net_plugin/setup/receiver.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/setup/talk.h"

enum pending_peer_state { PENDING_PEER_HELLO, PENDING_PEER_PROOF, PENDING_PEER_PROVED };

struct pending_peer {
  struct talk talk;
  struct acceptor *acceptor;
  struct list_node node;
  enum pending_peer_state state;
  struct sockaddr_storage from;
  uint64_t since_ns;                     /* when it was accepted */
  struct in6_addr source;                /* IPv4: mapped */
  unsigned network_peers, address_peers; /* waiting from there, itself included */
};

/* ---- where they come from ---- */

/* Of IPv6, the network: its owner has all addresses in it. */
#define NETWORK_BYTES 8

static bool is_same_network(const struct in6_addr *one, const struct in6_addr *other) {
  bool is_mapped = IN6_IS_ADDR_V4MAPPED(one) || IN6_IS_ADDR_V4MAPPED(other);
  return memcmp(one, other, is_mapped ? sizeof *one : NETWORK_BYTES) == 0;
}

/* It comes (1), or goes (-1): whoever waits from there has one more, or one less, beside it. */
static void count_source(struct pending_peer *peer, int change) {
  struct acceptor *acceptor = peer->acceptor;
  acceptor->count += (unsigned)change;
  LIST_FOR_EACH(node, &acceptor->waiting) {
    struct pending_peer *other = LIST_ENTRY(node, struct pending_peer, node);
    bool is_near = is_same_network(&other->source, &peer->source);
    bool is_same = IN6_ARE_ADDR_EQUAL(&other->source, &peer->source);
    other->network_peers += (unsigned)change * is_near;
    other->address_peers += (unsigned)change * is_same;
    peer->network_peers += change > 0 ? is_near : 0;
    peer->address_peers += change > 0 ? is_same : 0;
  }
}

/* The heaviest goes first. */
static uint64_t weight_of(const struct pending_peer *peer) {
  bool is_silent = peer->state == PENDING_PEER_HELLO;
  return (uint64_t)peer->network_peers << 32 | (uint64_t)peer->address_peers << 1 | is_silent;
}

/* ---- the end of a peer ---- */

static void pending_peer_leave(struct pending_peer *peer) {
  list_remove(&peer->node);
  if (peer->state != PENDING_PEER_PROVED) {
    count_source(peer, -1);
  }
}

static void pending_peer_close(struct pending_peer *peer) {
  pending_peer_leave(peer);
  talk_close(&peer->talk);
  free(peer);
}

/* ---- what it gets ---- */

static struct reply reply_of(const struct pending_peer *peer, enum reply_status status) {
  struct reply reply = { .params = *settings_identity(), .status = (uint16_t)status };
  memcpy(reply.params.nic, peer->acceptor->nic.name, sizeof reply.params.nic);
  return reply;
}

/* That it has sent, once it has. */
static const struct hello *hello_of(const struct pending_peer *peer) {
  return &peer->talk.transcript.hello;
}

/* One that has left needs no answer. */
static void refuse(const struct pending_peer *peer, enum reply_status status) {
  struct reply reply = reply_of(peer, status);
  handshake_finish(&reply, HANDSHAKE_REPLY);
  (void)tcp_socket_send_whole(peer->talk.fd, &reply, REPLY_BYTES);
}

static void refuse_version(const struct pending_peer *peer, const struct handshake_prefix *theirs) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(
      SETUP_WARN_INTERVAL_NS,
      "%s: refused a connection from %s: it runs stratus %s (wire version %u), this host "
      "%s (wire version %u). Install the same release on every host",
      peer->acceptor->nic.name, tcp_address_text(&peer->from, text), theirs->version,
      theirs->wire_version, STRATUS_VERSION, HANDSHAKE_WIRE_VERSION);
  refuse(peer, REPLY_OTHER_VERSION);
}

static struct conn_params agree(const struct pending_peer *peer, const struct settings *settings) {
  const struct nic *nic = &peer->acceptor->nic;
  const struct conn_params *theirs = &hello_of(peer)->params;
  unsigned keys =
      theirs->remote_keys ? endpoint_remote_keys(nic, 1, settings->wants_encryption) : 0;
  struct conn_params ours = settings_of_listener(settings, keys);
  memcpy(ours.nic, nic->name, sizeof ours.nic);
  return params_agreed(&ours, theirs);
}

static void warn_if_versions_differ(const struct pending_peer *peer) {
  const struct hello *hello = hello_of(peer);
  if (strcmp(hello->prefix.version, STRATUS_VERSION) != 0) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(
        SETUP_WARN_INTERVAL_NS,
        "%s (%s) runs stratus %s, this host %s: compatible, but install the same release "
        "on every host",
        hello->params.host, tcp_address_text(&peer->from, text), hello->prefix.version,
        STRATUS_VERSION);
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
  void *const *listeners = &engine_lists(engine)->listener_ids;
  uint8_t *found = hello->is_first ? id_tree_find(listeners, hello->listener) : NULL;
  to->listener = found ? LIST_ENTRY(found, struct listener, id) : NULL;
  return to->listener && to->listener->pending_count < LISTENER_MAX_PENDING;
}

/* The same for every lane; where only one side wants encryption, it fails instead of falling back.
 */
static bool is_cipher_agreed(const struct pending_peer *peer, bool is_wanted,
                             const struct conn_params *agreed) {
  const struct conn_params *params = &hello_of(peer)->params;
  unsigned theirs = params->ciphers;
  bool is_agreed = is_wanted ? agreed->ciphers != 0 : !theirs;
  if (!is_agreed) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                   "STRATUS_ENCRYPT is %s on this host, %s, and %s on %s (%s): no connection. Set "
                   "it on every host, or on none",
                   is_wanted ? "on" : "off", agreed->host, theirs ? "on" : "off", params->host,
                   tcp_address_text(&peer->from, text));
  }
  return is_agreed;
}

/* The peer has proved that it may join: the reply's status. Fills in the reply, and the connection
 * if one was made or found. */
static enum reply_status grant(const struct pending_peer *peer, struct destination *to,
                               struct reply *reply) {
  const struct hello *hello = hello_of(peer);
  struct settings settings;
  settings_get(1, &settings);
  reply->params = agree(peer, &settings);
  if (!is_cipher_agreed(peer, settings.wants_encryption, &reply->params)) {
    return REPLY_OTHER_ENCRYPTION;
  }
  if (to->receiver) {
    struct connection *connection = to->receiver->peering.connection;
    if (!connection_lane_fenced(connection, hello->lane, hello->epoch)) {
      return REPLY_REFUSED;
    }
    if (!peering_take_lane(&to->receiver->peering, hello->lane)) {
      return REPLY_NO_RESOURCES;
    }
    /* An earlier hello made it, maybe with more keys than this one asks for: its link tells
     * remote buffers. */
    reply->params.remote_keys = (uint8_t)connection_remote_keys(connection);
    reply->params.codec = connection_takes_codec(connection, hello->lane) ? CODEC_VERSION : 0;
    reply->params.lanes = (uint16_t)connection_lane_count(connection);
    if (hello->is_first) {
      memcpy(reply->addresses, to->receiver->addresses, sizeof reply->addresses);
    }
    return REPLY_ACCEPTED;
  }
  if (!decision_is_same(&reply->params.decision, &hello->params.decision)) {
    char address[TCP_ADDRESS_TEXT];
    decision_tell(&reply->params, &hello->params, tcp_address_text(&peer->from, address));
    /* It knows the secrets, so it is a rank of this job, and nobody else will come. */
    to->listener->error = -EPROTO;
    return REPLY_OTHER_DECISIONS;
  }
  warn_if_versions_differ(peer);
  struct link_config link = settings_of_link(LINK_RECEIVER, &reply->params, &settings, 0);
  if (receiver_new(peer->talk.engine, hello, &peer->from, &to->keys, &link,
                   peer->acceptor->nic.name, &to->receiver) != 0) {
    LOG_WARN("cannot accept a connection from %s: out of memory", hello->params.host);
    return REPLY_NO_RESOURCES;
  }
  memcpy(to->receiver->addresses, to->listener->addresses, sizeof to->receiver->addresses);
  memcpy(reply->addresses, to->listener->addresses, sizeof reply->addresses);
  return REPLY_ACCEPTED;
}

/* ---- endpoints ---- */

/* Begins to make one and to connect it. NULL: there is none. The peer's offer gets an answer where
 * the reply will say so. */
static struct endpoint *start_endpoint(const struct pending_peer *peer,
                                       const struct destination *to) {
  const struct proof *proof = &peer->talk.message.proof;
  struct lane_tokens tokens;
  struct settings settings;
  if (!proof->offer.kind) {
    return NULL;
  }
  settings_get(1, &settings);
  if (to->receiver ? !connection_remote_keys(to->receiver->peering.connection)
                   : !agree(peer, &settings).remote_keys) {
    return NULL;
  }
  auth_endpoint_tokens(&to->keys, &peer->talk.transcript, &tokens);
  const struct endpoint_peer other = { &proof->offer, &tokens, peer->talk.fd,
                                       hello_of(peer)->dscp };
  struct endpoint *endpoint = endpoint_accept(&peer->acceptor->nic, &other);
  hash_wipe(&tokens, sizeof tokens);
  return endpoint;
}

/* What was granted meanwhile may have no use for it. The peer may send from the moment that it has
 * the reply. */
static struct endpoint *describe_endpoint(const struct destination *to, struct endpoint *endpoint,
                                          struct reply *reply) {
  if (!endpoint || !to->receiver || reply->params.remote_keys == 0) {
    endpoint_free(endpoint);
    return NULL;
  }
  endpoint->key_index = connection_key_index(to->receiver->peering.connection, endpoint->domain);
  endpoint_describe(endpoint, &reply->offer);
  reply->connect_port = endpoint->port;
  return endpoint;
}

/* Sends the reply, and does what it says. */
static void complete(const struct pending_peer *peer, const struct destination *to,
                     const struct reply *reply, const struct lane_path *path) {
  const struct hello *hello = hello_of(peer);
  int fd = peer->talk.fd, error = tcp_socket_send_whole(fd, reply, REPLY_BYTES);
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
  tcp_socket_bind_accepted(fd, &peer->acceptor->nic, &peer->from);
  receiver_note_listener(to->receiver, hello, &peer->from);
  if (to->listener) {
    to->listener->pending[to->listener->pending_count++] = connection;
  }
  connection_lane_opened(connection, hello->lane, hello->epoch, path);
}

/* The proof is right: sends the reply, and does what it says. */
static void reply_to(struct pending_peer *peer, bool has_secret, struct destination *to) {
  struct reply reply = reply_of(peer, REPLY_ACCEPTED);
  if (has_secret) {
    reply.status = (uint16_t)grant(peer, to, &reply);
  } else {
    /* Both users get a warning. The listener goes on: the peer may only have read the handle. */
    char text[TCP_ADDRESS_TEXT], why[PROTECTION_TEXT_BYTES];
    reply.params.has_secret = protection_has_secret();
    protection_secret_differs(&reply.params, &hello_of(peer)->params,
                              tcp_address_text(&peer->from, text), why);
    LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS, "%s", why);
    reply.status = REPLY_OTHER_SECRET;
  }
  if (reply.status != REPLY_ACCEPTED) {
    to->receiver = NULL;
  }
  struct lane_path path = { .fd = peer->talk.fd };
  path.endpoint = describe_endpoint(to, peer->talk.endpoint, &reply);
  auth_sign_reply(&to->keys, &peer->talk.transcript, &reply);
  struct lane_crypto crypto;
  auth_lane_keys(&to->keys, &peer->talk.transcript, params_cipher(&reply.params), false, &crypto);
  path.crypto = crypto.cipher != LANE_PLAIN ? &crypto : NULL;
  complete(peer, to, &reply, &path);
  hash_wipe(&crypto, sizeof crypto);
}

/* -EACCES: it does not know the handle. has_secret: it knows the job's secret, too. */
static int judge(const struct pending_peer *peer, struct destination *to, bool *has_secret) {
  const struct proof *proof = &peer->talk.message.proof;
  const struct transcript *transcript = &peer->talk.transcript;
  const uint8_t *handle_key =
      to->receiver ? to->receiver->peering.keys.handle : to->listener->handle_key;
  if (!auth_is_proof(handle_key, transcript, proof, proof->handle)) {
    return -EACCES;
  }
  /* A stranger does not make us derive any. */
  if (to->receiver) {
    to->keys = to->receiver->peering.keys;
  } else {
    protection_keys(to->listener->secret, hello_of(peer)->connection, &to->keys);
  }
  *has_secret = auth_is_proof(to->keys.connection, transcript, proof, proof->connection);
  return 0;
}

/* The proof is complete. -EINPROGRESS: an endpoint is being made for the peer, if that may be
 * waited for; then it is judged again. Else the socket is gone: the reply was sent, and it was
 * handed on, or closed. -EACCES: a stranger, who gets no answer. */
static int take_proof(struct pending_peer *peer, bool may_wait) {
  struct destination to = { 0 };
  bool has_secret = false, is_over = true;
  int error = 0;
  if (!destination_find(peer->talk.engine, hello_of(peer), &to)) {
    refuse(peer, REPLY_UNKNOWN);
  } else {
    error = judge(peer, &to, &has_secret);
    is_over = error;
  }
  if (is_over) {
    talk_close(&peer->talk);
  } else if (may_wait && has_secret && (peer->talk.endpoint = start_endpoint(peer, &to)) != NULL) {
    error = -EINPROGRESS;
  } else {
    talk_stop(&peer->talk);
    reply_to(peer, has_secret, &to);
  }
  hash_wipe(&to, sizeof to);
  return error;
}

static void warn_rejected(const struct pending_peer *peer, const char *why) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                 "%s: rejected a connection from %s: %s (a port scanner or a foreign service; the "
                 "job goes on)",
                 peer->acceptor->nic.name, tcp_address_text(&peer->from, text), why);
}

static void pending_peer_reject(struct pending_peer *peer, const char *why) {
  warn_rejected(peer, why);
  pending_peer_close(peer);
}

/* A challenge that was lost is not waited for: the peer dials anew. The end of the stream, behind
 * it, tells it so at once, as TCP then sends both again. */
static void unheard(struct talk *talk, uint64_t now_ns) {
  (void)now_ns;
  pending_peer_close((struct pending_peer *)talk);
}

/* ---- what a peer sends ---- */

static void hello_arrived(struct pending_peer *peer) {
  struct transcript *transcript = &peer->talk.transcript;
  struct destination to;
  int error = -ENOENT;
  transcript->hello = peer->talk.message.hello;
  if (!destination_find(peer->talk.engine, &transcript->hello, &to)) {
    refuse(peer, REPLY_UNKNOWN);
  } else if (!(error = random_secret(transcript->challenge.nonce, NONCE_BYTES))) {
    handshake_finish(&transcript->challenge, HANDSHAKE_CHALLENGE);
    error = tcp_socket_send_whole(peer->talk.fd, &transcript->challenge, CHALLENGE_BYTES);
  }
  if (error) {
    pending_peer_close(peer);
  } else {
    peer->state = PENDING_PEER_PROOF;
    talk_look_later(&peer->talk);
  }
}

/* Without an endpoint the lane is a TCP flow. */
static void joined(struct talk *talk, int error) {
  struct pending_peer *peer = (struct pending_peer *)talk;
  pending_peer_leave(peer);
  if (error) {
    talk_drop_endpoint(talk);
  }
  take_proof(peer, false);
  free(peer);
}

static void proof_arrived(struct pending_peer *peer) {
  pending_peer_leave(peer);
  peer->state = PENDING_PEER_PROVED;
  int error = take_proof(peer, true);
  if (error == -EINPROGRESS) {
    list_push_back(&peer->acceptor->proved, &peer->node);
    error = talk_join(&peer->talk, ACCEPT_PATIENCE_NS);
    if (error) {
      joined(&peer->talk, error);
    }
    return;
  }
  if (error) {
    warn_rejected(peer, "it does not belong to this job");
  }
  free(peer);
}

static void heard(struct talk *talk, int error, enum handshake_kind kind) {
  struct pending_peer *peer = (struct pending_peer *)talk;
  bool is_hello = peer->state == PENDING_PEER_HELLO;
  if (error == -EPROTONOSUPPORT && is_hello) {
    refuse_version(peer, &talk->message.prefix);
    pending_peer_close(peer);
  } else if (error == -ETIMEDOUT) {
    pending_peer_reject(peer, "it did not say in time who it is");
  } else if (error == -EPROTO || error == -EPROTONOSUPPORT || error == -EINVAL ||
             (!error && kind != (is_hello ? HANDSHAKE_HELLO : HANDSHAKE_PROOF))) {
    pending_peer_reject(peer, "it does not speak this protocol");
  } else if (error) {
    /* A health check of the cloud, or a peer that gave up: nothing worth a word. */
    pending_peer_close(peer);
  } else if (is_hello) {
    hello_arrived(peer);
  } else {
    proof_arrived(peer);
  }
}

static const struct talk_ops peer_ops = { NULL, heard, unheard, joined };

static struct pending_peer *first_of(const struct list *list) {
  struct list_node *node = list_first(list);
  return node ? LIST_ENTRY(node, struct pending_peer, node) : NULL;
}

bool acceptor_evict_oldest(struct acceptor *acceptor, uint64_t before_ns) {
  struct pending_peer *oldest = first_of(&acceptor->waiting);
  bool has_had_turn = oldest && oldest->since_ns <= before_ns;
  if (has_had_turn) {
    pending_peer_reject(oldest, "descriptors are missing, and it has not proved who it is");
  }
  return has_had_turn;
}

static void evict_one(struct acceptor *acceptor) {
  struct pending_peer *chosen = first_of(&acceptor->waiting);
  LIST_FOR_EACH(node, &acceptor->waiting) {
    struct pending_peer *peer = LIST_ENTRY(node, struct pending_peer, node);
    chosen = weight_of(peer) > weight_of(chosen) ? peer : chosen;
  }
  pending_peer_reject(chosen, "too many strangers at once");
}

void acceptor_init(struct acceptor *acceptor, struct engine *engine, const struct nic *nic) {
  acceptor->engine = engine;
  acceptor->nic = *nic;
  list_init(&acceptor->waiting);
  list_init(&acceptor->proved);
}

void acceptor_admit(struct acceptor *acceptor, int fd, const struct sockaddr_storage *from,
                    unsigned most) {
  engine_assert_locked(acceptor->engine);
  while (acceptor->count >= most) {
    evict_one(acceptor);
  }
  struct pending_peer *peer = calloc(1, sizeof *peer);
  if (!peer) {
    descriptor_close(fd);
    return;
  }
  struct wire_address source;
  address_to_wire(from, &source);
  memcpy(&peer->source, source.ip, sizeof peer->source);
  peer->acceptor = acceptor;
  peer->since_ns = clock_now_ns();
  peer->from = *from;
  talk_init(&peer->talk, acceptor->engine, &peer_ops, peer->since_ns + PENDING_PEER_NS);
  peer->talk.fd = fd;
  peer->network_peers = peer->address_peers = 1;
  count_source(peer, 1);
  list_push_back(&acceptor->waiting, &peer->node);
  if (talk_watch(&peer->talk, TALK_LISTENING) != 0) {
    pending_peer_reject(peer, "it cannot be watched");
  } else {
    talk_set_timer(&peer->talk, peer->talk.deadline_ns);
  }
}

void acceptor_close_all(struct acceptor *acceptor) {
  struct pending_peer *peer;
  while ((peer = first_of(&acceptor->waiting)) || (peer = first_of(&acceptor->proved))) {
    pending_peer_close(peer);
  }
}
