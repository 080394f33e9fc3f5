/* SPDX-License-Identifier: Apache-2.0 */
/* See port.h. */
#include "net_plugin/setup/port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"
#include "net_plugin/setup/accept.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"

struct port {
  struct engine_source source;
  struct engine_timer pause;
  struct engine *engine;
  struct nic nic;
  struct sockaddr_storage address;
  int fd;
  struct list waiting; /* peers: for hellos and proofs, the oldest first */
  unsigned count;      /* of these */
  struct list proved;  /* those that wait for their endpoint */
  struct list_node node;
};

static atomic_uint port_count; /* of the process */

enum pending_peer_state { PENDING_PEER_HELLO, PENDING_PEER_PROOF, PENDING_PEER_PROVED };

struct pending_peer {
  struct accept_peer accept; /* its timer: see pending_peer_expired */
  struct port *port;
  struct list_node node;
  enum pending_peer_state state;
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
static void count_source(struct port *port, struct pending_peer *peer, int change) {
  port->count += (unsigned)change;
  LIST_FOR_EACH(node, &port->waiting) {
    struct pending_peer *other = LIST_ENTRY(node, struct pending_peer, node);
    bool is_near = is_same_network(&other->source, &peer->source);
    bool is_same = IN6_ARE_ADDR_EQUAL(&other->source, &peer->source);
    other->network_peers += (unsigned)change * is_near;
    other->address_peers += (unsigned)change * is_same;
    peer->network_peers += change > 0 ? is_near : 0;
    peer->address_peers += change > 0 ? is_same : 0;
  }
}

static bool goes_before(const struct pending_peer *one, const struct pending_peer *other) {
  if (one->network_peers != other->network_peers) {
    return one->network_peers > other->network_peers;
  }
  if (one->address_peers != other->address_peers) {
    return one->address_peers > other->address_peers;
  }
  return one->state == PENDING_PEER_HELLO && other->state != PENDING_PEER_HELLO;
}

/* ---- the end of a peer ---- */

/* Nothing happens to it any more. */
static void pending_peer_leave(struct pending_peer *peer) {
  talk_stop(&peer->accept.talk);
  list_remove(&peer->node);
  if (peer->state != PENDING_PEER_PROVED) {
    count_source(peer->port, peer, -1);
  }
}

static void pending_peer_close(struct pending_peer *peer) {
  pending_peer_leave(peer);
  talk_close(&peer->accept.talk);
  free(peer);
}

/* Without an endpoint the lane is a TCP flow. */
static void answer(struct pending_peer *peer, bool has_endpoint) {
  pending_peer_leave(peer);
  if (!has_endpoint) {
    talk_drop_endpoint(&peer->accept.talk);
  }
  accept_answer(&peer->accept);
  free(peer);
}

static void warn_rejected(const struct accept_peer *peer, const char *why) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                 "%s: rejected a connection from %s: %s (a port scanner or a foreign service; the "
                 "job goes on)",
                 peer->nic->name, tcp_address_text(&peer->from, text), why);
}

static void pending_peer_reject(struct pending_peer *peer, const char *why) {
  warn_rejected(&peer->accept, why);
  pending_peer_close(peer);
}

/* A challenge that was lost is not waited for: the peer dials anew. The end of the stream, behind
 * it, tells it so at once, as TCP then sends both again. */
static void pending_peer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct pending_peer *peer = LIST_ENTRY(timer, struct pending_peer, accept.talk.timer);
  uint64_t end_ns = peer->since_ns + PENDING_PEER_NS;
  if (peer->state == PENDING_PEER_PROVED) {
    answer(peer, false);
  } else if (now_ns >= end_ns) {
    pending_peer_reject(peer, "it did not say in time who it is");
  } else if (tcp_stats_has_unacked(peer->accept.talk.fd)) {
    pending_peer_close(peer);
  } else {
    engine_timer_set(peer->port->engine, timer, end_ns);
  }
}

/* ---- what a peer sends ---- */

static void hello_arrived(struct pending_peer *peer) {
  int error = accept_hello(&peer->accept);
  if (error == -EPROTO) {
    pending_peer_reject(peer, "it does not speak this protocol");
  } else if (error) {
    pending_peer_close(peer);
  } else {
    uint64_t end_ns = peer->since_ns + PENDING_PEER_NS;
    uint64_t look_ns = clock_now_ns() + tcp_stats_ack_wait_ns(peer->accept.talk.fd);
    peer->state = PENDING_PEER_PROOF;
    engine_timer_set(peer->port->engine, &peer->accept.talk.timer,
                     look_ns < end_ns ? look_ns : end_ns);
  }
}

/* Until the endpoint is ready, or cannot be, or takes too long. */
static int wait_for_endpoint(struct pending_peer *peer) {
  struct talk *talk = &peer->accept.talk;
  list_push_back(&peer->port->proved, &peer->node);
  engine_timer_set(talk->engine, &talk->timer, clock_now_ns() + ACCEPT_PATIENCE_NS);
  int error = engine_watch(talk->engine, &talk->source, talk->fd, EPOLLIN);
  return error ? error : talk_watch_endpoint(talk);
}

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = LIST_ENTRY(source, struct pending_peer, accept.talk.endpoint_source);
  (void)events;
  answer(peer, endpoint_result(peer->accept.talk.endpoint) == 0);
}

