/* SPDX-License-Identifier: Apache-2.0 */
/* socket: NCCL's Socket transport. A message is cut in equal parts, none below 64 KiB but the last,
 * which the sockets of the connection take in turn; it is complete when all parts are, in order. A
 * socket keeps the path that it has drawn, whatever that gives. */
#include <stdlib.h>

#include "tests/scale/transport.h"

/* MIN_CHUNKSIZE of NCCL's src/transport/net_socket.cc at v2.29.7-1. */
#define LEAST_PART_BYTES (64u << 10)
/* What a kernel takes that has not left yet: a send buffer that it has sized for a round trip of
 * under a millisecond. Longer ones only let NCCL reuse a slot earlier, of which it has four. */
#define SEND_BUFFER_BYTES (256u << 10)
#define MESSAGES 64u /* in flight, of a connection; a power of two */
#define PARTS 1024u  /* likewise, of a socket */

struct part {
  uint64_t end, bytes; /* in the stream */
  uint64_t message;
};

struct socket {
  struct connection *connection;
  struct stream stream;
  struct part parts[PARTS];
  unsigned first, count; /* not received */
  unsigned taken;        /* of these, by the kernel of the sender */
};

struct message {
  unsigned to_take, to_receive; /* parts */
};

struct connection {
  struct transport *transport;
  unsigned number, next; /* next: the socket whose turn it is */
  uint64_t posted, taken, received;
  struct message messages[MESSAGES];
  struct socket *sockets;
};

struct sockets {
  struct transport transport;
  struct connection connections[TRANSPORT_CONNECTIONS_MAX];
};

static struct message *message_at(struct connection *connection, uint64_t number) {
  return &connection->messages[number % MESSAGES];
}

static void report_taken(struct connection *connection) {
  struct transport_user *user = &connection->transport->user;
  while (connection->taken < connection->posted &&
         message_at(connection, connection->taken)->to_take == 0) {
    connection->taken++;
    user->sent(user->user, connection->number);
  }
}

static void report_received(struct connection *connection) {
  struct transport_user *user = &connection->transport->user;
  while (connection->received < connection->posted &&
         message_at(connection, connection->received)->to_receive == 0) {
    connection->received++;
    user->received(user->user, connection->number);
  }
}

static void stream_departed(struct stream *stream) {
  struct socket *socket = stream->user;
  uint64_t left_bytes = stream->written_bytes - stream->queued_bytes;
  while (socket->taken < socket->count) {
    const struct part *part = &socket->parts[(socket->first + socket->taken) % PARTS];
    if (part->end > left_bytes + SEND_BUFFER_BYTES) {
      break;
    }
    socket->taken++;
    message_at(socket->connection, part->message)->to_take--;
  }
  report_taken(socket->connection);
}

static void part_is_read(void *owner, uint64_t message) {
  struct socket *socket = owner;
  message_at(socket->connection, message)->to_receive--;
  report_received(socket->connection);
}

static void stream_arrived(struct stream *stream) {
  struct socket *socket = stream->user;
  struct transport *transport = socket->connection->transport;
  unsigned thread = transport_thread(socket->connection->number, true);
  while (socket->count > 0 && socket->parts[socket->first].end <= stream->arrived_bytes) {
    const struct part *part = &socket->parts[socket->first];
    events_add(transport->events, transport_work(transport, thread, part->bytes), part_is_read,
               socket, part->message);
    socket->first = (socket->first + 1) % PARTS;
    socket->count--;
    socket->taken--; /* the kernel takes before anything arrives */
  }
}

/* argument: message and bytes of the part. */
static void part_is_written(void *owner, uint64_t argument) {
  struct socket *socket = owner;
  if (socket->count == PARTS) {
    abort();
  }
  uint64_t bytes = argument & UINT32_MAX;
  network_write(&socket->stream, bytes);
  socket->parts[(socket->first + socket->count++) % PARTS] =
      (struct part){ socket->stream.written_bytes, bytes, argument >> 32 };
  stream_departed(&socket->stream);
}

static void socket_send(struct transport *transport, unsigned number, uint64_t bytes) {
  struct connection *connection = &((struct sockets *)transport)->connections[number];
  unsigned sockets = transport->config.sockets;
  uint64_t part = (bytes + sockets - 1) / sockets;
  part = part > LEAST_PART_BYTES ? part : LEAST_PART_BYTES;
  unsigned thread = transport_thread(number, false);
  uint64_t message = connection->posted++;
  unsigned parts = (unsigned)((bytes + part - 1) / part);
  *message_at(connection, message) = (struct message){ parts, parts };
  for (uint64_t at = 0; at < bytes; at += part) {
    uint64_t count = bytes - at < part ? bytes - at : part;
    struct socket *socket = &connection->sockets[connection->next++ % sockets];
    events_add(transport->events, transport_work(transport, thread, count), part_is_written, socket,
               message << 32 | count);
  }
}

static void socket_receive(struct transport *transport, unsigned number, uint64_t bytes) {
}

static void socket_free(struct transport *transport) {
  struct sockets *all = (struct sockets *)transport;
  for (unsigned c = 0; c < transport->config.connections; c++) {
    for (unsigned i = 0; i < transport->config.sockets; i++) {
      network_close(&all->connections[c].sockets[i].stream);
    }
    free(all->connections[c].sockets);
  }
  network_free(&transport->network);
  free(all);
}

struct transport *transport_socket_new(const struct transport_config *config, struct events *events,
                                       const struct transport_user *user) {
  static const struct transport_ops ops = { socket_send, socket_receive, socket_free };
  struct sockets *all = transport_memory(sizeof *all);
  transport_begin(&all->transport, &ops, config, events, user);
  for (unsigned c = 0; c < config->connections; c++) {
    struct connection *connection = &all->connections[c];
    connection->transport = &all->transport;
    connection->number = c;
    connection->sockets = transport_memory(config->sockets * sizeof *connection->sockets);
    for (unsigned i = 0; i < config->sockets; i++) {
      struct socket *socket = &connection->sockets[i];
      socket->connection = connection;
      socket->stream =
          (struct stream){ .departed = stream_departed, .arrived = stream_arrived, .user = socket };
      network_open(&all->transport.network, &socket->stream, i % config->network.nics,
                   transport_draw_path(&all->transport));
    }
  }
  return &all->transport;
}
