/* SPDX-License-Identifier: Apache-2.0 */
/* See welcome.h. */
#include "net_plugin/setup/welcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/version.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/listener_registry.h"
#include "net_plugin/setup/peering.h"
#include "net_plugin/setup/settings.h"

#define WARN_INTERVAL_NS (30 * NS_PER_S)

static void reply_prepare(struct reply *reply, const struct nic *nic) {
  memset(reply, 0, sizeof *reply);
  reply->wire_version = HANDSHAKE_WIRE_VERSION;
  snprintf(reply->version, sizeof reply->version, "%s", STRATUS_VERSION);
  snprintf(reply->host, sizeof reply->host, "%s", settings_host_name());
  memcpy(reply->nic, nic->name, sizeof reply->nic);
  reply->pid = (uint32_t)getpid();
}

/* A fresh socket takes the whole reply at once. */
static int reply_send(int fd, const struct reply *reply) {
  uint8_t bytes[REPLY_BYTES];
  reply_encode(reply, bytes);
  ssize_t n = send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  return n == REPLY_BYTES ? 0 : n < 0 ? -errno : -EIO;
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
  close(fd);
}

/* The receiving end of a new connection. */
static int make_connection(struct engine *engine, const struct nic *nic, const struct hello *hello,
                           const struct sockaddr_storage *from, const struct reply *reply,
                           struct connection **connection) {
  struct settings settings;
  settings_get(1, &settings);
  struct connection_config config = {
    .link = { .role = LINK_RECEIVER,
              .lanes = reply->lanes,
              .chunk_bytes = hello->chunk_bytes,
              .eager_bytes = reply->eager_bytes,
              .eager_slots = reply->eager_slots,
              .timeout_ns = settings.link_timeout_ns,
              .seed = clock_now_ns() },
  };
  peering_name(config.peer, hello->host, from, hello->nic);
  memcpy(config.nic, nic->name, sizeof nic->name);
  return peering_new(engine, &config, hello, NULL, connection);
}

/* What this side grants of what the hello wants. */
static void agree(const struct hello *hello, struct reply *reply) {
  struct settings settings;
  settings_get(1, &settings);
  reply->lanes = hello->lanes; /* the dialling side opens them, so it decides */
  reply->eager_bytes =
      hello->eager_bytes < settings.eager_bytes ? hello->eager_bytes : settings.eager_bytes;
  reply->eager_slots =
      hello->eager_slots < settings.eager_slots ? hello->eager_slots : settings.eager_slots;
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

/* Decides; fills in the reply, and the connection if one was made or found. */
static void decide(struct engine *engine, const struct nic *nic, const struct hello *hello,
                   const struct sockaddr_storage *from, struct reply *reply,
                   struct connection **connection, struct listener **listener) {
  *listener = NULL;
  *connection = peering_find(engine, hello->connection);
  agree(hello, reply);
  if (*connection) {
    /* Another lane, a lane dialled anew, or a first hello whose answer got lost. */
    if (!connection_lane_fenced(*connection, hello->lane, hello->epoch, &reply->received_before)) {
      reply->status = REPLY_REFUSED;
      *connection = NULL;
    }
    return;
  }
  *listener = hello->is_first ? listener_find(engine, hello->listener) : NULL;
  if (!*listener) {
    reply->status = REPLY_UNKNOWN;
    return;
  }
  warn_if_versions_differ(hello, from);
  if (make_connection(engine, nic, hello, from, reply, connection) != 0) {
    reply->status = REPLY_NO_RESOURCES;
    *connection = NULL;
    LOG_WARN("cannot accept a connection from %s: out of memory", hello->host);
  }
}

void welcome_guest(struct engine *engine, const struct nic *nic, const struct hello *hello, int fd,
                   const struct sockaddr_storage *from) {
  struct reply reply;
  struct connection *connection;
  struct listener *listener;
  reply_prepare(&reply, nic);
  decide(engine, nic, hello, from, &reply, &connection, &listener);
  int error = reply_send(fd, &reply);
  if (!connection) {
    close(fd);
    return;
  }
  if (error) {
    /* It left meanwhile. A connection that nobody has seen yet goes, too; others get the lane
     * later. */
    close(fd);
    if (listener) {
      connection_destroy(connection);
    } else {
      connection_lane_failed(connection, hello->lane, hello->epoch);
    }
    return;
  }
  tcp_socket_tune(fd, from->ss_family, hello->dscp);
  tcp_socket_bind_accepted(fd, nic, from);
  if (listener) {
    listener_connection_made(listener, connection);
  }
  connection_lane_opened(connection, hello->lane, hello->epoch, fd, 0);
}
