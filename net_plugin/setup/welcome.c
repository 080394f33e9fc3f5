/* SPDX-License-Identifier: Apache-2.0 */
/* See welcome.h. */
#include "net_plugin/setup/welcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/version.h"
#include "net_plugin/lane/rdma/rdma_cm.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/listener_registry.h"
#include "net_plugin/setup/peering.h"
#include "net_plugin/setup/rdma_choice.h"
#include "net_plugin/setup/secret.h"
#include "net_plugin/setup/settings.h"

#define WARN_INTERVAL_NS (30 * NS_PER_S)

static void reply_prepare(struct reply *reply, const struct nic *nic) {
  memset(reply, 0, sizeof *reply);
  reply->wire_version = HANDSHAKE_WIRE_VERSION;
  snprintf(reply->version, sizeof reply->version, "%s", STRATUS_VERSION);
  snprintf(reply->host, sizeof reply->host, "%s", settings_host_name());
  memcpy(reply->nic, nic->name, sizeof reply->nic);
  reply->process = settings_process();
  reply->decision = decision_get();
}

/* A fresh socket takes the whole message at once. */
static int send_whole(int fd, const uint8_t *message, size_t bytes) {
  ssize_t n = send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}

static int reply_send(int fd, const struct reply *reply) {
  uint8_t bytes[REPLY_BYTES];
  reply_encode(reply, bytes);
  return send_whole(fd, bytes, REPLY_BYTES);
}

void welcome_other_version(const struct nic *nic, uint16_t wire_version, const char *version,
                           int fd, const struct sockaddr_storage *from) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(
      WARN_INTERVAL_NS,
      "%s: refused a connection from %s: it runs stratus %s (wire version %u), this host "
      "%s (wire version %u). Install the same release on every host",
      nic->name, tcp_address_text(from, text), version, wire_version, STRATUS_VERSION,
      HANDSHAKE_WIRE_VERSION);
  struct reply reply;
  reply_prepare(&reply, nic);
  reply.status = REPLY_OTHER_VERSION;
  if (reply_send(fd, &reply) != 0) {
    LOG_TRACE("%s left before it was told", text);
  }
}

/* The receiving end of a new connection. */
static int make_connection(struct engine *engine, const struct nic *nic, const struct hello *hello,
                           const struct auth_keys *keys, const struct sockaddr_storage *from,
                           const struct reply *reply, struct connection **connection) {
  struct settings settings;
  settings_get(1, &settings);
  struct connection_config config = {
    .link = { .role = LINK_RECEIVER,
              .lanes = reply->lanes,
              .chunk_bytes = hello->chunk_bytes,
              .eager_bytes = reply->eager_bytes,
              .eager_slots = reply->eager_slots,
              .wants_checksums = reply->has_checksums,
              .remote_keys = reply->remote_keys,
              .timeout_ns = settings.link_timeout_ns,
              .stopped_timeout_ns = settings.stopped_timeout_ns,
              .seed = clock_now_ns() },
  };
  peering_name(config.peer, hello->host, from, hello->nic);
  memcpy(config.nic, nic->name, sizeof nic->name);
  return peering_new(engine, &config, hello, keys, NULL, connection);
}

/* What this side grants of what the hello wants. */
static void agree(const struct nic *nic, const struct hello *hello, struct reply *reply) {
  struct settings settings;
  settings_get(1, &settings);
  /* The dialling side opens them, so it decides, as long as this side has descriptors for them. */
  reply->lanes = hello->lanes;
  reply->eager_bytes =
      hello->eager_bytes < settings.eager_bytes ? hello->eager_bytes : settings.eager_bytes;
  reply->eager_slots =
      hello->eager_slots < settings.eager_slots ? hello->eager_slots : settings.eager_slots;
  reply->has_checksums = hello->wants_checksums || settings.wants_checksums;
  unsigned keys = hello->remote_keys ? rdma_choice_remote_keys(nic, 1) : 0;
  reply->remote_keys = hello->remote_keys < keys ? hello->remote_keys : (uint8_t)keys;
  if (!reply->eager_bytes || !reply->eager_slots) {
    reply->eager_bytes = reply->eager_slots = 0;
  }
}

