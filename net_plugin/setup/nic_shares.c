/* SPDX-License-Identifier: Apache-2.0 */
/* See nic_shares.h. */
#include "net_plugin/setup/nic_shares.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "net_plugin/lane/route.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/no_path.h"

#define LIMITS 64

static struct log_limit limits[LIMITS]; /* by the NIC's index; two may share one */

#define CARRIERS_TEXT (NIC_MAX_FUSED * (IF_NAMESIZE + 5))
/* "eth0" or "eth0 and eth2"; false: none carries anything. */
static bool list_carriers(const struct nic_shares *shares, char text[CARRIERS_TEXT]) {
  size_t length = 0;
  for (unsigned i = 0; i < shares->count; i++) {
    if (shares->of[i].lanes) {
      length += (size_t)snprintf(text + length, CARRIERS_TEXT - length, "%s%.15s",
                                 length ? " and " : "", shares->route->nics[i].name);
    }
  }
  return length > 0;
}

/* Of the peer's addresses a lane waits for one, that of its home path. */
static bool may_reach_others(const struct nic_shares *shares, unsigned which) {
  const struct handle *remote = &shares->route->remote;
  bool is_possible = false;
  for (unsigned i = 0; i < remote->count && !is_possible; i++) {
    is_possible = i != shares->of[which].address &&
                  route_find(&shares->route->nics[which], &remote->addresses[i]) != ROUTE_ELSEWHERE;
  }
  return is_possible;
}

static void name_idle(struct nic_shares *shares, unsigned which, uint64_t now_ns) {
  struct nic_share *share = &shares->of[which];
  const struct nic *nic = &shares->route->nics[which];
  const struct sockaddr_storage *address = &shares->route->remote.addresses[share->address];
  char carriers[CARRIERS_TEXT], why[NO_PATH_TEXT], text[TCP_ADDRESS_TEXT];
  uint64_t suppressed;
  if (!list_carriers(shares, carriers)) {
    return; /* the connection is about to end, or another NIC to come */
  }
  share->is_judged = true;
  share->is_told =
      log_limit_pass(&limits[nic->index % LIMITS], now_ns, SETUP_NIC_WARN_INTERVAL_NS, &suppressed);
  if (share->is_told) {
    bool has_others = may_reach_others(shares, which);
    LOG_WARN("%s %s %.*s's address%s, its share goes by %s (%s: %s)", nic->name,
             has_others ? "does not reach" : "reaches none of", (int)strcspn(shares->peer, " "),
             shares->peer, has_others ? "" : "es", carriers, tcp_address_text(address, text),
             no_path_text(nic, address, shares->route->remote.advertised >> share->address & 1,
                          share->error, why));
  }
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct nic_shares *shares = LIST_ENTRY(timer, struct nic_shares, timer);
  uint64_t next_ns = UINT64_MAX;
  for (unsigned i = 0; i < shares->count; i++) {
    const struct nic_share *share = &shares->of[i];
    uint64_t due_ns = share->since_ns + NIC_IDLE_NS;
    if (!share->since_ns || !share->error || share->is_judged) {
      continue;
    }
    if (now_ns >= due_ns) {
      name_idle(shares, i, now_ns);
    } else if (due_ns < next_ns) {
      next_ns = due_ns;
    }
  }
  if (next_ns != UINT64_MAX) {
    engine_timer_set(shares->engine, timer, next_ns);
  }
}

void nic_shares_init(struct nic_shares *shares, struct engine *engine,
                     const struct peering_route *route, const char *peer) {
  *shares = (struct nic_shares){
    .route = route, .count = route->nic_count, .peer = peer, .engine = engine
  };
  shares->timer.expired = timer_expired;
}

void nic_shares_stop(struct nic_shares *shares) {
  engine_timer_stop(&shares->timer);
}

void nic_shares_dialled(struct nic_shares *shares, struct path path) {
  struct nic_share *share = &shares->of[path.nic];
  if (shares->count > 1 && !share->lanes && !share->since_ns) {
    share->since_ns = clock_now_ns();
    share->error = 0;
  }
}

void nic_shares_failed(struct nic_shares *shares, struct path path, int error) {
  struct nic_share *share = &shares->of[path.nic];
  if (!share->since_ns || share->is_judged) {
    return;
  }
  share->error = error;
  share->address = path.address;
  uint64_t now_ns = clock_now_ns(), due_ns = share->since_ns + NIC_IDLE_NS;
  if (!shares->timer.deadline_ns) {
    engine_timer_set(shares->engine, &shares->timer, due_ns > now_ns ? due_ns : now_ns);
  }
}

/* The NIC that the lane's packets leave through; the one it was dialled through, if none is known
 * to do so. */
static unsigned find_exit(const struct nic_shares *shares, unsigned nic,
                          const struct lane_path *up) {
  const struct nic *nics = shares->route->nics;
  if (up->endpoint || tcp_socket_leaves_through(up->fd, &nics[nic])) {
    return nic;
  }
  for (unsigned i = 0; i < shares->count; i++) {
    if (tcp_socket_leaves_through(up->fd, &nics[i])) {
      return i;
    }
  }
  return nic;
}

void nic_shares_up(struct nic_shares *shares, struct path path, unsigned lane,
                   const struct lane_path *up, int error) {
  if (shares->count < 2) {
    return;
  }
  const struct nic *nic = &shares->route->nics[path.nic];
  unsigned by = find_exit(shares, path.nic, up);
  struct nic_share *share = &shares->of[by];
  share->lanes |= lane_bit(lane);
  share->since_ns = 0;
  if (share->is_told) {
    LOG_INFO("%s carries its share to %s now", shares->route->nics[by].name, shares->peer);
  }
  share->is_judged = share->is_told = false;
  if (by != path.nic) {
    nic_shares_dialled(shares, path);
    error = shares->of[path.nic].error ? shares->of[path.nic].error : error;
    if (!error) {
      enum route_way way = route_find(nic, &shares->route->remote.addresses[path.address]);
      error = way == ROUTE_ELSEWHERE ? -ENETUNREACH : -EPERM;
    }
    nic_shares_failed(shares, path, error);
  }
}

void nic_shares_closed(struct nic_shares *shares, unsigned lane) {
  for (unsigned i = 0; i < shares->count; i++) {
    shares->of[i].lanes &= ~lane_bit(lane);
  }
}
