/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_peer.h. */
#include "net_plugin/setup/pending_peer.h"

#include <errno.h>
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
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"
#include "net_plugin/setup/accept_handshake.h"
#include "net_plugin/setup/limits.h"

/* Of IPv6, the network: its owner has all addresses in it. */
#define NETWORK_BYTES 8

/* The peers of one address. */
struct pending_address {
  struct in6_addr address; /* IPv4: mapped */
  struct list peers;       /* oldest first */
  unsigned count;
  struct list_node node;
};

/* The addresses of one network: one of IPv4, or those of an IPv6 /64. */
struct pending_network {
  struct list addresses; /* none is empty */
  unsigned count;        /* of peers */
  struct list_node node;
};

enum pending_peer_state { PENDING_PEER_HELLO, PENDING_PEER_PROOF, PENDING_PEER_PROVED };

struct pending_peer {
  struct engine_source source;
  struct engine_source endpoint_source; /* while it is PROVED */
  struct engine_timer timer;
  struct pending_peers *peers;
  struct pending_network *network; /* both NULL: it is PROVED, and not counted any more */
  struct pending_address *address;
  struct list_node node;
  enum pending_peer_state state;
  uint64_t since_ns; /* when it was accepted */
  size_t got;        /* of the message that the state waits for */
  struct accept_peer accept;
  struct endpoint *endpoint;
};

/* ---- sources ---- */

static struct in6_addr pending_address_key(const struct sockaddr_storage *from) {
  if (from->ss_family == AF_INET6) {
    return ((const struct sockaddr_in6 *)from)->sin6_addr;
  }
  struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
  memcpy(&mapped.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr,
         sizeof(struct in_addr));
  return mapped;
}

static bool is_same_network(const struct in6_addr *one, const struct in6_addr *other) {
  bool is_mapped = IN6_IS_ADDR_V4MAPPED(one) || IN6_IS_ADDR_V4MAPPED(other);
  return memcmp(one, other, is_mapped ? sizeof *one : NETWORK_BYTES) == 0;
}

static const struct pending_address *pending_address_first(const struct pending_network *network) {
  return LIST_ENTRY(list_first(&network->addresses), struct pending_address, node);
}

static struct pending_network *pending_network_get(struct pending_peers *peers,
                                                   const struct in6_addr *key) {
  LIST_FOR_EACH(node, &peers->networks) {
    struct pending_network *network = LIST_ENTRY(node, struct pending_network, node);
    if (is_same_network(&pending_address_first(network)->address, key)) {
      return network;
    }
  }
  struct pending_network *network = calloc(1, sizeof *network);
  if (network) {
    list_init(&network->addresses);
    list_push_back(&peers->networks, &network->node);
  }
  return network;
}

static struct pending_address *pending_address_get(struct pending_network *network,
                                                   const struct in6_addr *key) {
  LIST_FOR_EACH(node, &network->addresses) {
    struct pending_address *address = LIST_ENTRY(node, struct pending_address, node);
    if (IN6_ARE_ADDR_EQUAL(&address->address, key)) {
      return address;
    }
  }
  struct pending_address *address = calloc(1, sizeof *address);
  if (address) {
    address->address = *key;
    list_init(&address->peers);
    list_push_back(&network->addresses, &address->node);
  }
  return address;
}

/* What has no peers goes; address may be NULL. */
static void pending_network_tidy(struct pending_network *network, struct pending_address *address) {
  if (address && address->count == 0) {
    list_remove(&address->node);
    free(address);
  }
  if (network->count == 0) {
    list_remove(&network->node);
    free(network);
  }
}

/* ---- the end of a peer ---- */

/* Nothing happens to it any more. The descriptor must still be open: once closed, its number may
 * belong to another thread's descriptor, which is not ours to unwatch. */
static void pending_peer_leave(struct pending_peer *peer) {
  engine_unwatch(peer->peers->engine, &peer->source);
  engine_unwatch(peer->peers->engine, &peer->endpoint_source);
  engine_timer_stop(&peer->timer);
  list_remove(&peer->node);
  if (peer->network) {
    peer->peers->count--;
    peer->network->count--;
    peer->address->count--;
    pending_network_tidy(peer->network, peer->address);
    peer->network = NULL;
    peer->address = NULL;
  }
}

static void pending_peer_close(struct pending_peer *peer) {
  pending_peer_leave(peer);
  endpoint_free(peer->endpoint);
  descriptor_close(peer->accept.fd);
  free(peer);
}

