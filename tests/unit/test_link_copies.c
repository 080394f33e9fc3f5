/* SPDX-License-Identifier: Apache-2.0 */
/* Where a chunk's number is not enough: what a lost RDMA lane carried, what an old epoch says, and
 * a damaged copy. The rest is the simulator's. */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "tests/lib/coding_memory.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define SECOND 1000000000ull

static struct link *sender(void) {
  return timed.links[LINK_SENDER];
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

static void closed(unsigned lane, uint32_t epoch, unsigned on) {
  struct wire_header header = { .type = WIRE_CLOSED, .message = lane, .offset = epoch };
  assert_int_equal(link_frame_received(sender(), on, &header, timed.now_ns), 0);
  assert_int_equal(link_frame_completed(sender(), on, timed.now_ns), 0);
  link_check(sender());
}

static uint32_t reopen_lane_0(void) {
  struct link_order order;
  link_lane_lost(sender(), 0, 1, timed.now_ns);
  timed.now_ns += SECOND;
  do {
    assert_true(link_next_order(sender(), &order, timed.now_ns));
  } while (order.kind != LINK_ORDER_OPEN || order.lane != 0);
  timed_lane_up(0, order.epoch);
  return order.epoch;
}

static void post_one_frame_on_lane_0(void) {
  struct link_frame frame;
  timed_post(TIMED_BULK);
  timed_carry(LINK_SENDER); /* the REQUEST */
  timed_carry(LINK_RECEIVER);
  assert_true(next_frame(sender(), 0, &frame, timed.now_ns));
  link_frame_taken(sender(), 0, timed.now_ns);
}

TEST(a_stale_word_of_closing_changes_nothing) {
  timed_begin(2);
  struct link_lane_view view;
  uint32_t epoch = reopen_lane_0();
  closed(0, 1, 1);
  link_view_lane(sender(), 0, &view);
  assert_int_equal(view.state, LINK_LANE_UP);
  post_one_frame_on_lane_0();
  closed(0, 1, 1);
  assert_int_equal(timed_view(LINK_SENDER).chunks_requeued, 0);
  closed(0, epoch, 1);
  assert_int_equal(timed_view(LINK_SENDER).chunks_requeued, 1);
  closed(0, epoch, 1); /* again */
  assert_int_equal(timed_view(LINK_SENDER).chunks_requeued, 1);
}

/* What an RDMA lane carried may still be written where it was to go. */
TEST(what_an_rdma_lane_carried_waits_until_the_peer_has_closed_it) {
  timed_begin(2);
  uint32_t epoch = reopen_lane_0();
  link_lane_is_rdma(sender(), 0);
  post_one_frame_on_lane_0();
  link_lane_lost(sender(), 0, epoch, timed.now_ns);
  link_check(sender());
  closed(0, 1, 1); /* of the epoch before */
  assert_int_equal(timed_view(LINK_SENDER).chunks_requeued, 0);
  closed(0, epoch, 1);
  assert_int_equal(timed_view(LINK_SENDER).chunks_requeued, 1);
}

/* With checksums: the first copy is damaged, and goes on arriving after the second one. */
UNIT_TEST(a_damaged_copy_spoils_nothing) {
  static uint8_t good[4096], bad[4096], user[4096];
  memset(good, 'g', sizeof good);
  memset(bad, 'b', sizeof bad);
  memset(user, 0, sizeof user);
  struct coding_memory memory = { 0 };
  const struct link_config config = {
    .role = LINK_RECEIVER,
    .policy = { .lanes = 2, .chunk_bytes = 4096 },
    .timeout_ns = TIMED_TIMEOUT,
    .coding_memory = coding_memory_get,
    .coding_owner = &memory,
  };
  struct link *link = link_init(calloc(1, link_memory_bytes(&config)), &config, 0);
  struct wire_header header = { .type = WIRE_DATA,
                                .flags = WIRE_HAS_CRC,
                                .length = sizeof good,
                                .total = sizeof good,
                                .payload_crc = hash_crc32c(0, good, sizeof good) };
  for (unsigned lane = 0; lane < 2; lane++) {
    assert_true(link_lane_fence(link, lane, 1, 0));
    link_lane_up(link, lane, 1, 0);
  }
  assert_int_equal(link_receive_posted(link, user, sizeof user, NULL, 0), 0);
  for (unsigned lane = 0; lane < 2; lane++) {
    assert_int_equal(link_frame_received(link, lane, &header, 0), 0);
    link_check(link);
  }
  memcpy(link_receive_buffer(link, 1), good, sizeof good);
  memcpy(link_receive_buffer(link, 0), bad, sizeof bad / 2);
  assert_int_equal(link_frame_completed(link, 1, 0), 0);
  link_check(link);
  assert_memory_equal(user, good, sizeof user);
  memcpy((uint8_t *)link_receive_buffer(link, 0) + sizeof bad / 2, bad, sizeof bad / 2);
  assert_int_equal(link_frame_completed(link, 0, 0), 0); /* nobody needs it */
  assert_memory_equal(user, good, sizeof user);
  link_end(link);
  free(link);
  coding_memory_free(&memory);
}

UNIT_MAIN(NULL, NULL)