static void warn_if_versions_differ(const struct hello *hello,
                                    const struct sockaddr_storage *from) {
  if (strcmp(hello->version, STRATUS_VERSION) != 0) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(
        WARN_INTERVAL_NS,
        "%s (%s) runs stratus %s, this host %s: compatible, but install the same release "
        "on every host",
        hello->host, tcp_address_text(from, text), hello->version, STRATUS_VERSION);
  }
}

/* Whom a hello is for: a connection (another lane, a lane dialled anew, or a first hello whose
 * answer got lost), or a listener that is to make one. Looked up for each message of the guest: in
 * between, things come and go. */
struct host {
  struct connection *connection;
  struct listener *listener;
  struct auth_keys keys;
};

static bool host_find(struct engine *engine, const struct hello *hello, struct host *host) {
  *host = (struct host){ .connection = peering_find(engine, hello->connection) };
  if (host->connection) {
    host->keys = *peering_keys(host->connection);
    return !connection_has_failed(host->connection); /* the peer may have missed that it did */
  }
  host->listener = hello->is_first ? listener_find(engine, hello->listener) : NULL;
  if (!host->listener) {
    return false;
  }
  uint8_t digest[AUTH_KEY_BYTES];
  const uint8_t *job = secret_get(digest);
  auth_keys_derive(listener_secret(host->listener), job, hello->connection, &host->keys);
  hash_wipe(digest, sizeof digest);
  return true;
}

static void refuse_unknown(const struct nic *nic, int fd) {
  struct reply reply;
  reply_prepare(&reply, nic);
  reply.status = REPLY_UNKNOWN;
  if (reply_send(fd, &reply) != 0) {
    LOG_TRACE("%s: a guest left before it was refused", nic->name);
  }
}

int welcome_hello(struct engine *engine, const struct nic *nic, struct welcome_talk *talk, int fd) {
  struct hello hello;
  struct host host;
  struct challenge challenge = { .wire_version = HANDSHAKE_WIRE_VERSION,
                                 .version = STRATUS_VERSION };
  if (hello_decode(talk->hello, &hello) != 0) {
    return -EPROTO;
  }
  bool is_known = host_find(engine, &hello, &host);
  hash_wipe(&host, sizeof host);
  if (!is_known) {
    refuse_unknown(nic, fd);
    return -ENOENT;
  }
  if (getrandom(challenge.nonce, NONCE_BYTES, 0) != NONCE_BYTES) {
    return -EIO;
  }
  challenge_encode(&challenge, talk->challenge);
  return send_whole(fd, talk->challenge, CHALLENGE_BYTES);
}

/* The same for every lane; a wish that the other side does not share is never given up silently. */
static bool agree_on_cipher(const struct hello *hello, const struct sockaddr_storage *from,
                            struct reply *reply) {
  struct settings settings;
  settings_get(1, &settings);
  unsigned common = hello->ciphers & settings.ciphers;
  if (!hello->ciphers != !settings.wants_encryption || (settings.wants_encryption && !common)) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(WARN_INTERVAL_NS,
                   "STRATUS_ENCRYPT is %s on this host, %s, and %s on %s (%s): no connection. Set "
                   "it on every host, or on none",
                   settings.wants_encryption ? "on" : "off", settings_host_name(),
                   hello->ciphers ? "on" : "off", hello->host, tcp_address_text(from, text));
    reply->status = REPLY_OTHER_ENCRYPTION;
    return false;
  }
  reply->cipher = common ? (uint8_t)__builtin_ctz(common) : LANE_PLAIN;
  return true;
}