static void proof_arrived(struct pending_peer *peer) {
  pending_peer_leave(peer);
  peer->state = PENDING_PEER_PROVED;
  int error = accept_proof(&peer->accept);
  if (error == -EINPROGRESS) {
    if (wait_for_endpoint(peer) != 0) {
      answer(peer, false);
    }
    return;
  }
  if (error) {
    warn_rejected(&peer->accept, error == -EACCES ? "it does not belong to this job"
                                                  : "it does not speak this protocol");
  }
  free(peer);
}

static void pending_peer_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = (struct pending_peer *)source;
  bool is_hello = peer->state == PENDING_PEER_HELLO;
  enum handshake_kind kind;
  struct handshake_prefix prefix;
  (void)events;
  if (peer->state == PENDING_PEER_PROVED) {
    /* It sends nothing before it has the reply, but it may leave. */
    if (!tcp_socket_is_quiet(peer->accept.talk.fd)) {
      pending_peer_close(peer);
    }
    return;
  }
  int error = talk_receive(&peer->accept.talk, &kind, &prefix);
  if (error == -EAGAIN) {
    return;
  }
  if (error == -EPROTONOSUPPORT && is_hello) {
    accept_refuse_version(&peer->accept, &prefix);
    pending_peer_close(peer);
  } else if (error == -EPROTO || error == -EPROTONOSUPPORT ||
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

/* ---- all of a port ---- */

static unsigned share(void) {
  uint64_t budget = open_files_limit() / PENDING_PEERS_PART;
  budget = budget < PENDING_PEERS_MAX ? budget : PENDING_PEERS_MAX;
  uint64_t each = budget / atomic_load(&port_count);
  return each > PENDING_PEERS_LEAST ? (unsigned)each : PENDING_PEERS_LEAST;
}

static struct pending_peer *first_of(const struct list *list) {
  struct list_node *node = list_first(list);
  return node ? LIST_ENTRY(node, struct pending_peer, node) : NULL;
}

static bool evict_oldest(struct port *port, uint64_t before_ns) {
  struct pending_peer *oldest = first_of(&port->waiting);
  bool has_had_turn = oldest && oldest->since_ns <= before_ns;
  if (has_had_turn) {
    pending_peer_reject(oldest, "descriptors are missing, and it has not proved who it is");
  }
  return has_had_turn;
}

static void evict_one(struct port *port) {
  struct pending_peer *chosen = first_of(&port->waiting);
  LIST_FOR_EACH(node, &port->waiting) {
    struct pending_peer *peer = LIST_ENTRY(node, struct pending_peer, node);
    chosen = goes_before(peer, chosen) ? peer : chosen;
  }
  pending_peer_reject(chosen, "too many strangers at once");
}

void port_admit(struct port *port, int fd, const struct sockaddr_storage *from) {
  engine_assert_locked(port->engine);
  for (unsigned most = share(); port->count >= most;) {
    evict_one(port);
  }
  struct pending_peer *peer = calloc(1, sizeof *peer);
  if (!peer) {
    descriptor_close(fd);
    return;
  }
  struct wire_address source;
  address_to_wire(from, &source);
  memcpy(&peer->source, source.ip, sizeof peer->source);
  peer->port = port;
  peer->since_ns = clock_now_ns();
  peer->accept.nic = &port->nic;
  peer->accept.from = *from;
  struct talk *talk = &peer->accept.talk;
  talk->engine = port->engine;
  talk->fd = fd;
  talk->source = (struct engine_source){ .ready = pending_peer_ready, .fd = -1 };
  talk->endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  talk->timer.expired = pending_peer_expired;
  peer->network_peers = peer->address_peers = 1;
  count_source(port, peer, 1);
  list_push_back(&port->waiting, &peer->node);
  if (engine_watch(port->engine, &talk->source, fd, EPOLLIN) != 0) {
    pending_peer_reject(peer, "it cannot be watched");
    return;
  }
  engine_timer_set(port->engine, &talk->timer, peer->since_ns + PENDING_PEER_NS);
}

static void close_peers(struct port *port) {
  struct pending_peer *peer;
  while ((peer = first_of(&port->waiting)) || (peer = first_of(&port->proved))) {
    pending_peer_close(peer);
  }
}

/* ---- no descriptor is left ---- */

/* One descriptor of the process that serves nothing, so that there is one to accept with when the
 * application has all others. -1: it is in use. */
static atomic_int spare = -1;

static void spare_keep(void) {
  if (atomic_load(&spare) < 0) {
    int none = -1, fd = DESCRIPTOR(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (fd >= 0 && !atomic_compare_exchange_strong(&spare, &none, fd)) {
      descriptor_close(fd);
    }
  }
}

/* True: there is one descriptor now, unless another thread takes it. */
static bool spare_use(void) {
  int fd = atomic_exchange(&spare, -1);
  if (fd >= 0) {
    descriptor_close(fd);
  }
  return fd >= 0;
}

struct eviction {
  uint64_t before_ns;
  bool is_done;
};

static void evict(struct engine *engine, void *argument) {
  struct eviction *eviction = argument;
  LIST_FOR_EACH(node, &engine_lists(engine)->ports) {
    struct port *port = LIST_ENTRY(node, struct port, node);
    if (evict_oldest(port, eviction->before_ns)) {
      eviction->is_done = true;
      return;
    }
  }
}

/* More engines than there are; while one is being made their number is not known. */
#define ENGINES_LOOKED_AT 256

/* Closes a pending peer of the process that has had its turn, else uses the spare descriptor.
 * Engines that are busy are left out: they accept for themselves. True: accept may succeed now. */
static bool make_room(struct engine *here) {
  struct eviction eviction = { .before_ns = clock_now_ns() - PORT_TURN_NS };
  int error = 0;
  for (unsigned i = 0; i < ENGINES_LOOKED_AT && error != -ENOENT && !eviction.is_done; i++) {
    error = engine_try_visit(here, i, evict, &eviction);
  }
  return eviction.is_done || spare_use();
}

/* ---- the port ---- */

static void pause_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct port *port = LIST_ENTRY(timer, struct port, pause);
  engine_rewatch(port->engine, &port->source, EPOLLIN);
}

static void port_pause(struct port *port, uint64_t pause_ns) {
  engine_rewatch(port->engine, &port->source, 0);
  engine_timer_set(port->engine, &port->pause, clock_now_ns() + pause_ns);
}

static void port_ready(struct engine_source *source, uint32_t events) {
  struct port *port = (struct port *)source;
  (void)events;
  spare_keep();
  for (int i = 0; i < PORT_ACCEPTS_PER_EVENT; i++) {
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    int fd = DESCRIPTOR(
        accept4(port->fd, (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd >= 0) {
      port_admit(port, fd, &from);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != ECONNABORTED && errno != EINTR && errno != EPROTO) {
      char why[OPEN_FILES_TEXT];
      int error = -errno;
      bool is_short = open_files_are_short(error);
      LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS, "%s: cannot accept a connection: %s", port->nic.name,
                     open_files_why(error, why));
      if (!is_short || !make_room(port->engine)) {
        port_pause(port, is_short ? PORT_TURN_NS : PORT_PAUSE_NS);
        return;
      }
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
  list_init(&port->waiting);
  list_init(&port->proved);
  int error = port->fd = tcp_socket_listen(nic, &port->address);
  if (nic->advertised.ss_family != AF_UNSPEC) {
    unsigned number = tcp_address_port(&port->address);
    port->address = nic->advertised;
    tcp_address_set_port(&port->address, number);
  }
  if (port->fd >= 0) {
    error = engine_watch(engine, &port->source, port->fd, EPOLLIN);
    if (error) {
      LOG_WARN("cannot listen on %s: %s", nic->name, strerror(-error));
      descriptor_close(port->fd);
    }
  }
  if (error < 0) {
    free(port);
    return error;
  }
  list_push_back(&engine_lists(engine)->ports, &port->node);
  atomic_fetch_add(&port_count, 1);
  spare_keep();
  *result = port;
  return 0;
}

/* A NIC may have got another address. A dial that binds nothing tells none: any of the NIC's. */
static struct port *port_find(struct engine *engine, const struct nic *nic) {
  LIST_FOR_EACH(node, &engine_lists(engine)->ports) {
    struct port *known = LIST_ENTRY(node, struct port, node);
    if (strcmp(known->nic.name, nic->name) == 0 &&
        (nic->address.ss_family == AF_UNSPEC ||
         memcmp(&known->nic.address, &nic->address, sizeof nic->address) == 0)) {
      return known;
    }
  }
  return NULL;
}

int port_get(struct engine *engine, const struct nic *nic, struct port **port) {
  engine_assert_locked(engine);
  *port = port_find(engine, nic);
  return *port ? 0 : port_open(engine, nic, port);
}

struct sockaddr_storage port_address(const struct port *port) {
  return port->address;
}

void port_for_hello(struct engine *engine, const struct nic *nic, struct wire_address *listens) {
  bool may_open = param_string(PARAM_PORT_RANGE)[0] == '\0' && nic->address.ss_family != AF_UNSPEC;
  struct port *port = port_find(engine, nic);
  memset(listens, 0, sizeof *listens);
  if (port || (may_open && port_open(engine, nic, &port) == 0)) {
    address_to_wire(&port->address, listens);
  }
}

void port_close_all(struct engine *engine) {
  engine_assert_locked(engine);
  struct list_node *node;
  while ((node = list_pop_front(&engine_lists(engine)->ports))) {
    struct port *port = LIST_ENTRY(node, struct port, node);
    close_peers(port);
    atomic_fetch_sub(&port_count, 1);
    engine_unwatch(engine, &port->source);
    engine_timer_stop(&port->pause);
    descriptor_close(port->fd);
    free(port);
  }
  spare_use();
}
