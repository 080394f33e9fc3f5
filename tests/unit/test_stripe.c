/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane, and how much. */
#include "net_plugin/policy/stripe.h"

#include <string.h>

#include "tests/lib/unit.h"

#define KIB 1024u
#define MS 1000000ull

/* What a link knows of its lanes, and its configuration. */
static uint64_t up, rdma;
static struct policy_config config;
static struct policy_lane records[POLICY_MAX_LANES];
static const struct policy_lanes lanes_now = { &config, &up, &rdma, records, sizeof *records };
static struct stripe stripe;

static void sent(unsigned lane, uint32_t bytes, uint64_t now_ns) {
  stripe_sent(&stripe, lane, now_ns);
  records[lane].in_flight_bytes += bytes;
}

static void acknowledged(unsigned lane, uint64_t bytes, uint64_t now_ns) {
  assert_true(bytes <= records[lane].in_flight_bytes);
  records[lane].in_flight_bytes -= bytes;
  records[lane].acked_bytes += bytes;
  stripe_acked(&stripe, lane, bytes, false, now_ns);
}

static void lane_up(unsigned lane) {
  up |= lane_bit(lane);
  policy_lane_begin(&records[lane], 0);
  stripe_lanes_changed(&stripe);
}

static void lane_lost(unsigned lane) {
  up &= ~lane_bit(lane);
  records[lane].in_flight_bytes = 0;
  stripe_lanes_changed(&stripe);
}

static void bring_up(unsigned lanes) {
  up = 0;
  memset(records, 0, sizeof records);
  config = (struct policy_config){ .chunk_bytes = 128 * KIB, .usual_chunk_bytes = 128 * KIB };
  stripe_init(&stripe, &lanes_now);
  for (unsigned lane = 0; lane < lanes; lane++) {
    lane_up(lane);
  }
}

/* The lane shows a rate: 1 MiB in `ms`. */
static void teach(unsigned lane, uint64_t ms) {
  for (int i = 0; i < 20; i++) {
    sent(lane, 1024 * KIB, 0);
    acknowledged(lane, 1024 * KIB, ms * MS);
  }
}

UNIT_TEST(equal_lanes_take_turns) {
  bring_up(64);
  for (unsigned lane = 0; lane < 64; lane++) {
    teach(lane, 1);
  }
  unsigned first = (unsigned)stripe_pick(&stripe, UINT64_MAX, KIB * KIB, 0);
  for (unsigned i = 0; i < 128; i++) {
    unsigned lane = (unsigned)stripe_pick(&stripe, UINT64_MAX, KIB * KIB, 0);
    assert_int_equal(lane, (first + i) % 64);
    sent(lane, 64 * KIB, 0);
  }
}

/* What one has shown is its burst: all of them are used up before any is used again. */
UNIT_TEST(idle_lanes_take_turns_whatever_they_showed) {
  bring_up(8);
  for (unsigned lane = 0; lane < 8; lane++) {
    teach(lane, 10 + lane % 3); /* none is slow */
  }
  unsigned used[8] = { 0 };
  for (unsigned i = 0; i < 80; i++) {
    unsigned lane = (unsigned)stripe_pick(&stripe, 0xFF, 82 * KIB, 0);
    used[lane]++;
    sent(lane, 32 * KIB, 0);
    acknowledged(lane, 32 * KIB, MS / 3);
  }
  for (unsigned lane = 0; lane < 8; lane++) {
    assert_int_equal(used[lane], 10);
  }
}

/* What is posted together, and what is small, does not. */
UNIT_TEST(messages_take_turns) {
  bring_up(8);
  uint64_t now_ns = MS;
  sent(0, 8 * KIB, now_ns);
  acknowledged(0, 8 * KIB, now_ns + 1);
  for (unsigned i = 1; i <= 16; i++) {
    unsigned last = (i - 1) % 8;
    uint64_t together_ns = now_ns + STRIPE_BATCH_NS - 1;
    assert_int_equal(stripe_pick(&stripe, 0xFF, STRIPE_WARM_BYTES, together_ns), last);
    assert_int_equal(stripe_pick(&stripe, 0xFF, STRIPE_WARM_BYTES + 1, together_ns), i % 8);
    now_ns += STRIPE_BATCH_NS;
    assert_int_equal(stripe_pick(&stripe, 0xFF, STRIPE_SMALL_BYTES - 1, now_ns), last);
    assert_int_equal(stripe_pick(&stripe, 0xFF, STRIPE_SMALL_BYTES, now_ns), i % 8);
    sent(i % 8, 8 * KIB, now_ns);
    acknowledged(i % 8, 8 * KIB, now_ns + 1);
  }
}

