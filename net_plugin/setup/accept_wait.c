/* SPDX-License-Identifier: Apache-2.0 */
/* See accept_wait.h. */
#include "net_plugin/setup/accept_wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/limits.h"

struct accept_wait {
  struct engine_source source, endpoint_source;
  struct engine_timer timer;
  struct accept_peer peer;
  struct endpoint *endpoint;
  accept_wait_done_fn *done;
  struct list_node node;
};

/* Socket and endpoint are the caller's now. */
static void accept_wait_free(struct accept_wait *wait) {
  engine_unwatch(wait->peer.engine, &wait->source);
  engine_unwatch(wait->peer.engine, &wait->endpoint_source);
  engine_timer_stop(&wait->timer);
  list_remove(&wait->node);
  free(wait);
}

static void accept_wait_close(struct accept_wait *wait) {
  int fd = wait->peer.fd;
  struct endpoint *endpoint = wait->endpoint;
  accept_wait_free(wait);
  endpoint_free(endpoint);
  descriptor_close(fd);
}

static void finish(struct accept_wait *wait, bool has_endpoint) {
  struct accept_peer peer = wait->peer;
  struct endpoint *endpoint = wait->endpoint;
  accept_wait_done_fn *done = wait->done;
  accept_wait_free(wait);
  if (!has_endpoint) {
    endpoint_free(endpoint);
    endpoint = NULL;
  }
  done(&peer, endpoint);
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  finish(LIST_ENTRY(timer, struct accept_wait, timer), false);
}

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct accept_wait *wait = LIST_ENTRY(source, struct accept_wait, endpoint_source);
  (void)events;
  int error = endpoint_advance(wait->endpoint);
  if (error != -EINPROGRESS) {
    finish(wait, error == 0);
  }
}

/* The peer sends nothing before it has the reply, but it may leave. */
static void socket_ready(struct engine_source *source, uint32_t events) {
  struct accept_wait *wait = LIST_ENTRY(source, struct accept_wait, source);
  (void)events;
  if (!tcp_socket_is_quiet(wait->peer.fd)) {
    accept_wait_close(wait);
  }
}

int accept_wait_start(const struct accept_peer *peer, struct endpoint *endpoint,
                      accept_wait_done_fn *done) {
  engine_assert_locked(peer->engine);
  struct accept_wait *wait = calloc(1, sizeof *wait);
  if (!wait) {
    return -ENOMEM;
  }
  wait->peer = *peer;
  wait->endpoint = endpoint;
  wait->done = done;
  wait->source = (struct engine_source){ .ready = socket_ready, .fd = -1 };
  wait->endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  wait->timer.expired = timer_expired;
  list_push_back(peer->waits, &wait->node);
  int error = engine_watch(peer->engine, &wait->source, peer->fd, EPOLLIN);
  if (!error) {
    error = engine_watch(peer->engine, &wait->endpoint_source, endpoint_fd(endpoint), EPOLLIN);
  }
  if (error) {
    accept_wait_free(wait);
    return error;
  }
  engine_timer_set(peer->engine, &wait->timer, clock_now_ns() + ACCEPT_PATIENCE_NS);
  return 0;
}

void accept_wait_end_all(struct list *waits) {
  struct list_node *node;
  while ((node = list_first(waits))) {
    accept_wait_close(LIST_ENTRY(node, struct accept_wait, node));
  }
}
