/* SPDX-License-Identifier: Apache-2.0 */
/* See dial.h. */
#include "net_plugin/setup/dial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net_plugin/lane/tcp/tcp_socket.h"

struct dial {
  struct engine_source source;
  struct engine_timer timer;
  struct engine *engine;
  int fd;
  bool is_connected;
  dial_done_fn *done;
  void *argument;
  size_t got;
  uint8_t hello[HELLO_BYTES], reply[REPLY_BYTES];
};

static void dial_free(struct dial *dial) {
  engine_unwatch(dial->engine, &dial->source);
  engine_timer_stop(&dial->timer);
  free(dial);
}

void dial_cancel(struct dial *dial) {
  int fd = dial->fd;
  dial_free(dial);
  close(fd);
}

static void finish(struct dial *dial, int error, const struct reply *reply) {
  dial_done_fn *done = dial->done;
  void *argument = dial->argument;
  int fd = dial->fd;
  dial_free(dial);
  if (error) {
    close(fd);
    fd = -1;
  }
  done(argument, error, fd, reply);
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  finish(LIST_ENTRY(timer, struct dial, timer), -ETIMEDOUT, NULL);
}

/* A fresh socket takes the whole hello at once. */
static int send_hello(struct dial *dial) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) {
    error = errno;
  }
  if (error) {
    return -error;
  }
  ssize_t n = send(dial->fd, dial->hello, HELLO_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n != HELLO_BYTES) {
    return n < 0 ? -errno : -EIO;
  }
  dial->is_connected = true;
  engine_rewatch(dial->engine, &dial->source, EPOLLIN);
  return 0;
}

/* Reads exactly the reply: what follows belongs to the lane. */
static void receive_reply(struct dial *dial) {
  struct reply reply;
  ssize_t n = recv(dial->fd, dial->reply + dial->got, REPLY_BYTES - dial->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (n <= 0) {
    finish(dial, n == 0 ? -ECONNRESET : -errno, NULL);
    return;
  }
  dial->got += (size_t)n;
  memset(&reply, 0, sizeof reply);
  if (dial->got >= HANDSHAKE_PREFIX_BYTES) {
    int error = handshake_prefix_check(dial->reply, &reply.wire_version, reply.version);
    if (error) {
      finish(dial, error, &reply);
      return;
    }
  }
  if (dial->got == REPLY_BYTES) {
    int error = reply_decode(dial->reply, &reply);
    if (!error && reply.status != REPLY_ACCEPTED) {
      error = -ENOLINK;
    }
    finish(dial, error, &reply);
  }
}

static void source_ready(struct engine_source *source, uint32_t events) {
  struct dial *dial = (struct dial *)source;
  (void)events;
  if (dial->is_connected) {
    receive_reply(dial);
    return;
  }
  int error = send_hello(dial);
  if (error) {
    finish(dial, error, NULL);
  }
}

struct dial *dial_start(struct engine *engine, const struct nic *nic,
                        const struct sockaddr_storage *address, const struct hello *hello,
                        uint64_t deadline_ns, dial_done_fn *done, void *argument, int *error) {
  struct dial *dial = calloc(1, sizeof *dial);
  *error = -ENOMEM;
  if (!dial) {
    return NULL;
  }
  dial->engine = engine;
  dial->done = done;
  dial->argument = argument;
  dial->source = (struct engine_source){ .ready = source_ready, .fd = -1 };
  dial->timer.expired = timer_expired;
  hello_encode(hello, dial->hello);
  *error = dial->fd = tcp_socket_open(address->ss_family);
  if (dial->fd < 0) {
    free(dial);
    return NULL;
  }
  tcp_socket_tune(dial->fd, address->ss_family, hello->dscp);
  struct sockaddr_storage target = *address;
  tcp_address_set_scope(&target, nic);
  if (nic->address.ss_family == address->ss_family) {
    tcp_socket_bind_nic(dial->fd, nic, &target);
  }
  *error = 0;
  if (connect(dial->fd, (struct sockaddr *)&target, tcp_address_bytes(&target)) != 0 &&
      errno != EINPROGRESS) {
    *error = -errno;
  }
  if (!*error) {
    *error = engine_watch(engine, &dial->source, dial->fd, EPOLLOUT);
  }
  if (*error) {
    dial_cancel(dial);
    return NULL;
  }
  engine_timer_set(engine, &dial->timer, deadline_ns);
  return dial;
}