UNIT_TEST(a_slow_lane_gets_its_share) {
  bring_up(2);
  teach(0, 1);
  teach(1, 10);
  uint64_t bytes[2] = { 0 };
  for (int i = 0; i < 1000; i++) {
    unsigned lane = (unsigned)stripe_pick(&stripe, 3, KIB * KIB, 0);
    sent(lane, 8 * KIB, 0);
    bytes[lane] += 8 * KIB;
  }
  assert_in_range(bytes[0] / bytes[1], 8, 12);
}

UNIT_TEST(an_unknown_lane_gets_little) {
  bring_up(2);
  teach(0, 1);
  sent(1, STRIPE_UNKNOWN_BYTES, 0);
  assert_int_equal(stripe_pick(&stripe, 2, KIB * KIB, 0), -1);
  lane_lost(0); /* there is no other one now */
  assert_int_equal(stripe_pick(&stripe, 2, KIB * KIB, 0), 1);
}

UNIT_TEST(a_laggard_is_tried_again) {
  bring_up(2);
  teach(0, 1);
  teach(1, 100);
  unsigned seconds = 1;
  for (; seconds < 20 && stripe_pick(&stripe, 2, KIB * KIB, 0) < 0; seconds++) {
    sent(0, 64 * KIB, seconds * 1001 * MS);
    acknowledged(0, 64 * KIB, seconds * 1001 * MS + MS / 16);
  }
  assert_in_range(seconds, 3, 10);
}

/* Cuts a message of `total` bytes for one lane and checks every chunk. */
static unsigned cut_all(unsigned lane, uint64_t total) {
  unsigned chunks = 0;
  for (uint64_t left = total; left > 0; chunks++) {
    uint32_t length = stripe_chunk_bytes(&stripe, lane, total, left);
    assert_in_range(length, 1, config.chunk_bytes);
    assert_true(length <= left);
    if (total > STRIPE_MIN_CHUNK_BYTES) {
      assert_true(length >= STRIPE_SLOW_CHUNK_BYTES / 2); /* no tiny tail */
    }
    left -= length;
  }
  return chunks;
}

UNIT_TEST(chunk_sizes_follow_message_and_lanes) {
  bring_up(8);
  assert_int_equal(cut_all(0, 16 * KIB), 1);
  assert_int_equal(cut_all(0, 64 * KIB), 1);  /* drained too soon to be worth a cut */
  assert_int_equal(cut_all(0, 128 * KIB), 2); /* so many lanes are used where flows are capped */
  config.paths = 2;
  assert_int_equal(cut_all(0, 128 * KIB), 1);
  config.paths = 1;
  teach(0, 32);
  assert_int_equal(cut_all(0, 16 * KIB), 1);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 128 * KIB, 128 * KIB), 32 * KIB);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 1024 * KIB, 1024 * KIB), 64 * KIB);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 64 * 1024 * KIB, 64 * 1024 * KIB), 128 * KIB);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 40 * KIB, 40 * KIB), 40 * KIB);
  bring_up(1);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 1024 * KIB, 1024 * KIB), 128 * KIB);
}

/* Where a lane drains more than the usual in STRIPE_QUICK_PS. */
UNIT_TEST(quick_lanes_take_larger_chunks) {
  bring_up(2);
  config.chunk_bytes = 512 * KIB;
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 1024 * KIB, 1024 * KIB), 128 * KIB);
  sent(0, 1024 * KIB, 0);
  acknowledged(0, 1024 * KIB, MS / 4);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 4096 * KIB, 4096 * KIB), 512 * KIB);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 512 * KIB, 512 * KIB), 512 * KIB); /* no tail */
  config.chunk_bytes = 128 * KIB;
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 4096 * KIB, 4096 * KIB), 128 * KIB);
}