/* Without an endpoint the lane is a TCP flow. */
static void answer(struct pending_peer *peer, bool has_endpoint) {
  pending_peer_leave(peer);
  if (!has_endpoint) {
    endpoint_free(peer->endpoint);
    peer->endpoint = NULL;
  }
  accept_handshake_answer(&peer->accept, peer->endpoint);
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
  struct pending_peer *peer = LIST_ENTRY(timer, struct pending_peer, timer);
  uint64_t end_ns = peer->since_ns + PENDING_PEER_NS;
  if (peer->state == PENDING_PEER_PROVED) {
    answer(peer, false);
  } else if (now_ns >= end_ns) {
    pending_peer_reject(peer, "it did not say in time who it is");
  } else if (tcp_stats_has_unacked(peer->accept.fd)) {
    pending_peer_close(peer);
  } else {
    engine_timer_set(peer->peers->engine, timer, end_ns);
  }
}

static struct pending_network *pending_network_largest(const struct pending_peers *peers) {
  struct pending_network *most = NULL;
  LIST_FOR_EACH(node, &peers->networks) {
    struct pending_network *network = LIST_ENTRY(node, struct pending_network, node);
    most = !most || network->count > most->count ? network : most;
  }
  return most;
}

static struct pending_address *pending_address_largest(const struct pending_network *network) {
  struct pending_address *most = NULL;
  LIST_FOR_EACH(node, &network->addresses) {
    struct pending_address *address = LIST_ENTRY(node, struct pending_address, node);
    most = !most || address->count > most->count ? address : most;
  }
  return most;
}

/* The oldest that has sent no hello; the oldest, if all have. */
static struct pending_peer *pending_address_victim(const struct pending_address *address) {
  LIST_FOR_EACH(node, &address->peers) {
    struct pending_peer *peer = LIST_ENTRY(node, struct pending_peer, node);
    if (peer->state == PENDING_PEER_HELLO) {
      return peer;
    }
  }
  return LIST_ENTRY(list_first(&address->peers), struct pending_peer, node);
}

static void evict_one(struct pending_peers *peers) {
  const struct pending_address *most = pending_address_largest(pending_network_largest(peers));
  pending_peer_reject(pending_address_victim(most), "too many strangers at once");
}

/* ---- what a peer sends ---- */

static void hello_arrived(struct pending_peer *peer) {
  struct pending_peers *peers = peer->peers;
  int error = accept_handshake_hello(&peer->accept);
  if (error == -EPROTO) {
    pending_peer_reject(peer, "it does not speak this protocol");
  } else if (error) {
    pending_peer_close(peer);
  } else {
    uint64_t end_ns = peer->since_ns + PENDING_PEER_NS;
    uint64_t look_ns = clock_now_ns() + tcp_stats_ack_wait_ns(peer->accept.fd);
    peer->state = PENDING_PEER_PROOF;
    peer->got = 0;
    engine_timer_set(peers->engine, &peer->timer, look_ns < end_ns ? look_ns : end_ns);
  }
}

/* Until the endpoint is ready, or cannot be, or takes too long. */
static int wait_for_endpoint(struct pending_peer *peer) {
  struct engine *engine = peer->peers->engine;
  list_push_back(&peer->peers->proved, &peer->node);
  int error = engine_watch(engine, &peer->source, peer->accept.fd, EPOLLIN);
  error = error
              ? error
              : engine_watch(engine, &peer->endpoint_source, endpoint_fd(peer->endpoint), EPOLLIN);
  engine_timer_set(engine, &peer->timer, clock_now_ns() + ACCEPT_PATIENCE_NS);
  return error;
}

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = LIST_ENTRY(source, struct pending_peer, endpoint_source);
  (void)events;
  int error = endpoint_advance(peer->endpoint);
  if (error != -EINPROGRESS) {
    answer(peer, error == 0);
  }
}

