/* SPDX-License-Identifier: Apache-2.0 */
/* See pending_peer.h. */
#include "net_plugin/setup/pending_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "common/open_files.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/lane/tcp_stats.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/limits.h"

enum pending_peer_state { PENDING_PEER_HELLO, PENDING_PEER_PROOF, PENDING_PEER_PROVED };

struct pending_peer {
  struct accept_peer accept; /* its timer: see pending_peer_expired */
  struct pending_peers *peers;
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
static void count_source(struct pending_peers *peers, struct pending_peer *peer, int change) {
  peers->count += (unsigned)change;
  LIST_FOR_EACH(node, &peers->waiting) {
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
    count_source(peer->peers, peer, -1);
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
    engine_timer_set(peer->peers->engine, timer, end_ns);
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
    engine_timer_set(peer->peers->engine, &peer->accept.talk.timer,
                     look_ns < end_ns ? look_ns : end_ns);
  }
}

/* Until the endpoint is ready, or cannot be, or takes too long. */
static int wait_for_endpoint(struct pending_peer *peer) {
  struct talk *talk = &peer->accept.talk;
  list_push_back(&peer->peers->proved, &peer->node);
  engine_timer_set(talk->engine, &talk->timer, clock_now_ns() + ACCEPT_PATIENCE_NS);
  int error = engine_watch(talk->engine, &talk->source, talk->fd, EPOLLIN);
  return error ? error : talk_watch_endpoint(talk);
}

static void endpoint_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = LIST_ENTRY(source, struct pending_peer, accept.talk.endpoint_source);
  (void)events;
  int error = talk_advance_endpoint(&peer->accept.talk);
  if (error != -EINPROGRESS) {
    answer(peer, error == 0);
  }
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

/* ---- all of them ---- */

static atomic_uint ports; /* of the process */

void pending_peers_init(struct pending_peers *peers, struct engine *engine, const struct nic *nic) {
  *peers = (struct pending_peers){ .engine = engine, .nic = nic };
  list_init(&peers->waiting);
  list_init(&peers->proved);
  atomic_fetch_add(&ports, 1);
}

static unsigned share(void) {
  uint64_t budget = open_files_limit() / PENDING_PEERS_PART;
  budget = budget < PENDING_PEERS_MAX ? budget : PENDING_PEERS_MAX;
  uint64_t each = budget / atomic_load(&ports);
  return each > PENDING_PEERS_LEAST ? (unsigned)each : PENDING_PEERS_LEAST;
}

static struct pending_peer *first_of(const struct list *list) {
  struct list_node *node = list_first(list);
  return node ? LIST_ENTRY(node, struct pending_peer, node) : NULL;
}

bool pending_peers_evict(struct pending_peers *peers, uint64_t before_ns) {
  engine_assert_locked(peers->engine);
  struct pending_peer *oldest = first_of(&peers->waiting);
  bool has_had_turn = oldest && oldest->since_ns <= before_ns;
  if (has_had_turn) {
    pending_peer_reject(oldest, "descriptors are missing, and it has not proved who it is");
  }
  return has_had_turn;
}

static void evict_one(struct pending_peers *peers) {
  struct pending_peer *chosen = first_of(&peers->waiting);
  LIST_FOR_EACH(node, &peers->waiting) {
    struct pending_peer *peer = LIST_ENTRY(node, struct pending_peer, node);
    chosen = goes_before(peer, chosen) ? peer : chosen;
  }
  pending_peer_reject(chosen, "too many strangers at once");
}

void pending_peers_admit(struct pending_peers *peers, int fd, const struct sockaddr_storage *from) {
  engine_assert_locked(peers->engine);
  for (unsigned most = share(); peers->count >= most;) {
    evict_one(peers);
  }
  struct pending_peer *peer = calloc(1, sizeof *peer);
  if (!peer) {
    descriptor_close(fd);
    return;
  }
  struct wire_address source;
  address_to_wire(from, &source);
  memcpy(&peer->source, source.ip, sizeof peer->source);
  peer->peers = peers;
  peer->since_ns = clock_now_ns();
  peer->accept.nic = peers->nic;
  peer->accept.from = *from;
  struct talk *talk = &peer->accept.talk;
  talk->engine = peers->engine;
  talk->fd = fd;
  talk->source = (struct engine_source){ .ready = pending_peer_ready, .fd = -1 };
  talk->endpoint_source = (struct engine_source){ .ready = endpoint_ready, .fd = -1 };
  talk->timer.expired = pending_peer_expired;
  peer->network_peers = peer->address_peers = 1;
  count_source(peers, peer, 1);
  list_push_back(&peers->waiting, &peer->node);
  if (engine_watch(peers->engine, &talk->source, fd, EPOLLIN) != 0) {
    pending_peer_reject(peer, "it cannot be watched");
    return;
  }
  engine_timer_set(peers->engine, &talk->timer, peer->since_ns + PENDING_PEER_NS);
}

void pending_peers_close_all(struct pending_peers *peers) {
  engine_assert_locked(peers->engine);
  struct pending_peer *peer;
  while ((peer = first_of(&peers->waiting)) || (peer = first_of(&peers->proved))) {
    pending_peer_close(peer);
  }
  atomic_fetch_sub(&ports, 1);
}
