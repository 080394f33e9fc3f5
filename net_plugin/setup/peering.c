/* SPDX-License-Identifier: Apache-2.0 */
/* See peering.h. */
#include "net_plugin/setup/peering.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/no_path.h"

/* ---- what all connections to one process know of it together ---- */

struct peer {
  struct list_node node;
  uint32_t process;
  unsigned users;
  _Atomic uint64_t left_ns; /* 0: it has not, or came again */
  atomic_bool is_translated;
};

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER; /* covers all but atomics */
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
  pthread_mutex_lock(&peers_lock);
  struct peer *peer = find(process);
  if (!peer && (peer = calloc(1, sizeof *peer))) {
    peer->process = process;
    list_push_back(&peers, &peer->node);
  }
  if (peer) {
    peer->users++;
  }
  pthread_mutex_unlock(&peers_lock);
  return peer;
}

void peer_put(struct peer *peer) {
  pthread_mutex_lock(&peers_lock);
  if (--peer->users == 0) {
    list_remove(&peer->node);
    free(peer);
  }
  pthread_mutex_unlock(&peers_lock);
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

/* ---- descriptors, so that the application always has some ---- */

static _Atomic uint64_t taken;
static atomic_flag is_told = ATOMIC_FLAG_INIT;

/* One more flow for a connection that has so many. False: descriptors are few, and it has at least
 * `least`; the user is told once. A flow counts from its dial, or the peer's, until it is closed.
 */
static bool take_flow(unsigned flows, unsigned least) {
  uint64_t limit = open_files_limit(), used = atomic_load(&taken);
  uint64_t left =
      limit / FLOW_BUDGET_PART + flows > used ? limit / FLOW_BUDGET_PART + flows - used : 0;
  if (flows >= least && flows >= left / FLOW_BUDGET_CONNECTION_PART) {
    if (!atomic_flag_test_and_set(&is_told)) {
      LOG_WARN("a connection has %u flows and could use more, and later ones may have fewer: this "
               "process may open %" PRIu64
               " descriptors. For full speed raise the limit: ulimit -n (systemd: LimitNOFILE=, "
               "docker: --ulimit nofile=)",
               flows, limit);
    }
    return false;
  }
  atomic_fetch_add(&taken, 1);
  return true;
}

/* ---- one connection ---- */

int peering_connect(struct peering *peering, const struct link_config *link,
                    const struct connection_setup *setup, const struct conn_params *theirs,
                    const struct sockaddr_storage *their_address, const char *nic) {
  struct connection_config config = { .link = *link,
                                      .setup = setup,
                                      .setup_data = peering,
                                      .stall_report_ns = param_duration_ns(PARAM_STALL_REPORT) };
  char text[TCP_ADDRESS_TEXT];
  peering->process = peer_get(theirs->process);
  if (!peering->process) {
    return -ENOMEM;
  }
  snprintf(peering->peer, sizeof peering->peer, "%.60s (%s, %.15s)", theirs->host,
           tcp_address_text(their_address, text), theirs->nic);
  memcpy(config.peer, peering->peer, sizeof config.peer);
  snprintf(config.nic, sizeof config.nic, "%.15s", nic);
  config.link.policy.shared = engine_policy_shared(peering->engine);
  config.link.seed = clock_now_ns();
  int error = connection_new(peering->engine, &config, &peering->connection);
  if (!error) {
    peering_take_lane(peering, 0); /* which is why there is a connection */
  }
  return error;
}

void peering_end(struct peering *peering) {
  atomic_fetch_sub(&taken, (unsigned)__builtin_popcountll(peering->counted));
  if (peering->process) {
    peer_put(peering->process);
  }
}

bool peering_take_lane(struct peering *peering, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  unsigned flows = (unsigned)__builtin_popcountll(peering->counted);
  bool is_counted = (peering->counted & bit) != 0 || take_flow(flows, peering->least_lanes);
  peering->counted |= is_counted ? bit : 0;
  return is_counted;
}

void peering_give_lane(struct peering *peering, unsigned lane) {
  uint64_t bit = lane_bit(lane);
  atomic_fetch_sub(&taken, (peering->counted & bit) != 0);
  peering->counted &= ~bit;
}

void peering_lane_closed(struct peering *peering, unsigned lane, bool has_left) {
  peering_give_lane(peering, lane);
  if (has_left) {
    peer_left(peering->process, clock_now_ns());
  }
}

/* Something else says that the process is gone, too. */
static bool is_confirmed(const struct peering *peering) {
  return peering->connection && (peer_has_left(peering->process, peering->refused_ns) ||
                                 connection_has_failed_sibling(peering->connection));
}

bool peering_heard(struct peering *peering, bool is_refused) {
  uint64_t now_ns = clock_now_ns();
  if (!is_refused || (peering->connection && connection_open_lanes(peering->connection) > 0)) {
    peering->refused_ns = 0;
    return false;
  }
  bool is_sure = is_confirmed(peering);
  peering->refused_ns = peering->refused_ns ? peering->refused_ns : now_ns;
  bool is_gone = now_ns - peering->refused_ns >= (is_sure ? REFUSAL_CONFIRMED_NS : REFUSAL_GONE_NS);
  if (is_gone && peering->process) {
    peer_left(peering->process, now_ns); /* the others need not find out by themselves */
  }
  return is_gone;
}

const char *peering_path_text(const struct peering *peering, const struct nic *nics, unsigned count,
                              char text[CONNECTION_PATH_TEXT]) {
  size_t length = 0;
  text[0] = '\0';
  for (unsigned i = 0; i < count; i++) {
    length += (size_t)snprintf(text + length, CONNECTION_PATH_TEXT - length, "%s%.15s %s",
                               i > 0 ? ", " : "", nics[i].name, no_path_nic_state(&nics[i]));
  }
  if (peering->last_error) {
    snprintf(text + length, CONNECTION_PATH_TEXT - length, ", the last try to connect: %s (%d)",
             strerror(-peering->last_error), -peering->last_error);
  }
  return text;
}
