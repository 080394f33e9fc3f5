/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of measuring one flow, and what a link makes of them. */
#include "net_plugin/policy/flow_probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define US 1000ull
#define LANE 3u
#define LATENCY_NS (40 * US)

static struct policy_shared shared;
static struct flow_probe *const probe = &shared.probe;
static const int here, elsewhere; /* stand for links */
static uint64_t now_ns, token;

/* A PONG. true: another PING is due. */
static bool answered(const void *owner, unsigned lane, uint64_t answer) {
  bool was_due = probe->is_due;
  flow_probe_answered(probe, owner, lane, answer, now_ns);
  return probe->is_due && !was_due;
}

/* One PING and its PONG. false: it was the round's last. */
static bool exchange(uint64_t ps_per_byte, uint32_t *bytes) {
  *bytes = flow_probe_ask(probe, &here, LANE, ++token, now_ns);
  now_ns += LATENCY_NS + *bytes * ps_per_byte / 1000;
  return answered(&here, LANE, token);
}

static unsigned round_of(uint64_t ps_per_byte) {
  unsigned count = 1;
  uint32_t bytes;
  flow_probe_start(probe, &here, LANE);
  while (exchange(ps_per_byte, &bytes)) {
    count++;
  }
  return count;
}

static int begin(void **state) {
  (void)state;
  *probe = (struct flow_probe){ 0 };
  now_ns = 1000000000;
  return 0;
}

static void a_slow_flow_is_measured_well(void **state) {
  (void)state;
  assert_true(flow_probe_is_wanted(probe, now_ns));
  assert_int_equal(round_of(16000), 2 + FLOW_PROBE_FRAMES);
  assert_in_range(probe->ps_per_byte, 15800, 16200);
}

static void a_fast_flow_needs_few_bytes(void **state) {
  (void)state;
  assert_int_equal(round_of(200), 3);
  assert_in_range(probe->ps_per_byte, 150, FLOW_PROBE_FAST_PS_PER_BYTE);
  assert_false(flow_probe_is_wanted(probe, UINT64_MAX));
}

/* The first bytes of a rested flow pass a shaper at once: they are not counted. */
static void what_fills_the_flow_is_not_counted(void **state) {
  (void)state;
  uint32_t bytes;
  flow_probe_start(probe, &here, LANE);
  assert_true(exchange(16000, &bytes));
  assert_int_equal(bytes, 0);
  assert_true(exchange(1, &bytes));
  assert_int_equal(bytes, FLOW_PROBE_BYTES);
  assert_int_equal(probe->ps_per_byte, 0);
  while (exchange(16000, &bytes)) {
  }
  assert_in_range(probe->ps_per_byte, 15800, 16200);
}

/* Who was delayed looks slow. The shortest time counts, and a later round may find a shorter one;
 * there are not many of these, further and further apart. */
static void delays_are_forgotten(void **state) {
  (void)state;
  uint32_t bytes;
  flow_probe_start(probe, &here, LANE);
  for (unsigned i = 0; i < 3; i++) {
    assert_true(exchange(90000, &bytes));
  }
  while (exchange(20000, &bytes)) {
  }
  assert_in_range(probe->ps_per_byte, 19800, 20200);
  uint64_t pause_ns = FLOW_PROBE_PAUSE_NS;
  for (unsigned i = 1; i < FLOW_PROBE_ROUNDS; i++) {
    assert_false(flow_probe_is_wanted(probe, now_ns + pause_ns - 1));
    now_ns += pause_ns;
    assert_true(flow_probe_is_wanted(probe, now_ns));
    round_of(i == 2 ? 5000 : 30000);
    pause_ns *= 2;
  }
  assert_in_range(probe->ps_per_byte, 4950, 5050);
  assert_false(flow_probe_is_wanted(probe, UINT64_MAX));
}

static void only_its_own_answer_counts(void **state) {
  (void)state;
  flow_probe_start(probe, &here, LANE);
  assert_int_equal(flow_probe_ask(probe, &here, LANE + 1, 7, now_ns), 0);
  assert_true(probe->is_due);
  assert_false(answered(&here, LANE, 7)); /* nothing was asked */
  flow_probe_ask(probe, &here, LANE, 8, now_ns);
  assert_false(answered(&here, LANE + 1, 8));
  assert_false(answered(&here, LANE, 7));
  assert_true(answered(&here, LANE, 9)); /* came after it on this lane */
}

