/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of policy.h: random facts in an order that a link can produce, each followed by
 * every decision. Then what the policy makes of the facts. */
#include "net_plugin/policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "net_plugin/policy/limits.h"
#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/unit.h"

#define KIB 1024u
#define MS 1000000ull

static struct policy_shared shared;
static struct policy_config config;
static struct policy *policy;
static uint64_t now_ns;
static uint64_t up, rdma;
static struct policy_lane records[POLICY_MAX_LANES];
static const struct policy_lanes lanes_now = { &config, &up, &rdma, records, sizeof *records };

static void make(const struct policy_config *wanted) {
  now_ns = 1000 * MS;
  up = rdma = 0;
  memset(records, 0, sizeof records);
  config = *wanted;
  policy_shared_init(&shared);
  policy = calloc(1, policy_bytes());
  assert_non_null(policy);
  policy_init(policy, &lanes_now);
}

static void finish(void) {
  policy_end(policy);
  free(policy);
}

static void lane_up(unsigned lane) {
  up |= lane_bit(lane);
  policy_lane_up(policy, lane, now_ns);
}

static void lane_lost(unsigned lane) {
  up &= ~lane_bit(lane);
  rdma &= ~lane_bit(lane);
  policy_lane_lost(policy, lane);
  records[lane].in_flight_bytes = 0;
}

/* They are not in flight any more. */
static void bytes_acked(unsigned lane, uint64_t bytes) {
  records[lane].in_flight_bytes -= bytes;
  records[lane].acked_bytes += bytes;
  policy_acked(policy, lane, bytes, false, now_ns);
}

static void pass(unsigned lane, uint32_t bytes) {
  policy_sent(policy, lane, bytes, now_ns);
  records[lane].in_flight_bytes += bytes;
}

/* ---- the contract ---- */

enum { RUNS = 200, FACTS = 600, IN_FLIGHT_MAX_BYTES = 64 << 20 }; /* of a lane */
static uint64_t random_state;

static uint64_t draw(uint64_t end) {
  return random_next(&random_state) % end;
}

static bool chance(unsigned percent) {
  return draw(100) < percent;
}

/* One of these. */
static unsigned draw_lane(uint64_t lanes) {
  for (uint64_t skip = draw((uint64_t)__builtin_popcountll(lanes)); skip > 0; skip--) {
    lanes &= lanes - 1;
  }
  return (unsigned)__builtin_ctzll(lanes);
}

static void make_any(uint64_t seed) {
  random_state = seed;
  unsigned lanes = (unsigned)(1 + draw(chance(20) ? POLICY_MAX_LANES : 8));
  make(&(struct policy_config){
      .lanes = lanes,
      .first_lanes = (unsigned)draw(lanes + 1),
      .paths = (unsigned)draw(4),
      .chunk_bytes =
          (uint32_t)(POLICY_GRAIN_BYTES + draw(chance(50) ? 256 * KIB : 4096 * KIB - 4096)),
      .usual_chunk_bytes = chance(50) ? 0 : (uint32_t)(POLICY_GRAIN_BYTES + draw(256 * KIB)),
      .learns_lanes = chance(50),
      .reconnects_slow_lanes = chance(70),
      .compress = (enum policy_compress)draw(3),
      .shared = chance(80) ? &shared : NULL,
  });
}

static void check_chunk(unsigned lane, uint64_t total, uint64_t left, bool is_placed) {
  uint64_t bytes = policy_chunk_bytes(policy, lane, total, left, is_placed);
  uint64_t most = is_placed ? POLICY_MAX_CHUNK_BYTES : config.chunk_bytes;
  assert_in_range(bytes, left > 0, left < most ? left : most);
  assert_true(bytes == left || bytes % POLICY_GRAIN_BYTES == 0);
}

