/* SPDX-License-Identifier: Apache-2.0 */
/* See peer.h. */
#include "net_plugin/setup/peer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/list.h"
#include "net_plugin/setup/limits.h"

struct peer {
  struct list_node node;
  uint32_t process;
  unsigned users;
  _Atomic uint64_t left_ns; /* 0: it has not, or came again */
  atomic_bool is_translated;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers all but atomics */
static struct list peers = { .head = { &peers.head, &peers.head } };

static struct peer *find(uint32_t process) {
  LIST_FOR_EACH(node, &peers) {
    struct peer *peer = LIST_ENTRY(node, struct peer, node);
    if (peer->process == process) {
      return peer;
    }
  }
  return NULL;
}

struct peer *peer_get(uint32_t process) {
  pthread_mutex_lock(&lock);
  struct peer *peer = find(process);
  if (!peer && (peer = calloc(1, sizeof *peer))) {
    peer->process = process;
    list_push_back(&peers, &peer->node);
  }
  if (peer) {
    peer->users++;
  }
  pthread_mutex_unlock(&lock);
  return peer;
}

void peer_put(struct peer *peer) {
  pthread_mutex_lock(&lock);
  if (--peer->users == 0) {
    list_remove(&peer->node);
    free(peer);
  }
  pthread_mutex_unlock(&lock);
}

void peer_left(struct peer *peer, uint64_t now_ns) {
  atomic_store_explicit(&peer->left_ns, now_ns, memory_order_relaxed);
}

void peer_came(struct peer *peer) {
  atomic_store_explicit(&peer->left_ns, 0, memory_order_relaxed);
}

bool peer_note_translated(struct peer *peer) {
  return !atomic_exchange_explicit(&peer->is_translated, true, memory_order_relaxed);
}

bool peer_has_left(const struct peer *peer, uint64_t since_ns) {
  uint64_t left_ns = atomic_load_explicit(&peer->left_ns, memory_order_relaxed);
  return left_ns && left_ns + PEER_LEFT_TOGETHER_NS >= since_ns;
}
