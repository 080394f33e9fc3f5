/* SPDX-License-Identifier: Apache-2.0 */
/* See port.h.   guest: READING --hello--> welcome.c;  READING --garbage, end, deadline--> closed */
#include "net_plugin/setup/port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/welcome.h"

#define GUEST_NS (10 * NS_PER_S)
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
  struct list guests;
  unsigned guest_count;
  struct list_node node;
};

struct guest {
  struct engine_source source;
  struct engine_timer timer;
  struct port *port;
  int fd;
  struct sockaddr_storage from;
  struct list_node node;
  size_t got;
  uint8_t hello[HELLO_BYTES];
};

/* The descriptor is the caller's now. It must still be open: once closed, its number may belong to
 * another thread's descriptor, which is not ours to unwatch. */
static void guest_free(struct guest *guest) {
  engine_unwatch(guest->port->engine, &guest->source);
  engine_timer_stop(&guest->timer);
  list_remove(&guest->node);
  guest->port->guest_count--;
  free(guest);
}

static void guest_close(struct guest *guest) {
  int fd = guest->fd;
  guest_free(guest);
  close(fd);
}

static void guest_dismiss(struct guest *guest, const char *why) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(WARN_INTERVAL_NS,
                 "%s: dismissed a connection from %s: %s (a port scanner or a foreign service; the "
                 "job goes on)",
                 guest->port->nic.name, tcp_address_text(&guest->from, text), why);
  guest_close(guest);
}

static void guest_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  guest_dismiss(LIST_ENTRY(timer, struct guest, timer), "it said nothing for too long");
}

static void guest_examine(struct guest *guest) {
  struct port *port = guest->port;
  struct hello hello;
  struct sockaddr_storage from = guest->from;
  int fd = guest->fd;
  memset(&hello, 0, sizeof hello);
  int error = handshake_prefix_check(guest->hello, &hello.wire_version, hello.version);
  if (error == -EPROTONOSUPPORT) {
    guest_free(guest);
    welcome_other_version(&port->nic, hello.wire_version, hello.version, fd, &from);
    return;
  }
  if (!error && guest->got < HELLO_BYTES) {
    return;
  }
  if (!error) {
    error = hello_decode(guest->hello, &hello);
  }
  if (error) {
    guest_dismiss(guest, "it does not speak this protocol");
    return;
  }
  guest_free(guest);
  welcome_guest(port->engine, &port->nic, &hello, fd, &from);
}

/* Reads exactly the hello: what follows belongs to the lane. */
static void guest_ready(struct engine_source *source, uint32_t events) {
  struct guest *guest = (struct guest *)source;
  (void)events;
  ssize_t n = recv(guest->fd, guest->hello + guest->got, HELLO_BYTES - guest->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (n <= 0) {
    /* A health check of the cloud, or a peer that gave up: nothing worth a word. */
    guest_close(guest);
    return;
  }
  guest->got += (size_t)n;
  if (guest->got >= HANDSHAKE_PREFIX_BYTES) {
    guest_examine(guest);
  }
}

static void guest_admit(struct port *port, int fd, const struct sockaddr_storage *from) {
  if (port->guest_count >= PORT_MAX_GUESTS) {
    struct list_node *oldest = list_first(&port->guests);
    guest_dismiss(LIST_ENTRY(oldest, struct guest, node), "too many strangers at once");
  }
  struct guest *guest = calloc(1, sizeof *guest);
  if (!guest) {
    close(fd);
    return;
  }
  guest->port = port;
  guest->fd = fd;
  guest->from = *from;
  guest->source.ready = guest_ready;
  guest->source.fd = -1;
  guest->timer.expired = guest_expired;
  list_push_back(&port->guests, &guest->node);
  port->guest_count++;
  if (engine_watch(port->engine, &guest->source, fd, EPOLLIN) != 0) {
    guest_dismiss(guest, "it cannot be watched");
    return;
  }
  engine_timer_set(port->engine, &guest->timer, clock_now_ns() + GUEST_NS);
}

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
      guest_admit(port, fd, &from);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      LOG_WARN_EVERY(WARN_INTERVAL_NS, "%s: cannot accept a connection: %s (raise ulimit -n)",
                     port->nic.name, strerror(errno));
      engine_rewatch(port->engine, &port->source, 0);
      engine_timer_set(port->engine, &port->pause, clock_now_ns() + PAUSE_NS);
      return;
    } else if (errno == EAGAIN) {
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
  list_init(&port->guests);
  int error = port->fd = tcp_socket_listen(nic, &port->address);
  if (port->fd >= 0) {
    error = engine_watch(engine, &port->source, port->fd, EPOLLIN);
    if (error) {
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
    struct list_node *guest_node;
    while ((guest_node = list_first(&port->guests))) {
      guest_close(LIST_ENTRY(guest_node, struct guest, node));
    }
    engine_unwatch(engine, &port->source);
    engine_timer_stop(&port->pause);
    close(port->fd);
    free(port);
  }
}
