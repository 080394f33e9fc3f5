/* SPDX-License-Identifier: Apache-2.0 */
/* Over how many lanes a link sends: all, or one of each path while that is what a trial says. */
#include <stdlib.h>

#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define LANES 4u
#define BYTES 4096u
#define ALL UINT64_MAX

static struct link *sender;
static struct policy_shared shared;
static uint8_t data[BYTES];

static void make(unsigned paths) {
  struct link_config config = {
    .role = LINK_SENDER,
    .lanes = LANES,
    .chunk_bytes = BYTES,
    .eager_bytes = BYTES,
    .eager_slots = 32,
    .timeout_ns = 1000000000,
    .paths = paths,
    .policy_shared = &shared,
    .learns_lanes = true,
  };
  policy_shared_init(&shared, TRIAL_FIRST_NS, 1);
  trial_init(&shared.count.width, TRIAL_OTHER, false, TRIAL_FIRST_NS, 1);
  sender = link_init(calloc(1, link_memory_bytes(&config)), &config, 0);
  for (unsigned lane = 0; lane < LANES; lane++) {
    link_lane_up(sender, lane, 1, 0, 0);
  }
}

static int stop(void **state) {
  (void)state;
  link_end(sender);
  free(sender);
  return 0;
}

/* The lanes that so many messages went over. */
static uint64_t send_over(uint64_t writable, unsigned messages) {
  uint64_t used = 0;
  for (unsigned i = 0; i < messages; i++) {
    struct link_frame frame;
    assert_int_equal(link_send_posted(sender, data, BYTES, NULL, 0), 0);
    int lane = pick_lane(sender, writable);
    assert_true(lane >= 0);
    assert_true(next_frame(sender, (unsigned)lane, &frame, 0));
    link_frame_written(sender, (unsigned)lane, 0);
    used |= 1ull << lane;
  }
  return used;
}

static bool is_narrow(void) {
  struct link_view view;
  link_view(sender, &view);
  return view.is_narrow;
}

static void one_lane_is_enough(void **state) {
  (void)state;
  make(1);
  assert_true(is_narrow());
  assert_int_equal(send_over(ALL, 12), 1);
  /* It is waited for while it is busy; when it is lost, another one is it. */
  assert_int_equal(link_send_posted(sender, data, BYTES, NULL, 0), 0);
  assert_int_equal(pick_lane(sender, ALL & ~1ull), -1);
  link_lane_lost(sender, 0, 1, 0);
  assert_int_equal(pick_lane(sender, 1ull << 1), 1);
  link_check(sender);
}

static void each_path_keeps_one(void **state) {
  (void)state;
  make(2);
  assert_int_equal(send_over(ALL & ~1ull, 1), 2);
  assert_int_equal(send_over(ALL & ~2ull, 1), 1);
  assert_int_equal(link_send_posted(sender, data, BYTES, NULL, 0), 0);
  assert_int_equal(pick_lane(sender, ALL & ~3ull), -1);
}

static void usually_all_are_used(void **state) {
  (void)state;
  make(1);
  shared.count.width.way = TRIAL_USUAL;
  assert_false(is_narrow());
  for (unsigned lane = 0; lane < LANES; lane++) {
    assert_int_equal(send_over(1ull << lane, 1), 1ull << lane);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(one_lane_is_enough, stop),
    cmocka_unit_test_teardown(each_path_keeps_one, stop),
    cmocka_unit_test_teardown(usually_all_are_used, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
