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
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/accept_handshake.h"

#define PENDING_PEER_NS (10 * NS_PER_S)
#define WARN_INTERVAL_NS (30 * NS_PER_S)
/* Of IPv6, the network: its owner has all addresses in it. */
#define PREFIX_BYTES 8

/* The peers of one source: an IPv4 address or an IPv6 network. */
struct source_prefix {
  uint8_t key[PREFIX_BYTES];
  struct list peers; /* oldest first */
  unsigned count;
  struct list_node node;
};

enum pending_peer_state { PENDING_PEER_HELLO, PENDING_PEER_PROOF };

struct pending_peer {
  struct engine_source source;
  struct engine_timer timer;
  struct pending_peers *peers;
  struct source_prefix *prefix;
  struct list_node node;
  int fd;
  struct sockaddr_storage from;
  enum pending_peer_state state;
  uint64_t since_ns; /* when it was accepted */
  size_t got;        /* of the message that the state waits for */
  struct handshake_messages messages;
};

/* ---- prefixes ---- */

static void make_key(const struct sockaddr_storage *from, uint8_t key[PREFIX_BYTES]) {
  memset(key, 0, PREFIX_BYTES);
  if (from->ss_family == AF_INET6) {
    memcpy(key, &((const struct sockaddr_in6 *)from)->sin6_addr, PREFIX_BYTES);
  } else {
    memcpy(key, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
  }
}

static struct source_prefix *prefix_of(struct pending_peers *peers,
                                       const struct sockaddr_storage *from) {
  uint8_t key[PREFIX_BYTES];
  make_key(from, key);
  LIST_FOR_EACH(node, &peers->prefixes) {
    struct source_prefix *prefix = LIST_ENTRY(node, struct source_prefix, node);
    if (memcmp(prefix->key, key, PREFIX_BYTES) == 0) {
      return prefix;
    }
  }
  struct source_prefix *prefix = calloc(1, sizeof *prefix);
  if (prefix) {
    memcpy(prefix->key, key, PREFIX_BYTES);
    list_init(&prefix->peers);
    list_push_back(&peers->prefixes, &prefix->node);
  }
  return prefix;
}

static void prefix_release(struct source_prefix *prefix) {
  if (prefix->count == 0) {
    list_remove(&prefix->node);
    free(prefix);
  }
}

/* ---- the end of a peer ---- */

/* The descriptor is the caller's now. It must still be open: once closed, its number may belong to
 * another thread's descriptor, which is not ours to unwatch. */
static void pending_peer_free(struct pending_peer *peer) {
  engine_unwatch(peer->peers->engine, &peer->source);
  engine_timer_stop(&peer->timer);
  list_remove(&peer->node);
  peer->peers->count--;
  peer->prefix->count--;
  prefix_release(peer->prefix);
  free(peer);
}

static void pending_peer_close(struct pending_peer *peer) {
  int fd = peer->fd;
  pending_peer_free(peer);
  descriptor_close(fd);
}

static void warn_dismissed(const struct nic *nic, const struct sockaddr_storage *from,
                           const char *why) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(WARN_INTERVAL_NS,
                 "%s: dismissed a connection from %s: %s (a port scanner or a foreign service; the "
                 "job goes on)",
                 nic->name, tcp_address_text(from, text), why);
}

static void pending_peer_dismiss(struct pending_peer *peer, const char *why) {
  warn_dismissed(peer->peers->nic, &peer->from, why);
  pending_peer_close(peer);
}

static void pending_peer_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  pending_peer_dismiss(LIST_ENTRY(timer, struct pending_peer, timer),
                       "it did not say in time who it is");
}

static void evict_one(struct pending_peers *peers) {
  struct source_prefix *most = NULL;
  LIST_FOR_EACH(node, &peers->prefixes) {
    struct source_prefix *prefix = LIST_ENTRY(node, struct source_prefix, node);
    if (!most || prefix->count > most->count) {
      most = prefix;
    }
  }
  pending_peer_dismiss(LIST_ENTRY(list_first(&most->peers), struct pending_peer, node),
                       "too many strangers at once");
}

/* ---- what a peer sends ---- */

static void hello_arrived(struct pending_peer *peer) {
  struct pending_peers *peers = peer->peers;
  int error = accept_handshake_hello(peers->engine, peers->nic, &peer->messages, peer->fd);
  if (error == -EPROTO) {
    pending_peer_dismiss(peer, "it does not speak this protocol");
  } else if (error) {
    pending_peer_close(peer);
  } else {
    peer->state = PENDING_PEER_PROOF;
    peer->got = 0;
  }
}