static void one_link_is_measured_at_a_time(void **state) {
  (void)state;
  flow_probe_start(probe, &here, LANE);
  assert_false(flow_probe_is_wanted(probe, UINT64_MAX));
  assert_int_equal(flow_probe_lanes(probe, &here), 1 << LANE);
  assert_int_equal(flow_probe_lanes(probe, &elsewhere), 0);
  assert_int_equal(flow_probe_ask(probe, &elsewhere, LANE, 8, now_ns), 0);
  assert_true(probe->is_due);
  flow_probe_ask(probe, &here, LANE, 8, now_ns);
  assert_false(answered(&elsewhere, LANE, 9));
  flow_probe_drop(probe, &elsewhere, UINT64_MAX);
  assert_true(flow_probe_has(probe, &here, LANE));
  flow_probe_drop(probe, &here, UINT64_MAX);
  assert_true(flow_probe_is_wanted(probe, now_ns));
}

/* Slower than this is not told: see probe->h. */
static void what_is_told_is_between_fast_and_slow(void **state) {
  (void)state;
  assert_int_equal(flow_probe_ps_per_byte(NULL), 0);
  assert_false(flow_probe_is_wanted(NULL, now_ns));
  assert_int_equal(flow_probe_ps_per_byte(probe), FLOW_PROBE_SLOW_PS_PER_BYTE);
  round_of(16000);
  assert_int_equal(flow_probe_ps_per_byte(probe), FLOW_PROBE_SLOW_PS_PER_BYTE);
  now_ns += FLOW_PROBE_PAUSE_NS;
  round_of(1500);
  assert_in_range(flow_probe_ps_per_byte(probe), 1450, 1550);
}

static void a_lost_lane_ends_the_round(void **state) {
  (void)state;
  flow_probe_start(probe, &here, LANE);
  flow_probe_drop(probe, &here, 2ull << LANE);
  assert_true(flow_probe_has(probe, &here, LANE));
  flow_probe_drop(probe, &here, 1ull << LANE);
  assert_false(flow_probe_has(probe, &here, LANE));
  assert_true(flow_probe_is_wanted(probe, now_ns));
}

/* ---- in a link ---- */

static struct link *links[2]; /* by enum link_role */

static void links_begin(bool measures) {
  for (int role = 0; role < 2; role++) {
    struct link_config config = { .role = (enum link_role)role,
                                  .lanes = 2,
                                  .chunk_bytes = 128u << 10,
                                  .eager_bytes = 16u << 10,
                                  .eager_slots = 8,
                                  .timeout_ns = 10000000000,
                                  .policy_shared =
                                      measures && role == LINK_SENDER ? &shared : NULL };
    links[role] = link_init(calloc(1, link_memory_bytes(&config)), &config, now_ns);
    link_lane_up(links[role], 0, 1, 0, now_ns);
  }
}

static int links_end(void **state) {
  (void)state;
  for (int role = 0; role < 2; role++) {
    link_end(links[role]);
    free(links[role]);
  }
  return 0;
}

/* A message waits for lane 0, and lane 1 comes up. */
static void second_lane_begin(bool measures) {
  static uint8_t message[16 << 10];
  links_begin(measures);
  assert_int_equal(link_send_posted(links[LINK_SENDER], message, sizeof message, NULL, now_ns), 0);
  assert_true(link_lane_fence(links[LINK_RECEIVER], 1, 1, now_ns) == 0);
  link_lane_up(links[LINK_RECEIVER], 1, 1, 0, now_ns);
  link_lane_up(links[LINK_SENDER], 1, 1, 0, now_ns);
}