/* Time per byte is that of all bytes, not the mean of what samples show. */
UNIT_TEST(rates_count_bytes) {
  bring_up(1);
  uint64_t now_ns = 0;
  for (unsigned burst = 0; burst < 50; burst++) { /* 64 KiB after 0.25 ms, 960 KiB at once */
    sent(0, 1024 * KIB, now_ns);
    now_ns += MS / 4;
    acknowledged(0, 64 * KIB, now_ns);
    acknowledged(0, 960 * KIB, now_ns += 1000);
  }
  assert_in_range(records[0].ps_per_byte, 150, 300);
}

UNIT_TEST(slow_lanes_take_smaller_chunks) {
  bring_up(2);
  teach(0, 1);
  teach(1, 8);
  assert_int_equal(stripe_chunk_bytes(&stripe, 0, 1024 * KIB, 1024 * KIB), 128 * KIB);
  assert_in_range(stripe_chunk_bytes(&stripe, 1, 1024 * KIB, 1024 * KIB), 12 * KIB, 20 * KIB);
  teach(1, 1000);
  assert_int_equal(stripe_chunk_bytes(&stripe, 1, 1024 * KIB, 1024 * KIB), 8 * KIB);
  cut_all(1, 1000000);
  lane_lost(0); /* nothing is faster now */
  assert_int_equal(stripe_chunk_bytes(&stripe, 1, 1024 * KIB, 1024 * KIB), 128 * KIB);
}

/* Small messages stayed on another lane for so long that nothing of its estimate is left. */
UNIT_TEST(a_forgotten_lane_takes_whole_chunks) {
  bring_up(2);
  teach(0, 1);
  teach(1, 10);
  assert_int_equal(stripe.slow, 1ull << 1);
  for (uint64_t s = 1; s <= 40; s++) {
    sent(0, 8, s * STRIPE_AGING_NS);
    acknowledged(0, 8, s * STRIPE_AGING_NS + 1);
    uint32_t chunk = stripe_chunk_bytes(&stripe, 1, KIB * KIB, KIB * KIB);
    assert_in_range(chunk, STRIPE_SLOW_CHUNK_BYTES, 128 * KIB);
  }
  assert_int_equal(stripe_chunk_bytes(&stripe, 1, KIB * KIB, KIB * KIB), 128 * KIB);
}

UNIT_TEST(placed_pieces_are_one_for_each_lane) {
  bring_up(4);
  for (unsigned lane = 0; lane < 4; lane++) {
    teach(lane, lane == 3 ? 4 : 1);
  }
  assert_int_equal(stripe_placed_bytes(&stripe, 0, 2560 * KIB), 640 * KIB);
  assert_int_equal(stripe_placed_bytes(&stripe, 3, 2560 * KIB), 160 * KIB); /* 4 times slower */
  assert_int_equal(stripe_placed_bytes(&stripe, 0, 2560 * KIB + 4), 644 * KIB);
  assert_int_equal(stripe_placed_bytes(&stripe, 0, 1024 * 1024 * KIB),
                   STRIPE_PLACED_CHUNKS * 128 * KIB);
  /* small ones are placed whole */
  assert_int_equal(stripe_placed_bytes(&stripe, 0, 64 * KIB), STRIPE_PLACED_LEAST_BYTES);
  assert_int_equal(stripe_placed_bytes(&stripe, 3, 64 * KIB), STRIPE_PLACED_LEAST_BYTES / 4);
  sent(0, 768 * KIB, 0); /* as much again does not make it wait long */
  assert_int_equal(stripe_placed_bytes(&stripe, 0, 2560 * KIB), 768 * KIB);
}

/* Copies of small messages are acknowledged late, and nothing was in flight for most of the time.
 */
UNIT_TEST(lazy_acknowledgements_are_no_rate) {
  bring_up(2);
  for (unsigned i = 0; i < 100; i++) {
    sent(0, 8 * KIB, i * MS);
    if (i > 0) {
      acknowledged(0, 8 * KIB, i * MS + MS / 2);
    }
  }
  assert_int_equal(records[0].ps_per_byte, 0);
}