/* It knows the secrets, so it is a rank of this job, and NCCL's accept ends with this error, too:
 * nobody else will come. */
static bool agree_on_decisions(const struct hello *hello, const struct sockaddr_storage *from,
                               const struct host *host, struct reply *reply) {
  struct decision ours = decision_get();
  if (decision_is_same(&ours, &hello->decision)) {
    return true;
  }
  char address[TCP_ADDRESS_TEXT];
  decision_tell(hello->host, tcp_address_text(from, address), &hello->decision);
  listener_fail(host->listener, -EPROTO);
  reply->status = REPLY_OTHER_DECISIONS;
  return false;
}

/* What becomes of a guest that may come in; fills in the reply, and the connection if one was made
 * or found. */
static void decide(struct engine *engine, const struct nic *nic, const struct hello *hello,
                   const struct sockaddr_storage *from, struct host *host, struct reply *reply) {
  agree(nic, hello, reply);
  if (!agree_on_cipher(hello, from, reply)) {
    host->connection = NULL;
    return;
  }
  if (host->connection) {
    if (!connection_lane_fenced(host->connection, hello->lane, hello->epoch,
                                &reply->received_before)) {
      reply->status = REPLY_REFUSED;
      host->connection = NULL;
      return;
    }
    if (!peering_take_lane(host->connection, hello->lane)) {
      reply->status = REPLY_NO_RESOURCES;
      host->connection = NULL;
      return;
    }
    /* An earlier hello made it, maybe with more keys than this one asks for: its link speaks of
     * targets. */
    reply->remote_keys = (uint8_t)connection_remote_keys(host->connection);
    reply->lanes = (uint16_t)connection_lane_count(host->connection);
    if (hello->is_first) {
      reply->addresses = *peering_addresses(host->connection);
    }
    return;
  }
  if (!agree_on_decisions(hello, from, host, reply)) {
    return;
  }
  warn_if_versions_differ(hello, from);
  if (make_connection(engine, nic, hello, &host->keys, from, reply, &host->connection) != 0) {
    reply->status = REPLY_NO_RESOURCES;
    host->connection = NULL;
    LOG_WARN("cannot accept a connection from %s: out of memory", hello->host);
    return;
  }
  reply->addresses = *listener_addresses(host->listener);
  peering_set_addresses(host->connection, &reply->addresses);
}

/* The guest's queue pair is connected now, or when librdmacm brings it. */
static int connect_queues(struct rdma_qp *qp, const struct welcome_talk *talk,
                          const struct hello *hello, const struct proof *proof,
                          const struct host *host, int fd, struct reply *reply) {
  struct sockaddr_storage at = { 0 };
  socklen_t at_bytes = sizeof at;
  struct rdma_cm_tokens tokens;
  bool uses_cm;
  int error = rdma_choice_uses_cm(qp, &proof->queue, &uses_cm);
  if (error || !uses_cm) {
    return error ? error : rdma_qp_connect(qp, &proof->queue, hello->dscp);
  }
  if (getsockname(fd, (struct sockaddr *)&at, &at_bytes) != 0) {
    return -errno;
  }
  auth_cm_tokens(&host->keys, talk->hello, talk->challenge, &tokens);
  error = rdma_cm_listen(qp, &proof->queue, &at, &tokens, &reply->cm_port);
  hash_wipe(&tokens, sizeof tokens);
  return error;
}

/* The guest offers a queue pair: one of ours is for it, if that can be. The guest may send from the
 * moment that it has the reply. */
static struct rdma_qp *take_queue(const struct nic *nic, const struct welcome_talk *talk,
                                  const struct hello *hello, const struct proof *proof,
                                  const struct host *host, int fd, struct reply *reply) {
  bool is_offered = reply->remote_keys > 0 && proof->queue.number != 0;
  struct rdma_qp *qp = host->connection && is_offered ? rdma_choice_make(nic, false) : NULL;
  if (!qp) {
    return NULL;
  }
  if (connect_queues(qp, talk, hello, proof, host, fd, reply) != 0) {
    reply->cm_port = 0;
    rdma_qp_free(qp);
    return NULL;
  }
  qp->key_index = connection_key_index(host->connection, qp);
  rdma_qp_facts(qp, &reply->queue);
  return qp;
}