/* Hands over one frame that `from` has for lane 1; 0: it has none, else its type. */
static int hand_over(enum link_role from, uint32_t *length) {
  struct link *to = links[1 - (int)from];
  struct link_frame frame;
  struct wire_header header;
  if (pick_lane(links[from], 2) != 1 || !next_frame(links[from], 1, &frame, now_ns)) {
    return 0;
  }
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  *length = frame.length;
  now_ns += LATENCY_NS / 2 + frame.length * 16ull;
  assert_int_equal(link_frame_received(to, 1, &header, now_ns), 0);
  if (frame.length > 0) {
    assert_non_null(link_receive_buffer(to, 1));
    memcpy(link_receive_buffer(to, 1), frame.payload, frame.length);
  }
  link_frame_written(links[from], 1, now_ns);
  assert_int_equal(link_frame_completed(to, 1, now_ns), 0);
  link_check(links[0]);
  link_check(links[1]);
  return header.type;
}

static void a_new_lane_is_measured_before_it_is_used(void **state) {
  (void)state;
  second_lane_begin(true);
  struct link *sender = links[LINK_SENDER];
  uint32_t length;
  unsigned pings = 0;
  while (hand_over(LINK_SENDER, &length) == WIRE_PING) {
    assert_int_equal(length, pings == 0 ? 0 : FLOW_PROBE_BYTES);
    assert_int_not_equal(pick_lane(sender, 2), 1); /* the chunk waits for lane 0 */
    assert_int_equal(hand_over(LINK_RECEIVER, &length), WIRE_PONG);
    pings++;
  }
  assert_int_equal(pings, 2 + FLOW_PROBE_FRAMES);
  assert_in_range(probe->ps_per_byte, 15800, 16200);
}

static void a_lane_that_is_lost_meanwhile_counts_for_nothing(void **state) {
  (void)state;
  second_lane_begin(true);
  struct link *sender = links[LINK_SENDER];
  uint32_t length;
  assert_int_equal(hand_over(LINK_SENDER, &length), WIRE_PING);
  link_lane_lost(sender, 1, 1, now_ns);
  assert_int_equal(probe->step, FLOW_PROBE_IDLE);
  assert_int_equal(probe->ps_per_byte, 0);
  link_check(sender);
}

static void a_link_that_ends_leaves_the_probe_to_others(void **state) {
  (void)state;
  second_lane_begin(true);
  assert_true(flow_probe_has(probe, links[LINK_SENDER]->policy, 1));
  link_end(links[LINK_SENDER]);
  assert_true(flow_probe_is_wanted(probe, now_ns));
}

static void who_does_not_want_it_sends_no_padding(void **state) {
  (void)state;
  second_lane_begin(false);
  uint32_t length;
  assert_int_equal(hand_over(LINK_SENDER, &length), WIRE_DATA);
}

/* A receiver has nothing to measure: padding from it is an error of the protocol. */
static void a_receiver_may_not_send_padding(void **state) {
  (void)state;
  links_begin(true);
  struct wire_header ping = { .type = WIRE_PING, .length = 8, .message = 1 };
  assert_int_equal(link_frame_received(links[LINK_SENDER], 0, &ping, now_ns), -EPROTO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_slow_flow_is_measured_well, begin),
    cmocka_unit_test_setup(a_fast_flow_needs_few_bytes, begin),
    cmocka_unit_test_setup(what_fills_the_flow_is_not_counted, begin),
    cmocka_unit_test_setup(delays_are_forgotten, begin),
    cmocka_unit_test_setup(only_its_own_answer_counts, begin),
    cmocka_unit_test_setup(one_link_is_measured_at_a_time, begin),
    cmocka_unit_test_setup(what_is_told_is_between_fast_and_slow, begin),
    cmocka_unit_test_setup(a_lost_lane_ends_the_round, begin),
    cmocka_unit_test_setup_teardown(a_new_lane_is_measured_before_it_is_used, begin, links_end),
    cmocka_unit_test_setup_teardown(a_lane_that_is_lost_meanwhile_counts_for_nothing, begin,
                                    links_end),
    cmocka_unit_test_setup_teardown(a_link_that_ends_leaves_the_probe_to_others, begin, links_end),
    cmocka_unit_test_setup_teardown(who_does_not_want_it_sends_no_padding, begin, links_end),
    cmocka_unit_test_setup_teardown(a_receiver_may_not_send_padding, begin, links_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