static void check_decisions(void) {
  uint64_t total = 1ull << draw(30), left = draw(total) + 1;
  uint64_t candidates = up & (chance(50) ? UINT64_MAX : random_next(&random_state));
  int lane = policy_pick(policy, candidates, chance(20) ? UINT64_MAX : left, now_ns);
  assert_true(lane == -1 || (lane >= 0 && (candidates >> lane & 1) != 0));
  if (up != 0) {
    unsigned any = draw_lane(up);
    check_chunk(any, total, left, (rdma >> any & 1) != 0);
    check_chunk(any, total, 0, false);
  }
  assert_in_range(policy_lanes_wanted(policy, now_ns), 1, config.lanes);
  uint64_t measured = policy_wants_measured(policy, now_ns);
  assert_int_equal(measured & (~up | rdma), 0);
  for (; measured != 0; measured &= measured - 1) {
    policy_measured(policy, (unsigned)__builtin_ctzll(measured), NULL, now_ns);
  }
  int slow = chance(10) ? policy_reconnect(policy, now_ns) : -1;
  if (slow >= 0) {
    assert_true((up >> slow & 1) != 0 && up != lane_bit((unsigned)slow));
    assert_int_equal(records[slow].in_flight_bytes, 0);
    lane_lost((unsigned)slow);
  }
}

static void some_fact(void) {
  uint64_t down = lanes_below(config.lanes) & ~up, kind = draw(100);
  now_ns += chance(30) ? 0 : draw(chance(5) ? 300 * MS : MS);
  if (down != 0 && (up == 0 || kind < 4)) {
    unsigned lane = draw_lane(down);
    lane_up(lane);
    rdma |= chance(10) ? lane_bit(lane) : 0;
  } else if (kind < 6) {
    lane_lost(draw_lane(up));
  } else if (kind < 20) {
    policy_posted(policy, draw(1u << draw(24)));
  } else if (kind < 60) {
    uint64_t left = draw(4u << 20);
    int lane = policy_pick(policy, up, left, now_ns);
    if (lane >= 0 && records[lane].in_flight_bytes < IN_FLIGHT_MAX_BYTES) {
      pass((unsigned)lane, policy_chunk_bytes(policy, (unsigned)lane, left, left, false));
    }
  } else {
    unsigned lane = draw_lane(up);
    bytes_acked(lane, chance(50) ? records[lane].in_flight_bytes
                                 : draw(records[lane].in_flight_bytes + 1));
  }
}

UNIT_TEST(any_order_of_facts_gives_possible_decisions) {
  for (uint64_t seed = 1; seed <= RUNS; seed++) {
    make_any(seed);
    for (unsigned fact = 0; fact < FACTS; fact++) {
      some_fact();
      check_decisions();
    }
    /* Whatever has happened: with all lanes free and nothing in flight, one carries the chunk. */
    for (uint64_t lanes = up; lanes != 0; lanes &= lanes - 1) {
      unsigned lane = (unsigned)__builtin_ctzll(lanes);
      bytes_acked(lane, records[lane].in_flight_bytes);
    }
    assert_true(up == 0 || policy_pick(policy, up, UINT64_MAX, now_ns) >= 0);
    assert_true(up == 0 || policy_pick(policy, up, 1, now_ns) >= 0);
    finish();
  }
}

/* ---- what it makes of the facts ---- */

/* With all lanes up. */
static void begin(const struct policy_config *wanted) {
  make(wanted);
  for (unsigned lane = 0; lane < config.lanes; lane++) {
    lane_up(lane);
  }
  policy_posted(policy, 64u << 20);
}

/* Two lanes of the same rate share what there is to send. */
UNIT_TEST(lanes_share_the_load) {
  uint64_t carried[2] = { 0 };
  begin(&(struct policy_config){ .lanes = 2, .chunk_bytes = 128 * KIB });
  for (unsigned chunk = 0; chunk < 100; chunk++) {
    int lane = policy_pick(policy, 3, 32u << 20, now_ns);
    assert_in_range(lane, 0, 1);
    uint32_t bytes = policy_chunk_bytes(policy, (unsigned)lane, 64u << 20, 32u << 20, false);
    pass((unsigned)lane, bytes);
    now_ns += MS;
    bytes_acked((unsigned)lane, bytes);
    carried[lane] += bytes;
  }
  assert_in_range(carried[0] * 100 / (carried[0] + carried[1]), 40, 60);
  finish();
}

/* Nobody but this mode is asked. */
UNIT_TEST(what_compresses) {
  for (enum policy_compress mode = POLICY_COMPRESS_OFF; mode <= POLICY_COMPRESS_ON; mode++) {
    begin(&(struct policy_config){
        .lanes = 1, .chunk_bytes = 128 * KIB, .compress = mode, .shared = &shared });
    shared.compression.is_on = true;
    assert_int_equal(policy_compress(policy), mode == POLICY_COMPRESS_AUTO);
    shared.compression.is_on = false;
    assert_false(policy_compress(policy));
    finish();
  }
}