/* Tells the guest, and goes on with what was decided. */
static void carry_out(const struct nic *nic, const struct hello *hello, const struct host *host,
                      const struct reply *reply, const struct connection_path *path,
                      const struct sockaddr_storage *from) {
  int fd = path->fd, error = reply_send(fd, reply);
  struct connection *connection = host->connection;
  if (!connection) {
    descriptor_close(fd);
    return;
  }
  if (error) {
    /* It left meanwhile. A connection that nobody has seen yet goes, too; others get the lane
     * later. */
    descriptor_close(fd);
    rdma_qp_free(path->qp);
    if (host->listener) {
      connection_destroy(connection);
    } else {
      connection_lane_failed(connection, hello->lane, hello->epoch);
    }
    return;
  }
  tcp_socket_tune(fd, from->ss_family, hello->dscp);
  tcp_socket_bind_accepted(fd, nic, from);
  if (host->listener) {
    listener_connection_made(host->listener, connection);
  }
  connection_lane_opened(connection, hello->lane, hello->epoch, path, 0);
}

/* Tells both users. The listener goes on: this may be somebody who has only read the handle. */
static void refuse_other_secret(const struct hello *hello, struct host *host, struct reply *reply,
                                const struct sockaddr_storage *from) {
  char text[TCP_ADDRESS_TEXT], why[SECRET_TEXT_BYTES];
  LOG_WARN_EVERY(
      WARN_INTERVAL_NS, "%s",
      secret_differs_text(hello->host, tcp_address_text(from, text), hello->has_secret, why));
  reply->status = REPLY_OTHER_SECRET;
  host->connection = NULL;
}

int welcome_proof(struct engine *engine, const struct nic *nic, const struct welcome_talk *talk,
                  int fd, const struct sockaddr_storage *from) {
  struct hello hello;
  struct proof proof;
  struct host host;
  struct reply reply;
  uint8_t digest[AUTH_KEY_BYTES];
  if (hello_decode(talk->hello, &hello) != 0 || proof_decode(talk->proof, &proof) != 0) {
    descriptor_close(fd);
    return -EPROTO;
  }
  if (!host_find(engine, &hello, &host)) {
    refuse_unknown(nic, fd);
    descriptor_close(fd);
    return 0;
  }
  enum auth_verdict verdict = auth_judge(&host.keys, talk->hello, talk->challenge, &proof);
  if (verdict == AUTH_STRANGER) {
    hash_wipe(&host, sizeof host);
    descriptor_close(fd);
    return -EACCES;
  }
  reply_prepare(&reply, nic);
  reply.has_secret = secret_get(digest) != NULL;
  hash_wipe(digest, sizeof digest);
  if (verdict == AUTH_OTHER_SECRET) {
    refuse_other_secret(&hello, &host, &reply, from);
  } else {
    decide(engine, nic, &hello, from, &host, &reply);
  }
  struct connection_path path = { .fd = fd };
  path.qp = take_queue(nic, talk, &hello, &proof, &host, fd, &reply);
  auth_sign_reply(&host.keys, talk->hello, talk->challenge, &reply);
  struct lane_crypto crypto;
  auth_lane_keys(&host.keys, talk->hello, talk->challenge, (enum lane_cipher)reply.cipher, false,
                 &crypto);
  path.crypto = crypto.cipher != LANE_PLAIN ? &crypto : NULL;
  carry_out(nic, &hello, &host, &reply, &path, from);
  hash_wipe(&host, sizeof host);
  hash_wipe(&crypto, sizeof crypto);
  return 0;
}
