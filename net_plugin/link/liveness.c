/* SPDX-License-Identifier: Apache-2.0 */
/* See liveness.h. */
#include "net_plugin/link/liveness.h"

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) {
  return a_ns < b_ns ? a_ns : b_ns;
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns) {
  return a_ns > b_ns ? a_ns : b_ns;
}

void liveness_init(struct liveness *liveness, struct link_lane *lanes, uint64_t timeout_ns,
                   uint64_t stopped_timeout_ns, uint64_t now_ns) {
  uint64_t interval_ns = timeout_ns / 4 + 1;
  *liveness = (struct liveness){
    .lanes = lanes,
    .timeout_ns = timeout_ns,
    .stopped_timeout_ns = later(timeout_ns, stopped_timeout_ns),
    .interval_ns = earlier(interval_ns, LIVENESS_INTERVAL_MAX_NS),
    .doubt_ns = earlier(timeout_ns / 2, LIVENESS_DOUBT_NS),
    .spoke_ns = now_ns,
    .heard_ns = now_ns,
    .waiting_ns = now_ns,
    .revived_ns = now_ns,
    .rose_ns = now_ns,
    .quiet_ns = now_ns,
  };
}

static uint64_t liveness_silent_since(const struct liveness *liveness) {
  return later(liveness->spoke_ns, liveness->waiting_ns);
}

uint64_t liveness_quiet_since_ns(const struct liveness *liveness) {
  return later(liveness->heard_ns, liveness->waiting_ns);
}

void liveness_pardon(struct liveness *liveness, uint64_t up, uint64_t now_ns) {
  for (uint64_t lanes = up; lanes != 0; lanes &= lanes - 1) {
    struct link_lane *lane = &liveness->lanes[__builtin_ctzll(lanes)];
    lane->moved_ns = now_ns - lane->spoke_ns < LIVENESS_STALL_NS ? now_ns : lane->moved_ns;
  }
}

uint64_t liveness_silence_ns(const struct liveness *liveness, uint64_t now_ns) {
  uint64_t since_ns = liveness_silent_since(liveness);
  return now_ns > since_ns ? now_ns - since_ns : 0;
}

void liveness_resumed(struct liveness *liveness, uint64_t gap_ns, uint64_t now_ns) {
  /* What was asked before is still not answered, but the time for it is longer. */
  uint64_t *clocks[] = { &liveness->spoke_ns, &liveness->heard_ns, &liveness->waiting_ns,
                         &liveness->quiet_ns, &liveness->asked_ns, &liveness->answered_ns };
  for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    *clocks[i] = *clocks[i] + gap_ns < now_ns ? *clocks[i] + gap_ns : now_ns;
  }
  if (liveness_silence_ns(liveness, now_ns) > liveness->timeout_ns / 2) {
    liveness->waiting_ns = now_ns - liveness->timeout_ns / 2;
  }
  liveness->revived_ns = liveness->rose_ns = now_ns;
}

/* How often the peer was asked in this silence. */
static unsigned liveness_asks(const struct liveness *liveness) {
  return liveness->quiet_ns == liveness_quiet_since_ns(liveness) ? liveness->asks : 0;
}

static uint64_t liveness_ask_ns(const struct liveness *liveness) {
  uint64_t last_ns =
      liveness_asks(liveness) > 0 ? liveness->asked_ns : liveness_quiet_since_ns(liveness);
  return last_ns + liveness->interval_ns;
}

/* When the peer is dead if nothing more is heard of it. */
static uint64_t liveness_end_ns(const struct liveness *liveness) {
  uint64_t since_ns = liveness_silent_since(liveness);
  return earlier(later(since_ns, liveness->answered_ns) + liveness->timeout_ns,
                 since_ns + liveness->stopped_timeout_ns);
}

uint64_t liveness_next_ns(const struct liveness *liveness) {
  uint64_t ask_ns = liveness_ask_ns(liveness);
  return liveness_asks(liveness) < 2 ? ask_ns : earlier(ask_ns, liveness_end_ns(liveness));
}

uint64_t liveness_ask(struct liveness *liveness, uint64_t up, unsigned heard, uint64_t now_ns) {
  if (now_ns < liveness_ask_ns(liveness)) {
    return 0;
  }
  bool is_first = liveness_asks(liveness) == 0;
  liveness->asks = is_first ? 1 : liveness->asks + 1;
  liveness->quiet_ns = liveness_quiet_since_ns(liveness);
  liveness->asked_ns = now_ns;
  uint64_t heard_bit = lane_bit(heard);
  return is_first && (up & heard_bit) != 0 ? heard_bit : up;
}

bool liveness_is_in_doubt(const struct liveness *liveness, uint64_t now_ns) {
  return liveness_asks(liveness) > 0 && liveness_silence_ns(liveness, now_ns) >= liveness->doubt_ns;
}

/* Between two PINGs there may be more than an interval, and what was sent before the silence may be
 * acknowledged in its first 40 ms (TCP_DELACK_MIN). */
bool liveness_is_host_there(const struct liveness *liveness, uint64_t now_ns) {
  return liveness->answered_ns + liveness->interval_ns * 3 / 2 > now_ns;
}

bool liveness_is_dead(const struct liveness *liveness, uint64_t now_ns) {
  return liveness_asks(liveness) >= 2 && now_ns >= liveness_end_ns(liveness);
}

uint64_t liveness_limit_ns(const struct liveness *liveness, uint64_t bytes, uint32_t ps_per_byte,
                           bool is_known, bool is_alone) {
  /* At most 2^28 bytes are on the way, so this stays below 2^63. */
  uint64_t limit_ns = bytes * ps_per_byte / 1000 * LIVENESS_STALL_FACTOR;
  limit_ns = later(limit_ns, is_known ? LIVENESS_STALL_NS : LIVENESS_STALL_UNKNOWN_NS);
  return is_alone ? later(limit_ns, liveness->interval_ns) : limit_ns;
}

uint64_t liveness_start_ns(const struct liveness *liveness, unsigned lane, bool has_bytes,
                           bool is_alone) {
  const struct link_lane *watched = &liveness->lanes[lane];
  return later(has_bytes ? watched->moved_ns : watched->asked_ns,
               is_alone ? liveness->rose_ns : liveness->revived_ns);
}