/* On lane 0; then what passed is measured. */
static void pass_bulk(void) {
  pass(0, LIMIT_BULK_BYTES);
  bytes_acked(0, LIMIT_BULK_BYTES);
  now_ns += MS;
  policy_measured(policy, 0, NULL, now_ns);
}

/* Two lanes, the first of which is used. Bulk traffic on it counts. */
static void learn_lanes(void) {
  begin(&(struct policy_config){ .lanes = 2,
                                 .first_lanes = 1,
                                 .chunk_bytes = 128 * KIB,
                                 .learns_lanes = true,
                                 .shared = &shared });
  pass_bulk();
  assert_int_equal(shared.window.bytes, LIMIT_BULK_BYTES);
}

/* The next bulk traffic began before the lanes were as they are. */
static void only_the_one_after_next_counts(void) {
  pass_bulk();
  assert_int_equal(shared.window.bytes, LIMIT_BULK_BYTES);
  pass_bulk();
  assert_int_equal(shared.window.bytes, 2 * LIMIT_BULK_BYTES);
  finish();
}

UNIT_TEST(what_passes_before_all_lanes_carry_does_not_count) {
  learn_lanes();
  shared.count.level++; /* the second is used, too */
  shared.count.changes++;
  pass_bulk();
  pass_bulk();
  pass(1, LIMIT_BULK_BYTES);
  bytes_acked(1, LIMIT_BULK_BYTES);
  only_the_one_after_next_counts();
}

UNIT_TEST(what_passes_while_other_lanes_carry_does_not_count) {
  learn_lanes();
  pass(1, LIMIT_BULK_BYTES);
  shared.count.changes++; /* the second is not used any more */
  pass_bulk();
  pass_bulk();
  bytes_acked(1, LIMIT_BULK_BYTES);
  only_the_one_after_next_counts();
}

UNIT_TEST(the_first_window_of_an_engine_tells_nothing) {
  const struct limit_window part = { .in_flight_ns = LIMIT_WINDOW_IN_FLIGHT_NS };
  policy_shared_init(&shared);
  flow_count_join(&shared.count, FLOW_COUNT_GUESS);
  for (unsigned ended = 0; ended < 3; ended++) {
    policy_shared_passed(&shared, &part, 1 + ended * LIMIT_WINDOW_NS);
    assert_int_equal(shared.count.ns, ended > 1 ? (ended - 1) * LIMIT_WINDOW_NS : 0);
  }
}

/* The rest was acknowledged with less in flight. */
UNIT_TEST(traffic_counts_if_half_of_it_is_bulk) {
  learn_lanes();
  for (unsigned halves = 2; halves <= 3; halves++) {
    for (unsigned i = 0; i < halves; i++) {
      pass(0, LIMIT_BULK_BYTES / 2);
      bytes_acked(0, LIMIT_BULK_BYTES / 2);
    }
    pass_bulk();
    assert_int_equal(shared.window.bytes, 3 * LIMIT_BULK_BYTES);
  }
  finish();
}

/* The last lane takes four times as long as the others. */
UNIT_TEST(a_slow_lane_drains_and_reconnects) {
  begin(&(struct policy_config){
      .lanes = 3, .chunk_bytes = 128 * KIB, .reconnects_slow_lanes = true });
  for (unsigned lane = 0; lane < 3; lane++) {
    pass(lane, LIMIT_BULK_BYTES);
  }
  for (unsigned i = 1; i <= 2500; i++) {
    now_ns += MS;
    for (unsigned lane = 0; lane < 3; lane++) {
      if (lane != 2 || i % 4 == 0) {
        bytes_acked(lane, LIMIT_BULK_BYTES);
        pass(lane, LIMIT_BULK_BYTES);
      }
    }
    if (i % 100 == 0) {
      assert_int_equal(policy_reconnect(policy, now_ns), -1); /* it has something in flight */
    }
  }
  assert_int_equal(policy_pick(policy, 4, 1u << 20, now_ns), -1);
  bytes_acked(2, LIMIT_BULK_BYTES);
  assert_int_equal(policy_reconnect(policy, now_ns), 2);
  lane_lost(2);
  assert_int_equal(policy_reconnect(policy, now_ns), -1);
  finish();
}