static void proof_arrived(struct pending_peer *peer) {
  struct pending_peers *peers = peer->peers;
  struct sockaddr_storage from = peer->from;
  struct handshake_messages messages = peer->messages;
  int fd = peer->fd;
  pending_peer_free(peer);
  int error = accept_handshake_proof(peers->engine, peers->nic, &messages, fd, &from);
  if (error) {
    warn_dismissed(peers->nic, &from,
                   error == -EACCES ? "it does not belong to this job"
                                    : "it does not speak this protocol");
  }
}

/* Checks the beginning before the rest is there: a scanner sends less than a hello, and another
 * wire version may have hellos of another size. False: the peer was closed. */
static bool is_ours_so_far(struct pending_peer *peer) {
  enum handshake_kind kind;
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  int error = handshake_prefix_check(peer->messages.hello, &kind, &wire_version, version);
  if (error == -EPROTONOSUPPORT) {
    accept_handshake_refuse_version(peer->peers->nic, wire_version, version, peer->fd, &peer->from);
    pending_peer_close(peer);
  } else if (error || kind != HANDSHAKE_HELLO) {
    pending_peer_dismiss(peer, "it does not speak this protocol");
    error = -EPROTO;
  }
  return !error;
}

/* Reads exactly the message that is due: what follows the proof belongs to the lane. */
static void pending_peer_ready(struct engine_source *source, uint32_t events) {
  struct pending_peer *peer = (struct pending_peer *)source;
  (void)events;
  bool is_hello = peer->state == PENDING_PEER_HELLO;
  uint8_t *message = is_hello ? peer->messages.hello : peer->messages.proof;
  size_t wanted = is_hello ? HELLO_BYTES : PROOF_BYTES;
  ssize_t n = recv(peer->fd, message + peer->got, wanted - peer->got, MSG_DONTWAIT);
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
  list_init(&peers->prefixes);
  atomic_fetch_add(&ports, 1);
}

static unsigned share(void) {
  uint64_t budget = open_files_limit() / PENDING_PEERS_PART;
  budget = budget < PENDING_PEERS_MAX ? budget : PENDING_PEERS_MAX;
  uint64_t each = budget / atomic_load(&ports);
  return each > PENDING_PEERS_LEAST ? (unsigned)each : PENDING_PEERS_LEAST;
}

/* Each prefix's list begins with its oldest. */
static struct pending_peer *find_oldest(const struct pending_peers *peers) {
  struct pending_peer *oldest = NULL;
  LIST_FOR_EACH(node, &peers->prefixes) {
    const struct source_prefix *prefix = LIST_ENTRY(node, struct source_prefix, node);
    struct pending_peer *peer = LIST_ENTRY(list_first(&prefix->peers), struct pending_peer, node);
    if (!oldest || peer->since_ns < oldest->since_ns) {
      oldest = peer;
    }
  }
  return oldest;
}

uint64_t pending_peers_oldest_ns(const struct pending_peers *peers) {
  const struct pending_peer *oldest = find_oldest(peers);
  return oldest ? oldest->since_ns : 0;
}

void pending_peers_evict_oldest(struct pending_peers *peers) {
  struct pending_peer *oldest = find_oldest(peers);
  if (oldest) {
    pending_peer_dismiss(oldest, "descriptors are missing, and it has not proved who it is");
  }
}

void pending_peers_admit(struct pending_peers *peers, int fd, const struct sockaddr_storage *from) {
  for (unsigned most = share(); peers->count >= most;) {
    evict_one(peers);
  }
  struct source_prefix *prefix = prefix_of(peers, from);
  struct pending_peer *peer = prefix ? calloc(1, sizeof *peer) : NULL;
  if (!peer) {
    if (prefix) {
      prefix_release(prefix);
    }
    descriptor_close(fd);
    return;
  }
  peer->peers = peers;
  peer->prefix = prefix;
  peer->fd = fd;
  peer->from = *from;
  peer->since_ns = clock_now_ns();
  peer->source.ready = pending_peer_ready;
  peer->source.fd = -1;
  peer->timer.expired = pending_peer_expired;
  list_push_back(&prefix->peers, &peer->node);
  prefix->count++;
  peers->count++;
  if (engine_watch(peers->engine, &peer->source, fd, EPOLLIN) != 0) {
    pending_peer_dismiss(peer, "it cannot be watched");
    return;
  }
  engine_timer_set(peers->engine, &peer->timer, peer->since_ns + PENDING_PEER_NS);
}

void pending_peers_close_all(struct pending_peers *peers) {
  struct list_node *node;
  while ((node = list_first(&peers->prefixes))) {
    struct source_prefix *prefix = LIST_ENTRY(node, struct source_prefix, node);
    pending_peer_close(LIST_ENTRY(list_first(&prefix->peers), struct pending_peer, node));
  }
  atomic_fetch_sub(&ports, 1);
}