static void proof_arrived(struct pending_peer *peer) {
  pending_peer_leave(peer);
  peer->state = PENDING_PEER_PROVED;
  int error = accept_handshake_proof(&peer->accept, &peer->endpoint);
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

/* Checks the beginning before the rest is there: a scanner sends less than a hello, and another
 * wire version may have hellos of another size. False: the peer was closed. */
static bool is_ours_so_far(struct pending_peer *peer) {
  enum handshake_kind kind;
  struct handshake_prefix prefix;
  int error = handshake_prefix_check(peer->accept.transcript.hello, &kind, &prefix);
  if (error == -EPROTONOSUPPORT) {
    accept_handshake_refuse_version(&peer->accept, &prefix);
    pending_peer_close(peer);
  } else if (error || kind != HANDSHAKE_HELLO) {
    pending_peer_reject(peer, "it does not speak this protocol");
    error = -EPROTO;
  }
  return !error;
}

/* Reads exactly the message that is due: what follows the proof belongs to the lane. */
static void pending_peer_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = (struct pending_peer *)source;
  (void)events;
  if (peer->state == PENDING_PEER_PROVED) {
    /* It sends nothing before it has the reply, but it may leave. */
    if (!tcp_socket_is_quiet(peer->accept.fd)) {
      pending_peer_close(peer);
    }
    return;
  }
  bool is_hello = peer->state == PENDING_PEER_HELLO;
  uint8_t *message = is_hello ? peer->accept.transcript.hello : peer->accept.proof;
  size_t wanted = is_hello ? HELLO_BYTES : PROOF_BYTES;
  ssize_t n = recv(peer->accept.fd, message + peer->got, wanted - peer->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (n <= 0) {
    /* A health check of the cloud, or a peer that gave up: nothing worth a word. */
    pending_peer_close(peer);
    return;
  }
  peer->got += (size_t)n;
  if (is_hello && peer->got >= HANDSHAKE_PREFIX_BYTES && !is_ours_so_far(peer)) {
    return;
  }
  if (peer->got == wanted) {
    if (is_hello) {
      hello_arrived(peer);
    } else {
      proof_arrived(peer);
    }
  }
}

/* ---- all of them ---- */

static atomic_uint ports; /* of the process */

void pending_peers_init(struct pending_peers *peers, struct engine *engine, const struct nic *nic) {
  *peers = (struct pending_peers){ .engine = engine, .nic = nic };
  list_init(&peers->networks);
  list_init(&peers->proved);
  atomic_fetch_add(&ports, 1);
}

static unsigned share(void) {
  uint64_t budget = open_files_limit() / PENDING_PEERS_PART;
  budget = budget < PENDING_PEERS_MAX ? budget : PENDING_PEERS_MAX;
  uint64_t each = budget / atomic_load(&ports);
  return each > PENDING_PEERS_LEAST ? (unsigned)each : PENDING_PEERS_LEAST;
}

/* Each address's list begins with its oldest. */
static struct pending_peer *find_oldest(const struct pending_peers *peers) {
  struct pending_peer *oldest = NULL;
  LIST_FOR_EACH(network_node, &peers->networks) {
    LIST_FOR_EACH(node, &LIST_ENTRY(network_node, struct pending_network, node)->addresses) {
      const struct pending_address *address = LIST_ENTRY(node, struct pending_address, node);
      struct pending_peer *peer =
          LIST_ENTRY(list_first(&address->peers), struct pending_peer, node);
      oldest = !oldest || peer->since_ns < oldest->since_ns ? peer : oldest;
    }
  }
  return oldest;
}

uint64_t pending_peers_oldest_ns(const struct pending_peers *peers) {
  engine_assert_locked(peers->engine);
  const struct pending_peer *oldest = find_oldest(peers);
  return oldest ? oldest->since_ns : 0;
}

void pending_peers_evict_oldest(struct pending_peers *peers) {
  engine_assert_locked(peers->engine);
  struct pending_peer *oldest = find_oldest(peers);
  if (oldest) {
    pending_peer_reject(oldest, "descriptors are missing, and it has not proved who it is");
  }
}

/* Counts it with its source; NULL: no memory. */
static struct pending_peer *pending_peer_new(struct pending_peers *peers,
                                             const struct sockaddr_storage *from) {
  struct in6_addr key = pending_address_key(from);
  struct pending_network *network = pending_network_get(peers, &key);
  struct pending_address *address = network ? pending_address_get(network, &key) : NULL;
  struct pending_peer *peer = address ? calloc(1, sizeof *peer) : NULL;
  if (!peer) {
    if (network) {
      pending_network_tidy(network, address);
    }
    return NULL;
  }
  peer->peers = peers;
  peer->network = network;
  peer->address = address;
  list_push_back(&address->peers, &peer->node);
  address->count++;
  network->count++;
  peers->count++;
  return peer;
}

void pending_peers_admit(struct pending_peers *peers, int fd, const struct sockaddr_storage *from) {
  engine_assert_locked(peers->engine);
  for (unsigned most = share(); peers->count >= most;) {
    evict_one(peers);
  }
  struct pending_peer *peer = pending_peer_new(peers, from);
  if (!peer) {
    descriptor_close(fd);
    return;
  }
  peer->accept.engine = peers->engine;
  peer->accept.nic = peers->nic;
  peer->accept.fd = fd;
  peer->accept.from = *from;
  peer->since_ns = clock_now_ns();
  peer->source = (struct engine_source){ .ready = pending_peer_ready, .fd = -1 };
  peer->endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  peer->timer.expired = pending_peer_expired;
  if (engine_watch(peers->engine, &peer->source, fd, EPOLLIN) != 0) {
    pending_peer_reject(peer, "it cannot be watched");
    return;
  }
  engine_timer_set(peers->engine, &peer->timer, peer->since_ns + PENDING_PEER_NS);
}

void pending_peers_close_all(struct pending_peers *peers) {
  engine_assert_locked(peers->engine);
  struct pending_peer *peer;
  while ((peer = find_oldest(peers))) {
    pending_peer_close(peer);
  }
  struct list_node *node;
  while ((node = list_first(&peers->proved))) {
    pending_peer_close(LIST_ENTRY(node, struct pending_peer, node));
  }
  atomic_fetch_sub(&ports, 1);
}
