/* SPDX-License-Identifier: Apache-2.0 */
/* See port.h. */
#include "net_plugin/setup/port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/guest.h"

#define ACCEPTS_PER_EVENT 64
/* After accept failed for want of descriptors or memory: the event would come again at once. */
#define PAUSE_NS (100 * NS_PER_MS)
#define WARN_INTERVAL_NS (30 * NS_PER_S)

struct port {
  struct engine_source source;
  struct engine_timer pause;
  struct engine *engine;
  struct nic nic;
  struct sockaddr_storage address;
  int fd;
  struct guests guests;
  struct list_node node;
};

static void pause_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct port *port = LIST_ENTRY(timer, struct port, pause);
  engine_rewatch(port->engine, &port->source, EPOLLIN);
}

static void port_ready(struct engine_source *source, uint32_t events) {
  struct port *port = (struct port *)source;
  (void)events;
  for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    int fd = accept4(port->fd, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      guests_admit(&port->guests, fd, &from);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
      LOG_WARN_EVERY(WARN_INTERVAL_NS, "%s: cannot accept a connection: %s%s", port->nic.name,
                     strerror(errno), errno == EMFILE ? " (raise ulimit -n)" : "");
      engine_rewatch(port->engine, &port->source, 0);
      engine_timer_set(port->engine, &port->pause, clock_now_ns() + PAUSE_NS);
      return;
    } /* else: that one died in the queue; the next may be fine */
  }
}

static int port_open(struct engine *engine, const struct nic *nic, struct port **result) {
  struct port *port = calloc(1, sizeof *port);
  if (!port) {
    return -ENOMEM;
  }
  port->engine = engine;
  port->nic = *nic;
  port->source = (struct engine_source){ .ready = port_ready, .fd = -1 };
  port->pause.expired = pause_expired;
  guests_init(&port->guests, engine, &port->nic);
  int error = port->fd = tcp_socket_listen(nic, &port->address);
  if (port->fd >= 0) {
    error = engine_watch(engine, &port->source, port->fd, EPOLLIN);
    if (error) {
      LOG_WARN("cannot listen on %s: %s", nic->name, strerror(-error));
      close(port->fd);
    }
  }
  if (error < 0) {
    free(port);
    return error;
  }
  list_push_back(&engine_lists(engine)->ports, &port->node);
  *result = port;
  return 0;
}

int port_address(struct engine *engine, const struct nic *nic, struct sockaddr_storage *address) {
  struct port *port = NULL;
  LIST_FOR_EACH(node, &engine_lists(engine)->ports) {
    struct port *known = LIST_ENTRY(node, struct port, node);
    if (strcmp(known->nic.name, nic->name) == 0) {
      port = known;
    }
  }
  int error = port ? 0 : port_open(engine, nic, &port);
  if (!error) {
    *address = port->address;
  }
  return error;
}

void port_close_all(struct engine *engine) {
  struct list_node *node;
  while ((node = list_pop_front(&engine_lists(engine)->ports))) {
    struct port *port = LIST_ENTRY(node, struct port, node);
    guests_close_all(&port->guests);
    engine_unwatch(engine, &port->source);
    engine_timer_stop(&port->pause);
    close(port->fd);
    free(port);
  }
}
