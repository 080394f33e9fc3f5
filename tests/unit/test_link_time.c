/* SPDX-License-Identifier: Apache-2.0 */
/* What a link does when time passes and nothing comes, and what it says when it gives up. Frames
 * are handed over by function call, or vanish. Black holes, and how soon lanes are replaced:
 * tests/sim. */
#include <errno.h>
#include <string.h>

#include "net_plugin/link/limits.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

static enum link_trouble trouble(enum link_role role) {
  return link_health(timed.links[role], timed.now_ns).trouble;
}

/* ---- the peer ---- */

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

/* With a message in flight. Its host answers: what its process does not read is acknowledged. */
static void stop_peer(enum link_role role, bool does_host_answer) {
  enum link_role peer = timed_other(role);
  timed_begin(TIMED_LANES);
  timed_post(TIMED_BULK);
  timed.is_stopped[peer] = true;
  timed.does_host_answer[peer] = does_host_answer;
  timed.can_dial = false;
}

TEST(a_silent_peer_is_told_apart) {
  static const struct {
    bool does_host_answer;
    uint64_t timeout_ns;
    int error;
  } cases[] = { { false, TIMED_TIMEOUT, -EHOSTDOWN }, { true, TIMED_STOPPED_TIMEOUT, -ETIME } };
  for (int i = 0; i < 4; i++) {
    enum link_role role = (enum link_role)(i % 2);
    stop_peer(role, cases[i / 2].does_host_answer);
    timed_pass(cases[i / 2].timeout_ns - MS);
    assert_int_equal(link_status(timed.links[role]), 0);
    timed_pass(2 * MS);
    assert_int_equal(link_status(timed.links[role]), cases[i / 2].error);
    assert_true(trouble(role) == LINK_WELL);
    assert_true(link_next_deadline_ns(timed.links[role]) == LINK_NO_DEADLINE);
  }
}

TEST(a_stopped_peer_has_more_time) {
  for (int role = 0; role < 2; role++) {
    stop_peer((enum link_role)role, true);
    timed_pass(TIMED_TIMEOUT - MS);
    assert_true(trouble((enum link_role)role) == LINK_STOPPED);
    timed_pass(2 * MS);
    assert_true(trouble((enum link_role)role) == LINK_STOPPED);
    timed_pass(TIMED_STOPPED_TIMEOUT - TIMED_TIMEOUT - 2 * MS);
    assert_int_equal(link_status(timed.links[role]), 0);
    assert_true(trouble((enum link_role)role) == LINK_STOPPED);
    assert_in_range(timed_view((enum link_role)role).losses, 0, 1);
    timed.is_stopped[timed_other((enum link_role)role)] = false;
    timed.can_dial = true;
    timed_pass(2 * SECOND);
    assert_int_equal(timed.completed[LINK_SENDER], 1);
    assert_int_equal(timed.completed[LINK_RECEIVER], 1);
    assert_true(trouble((enum link_role)role) == LINK_WELL);
  }
}

/* ---- patience ---- */

#define PATIENCE (900 * SECOND)
#define SHORT_PATIENCE (10 * SECOND)

/* All that is sent vanishes, for good: whoever keeps its lanes has dead ones. */
static void lose_the_path(void) {
  timed.can_dial = false;
  timed.black[LINK_SENDER] = timed.black[LINK_RECEIVER] = TIMED_ALL;
}

TEST(an_outage_is_waited_for) {
  const uint64_t outages_ns[] = { 15 * SECOND, 60 * SECOND, 800 * SECOND };
  for (unsigned lanes = 1; lanes <= TIMED_LANES; lanes += TIMED_LANES - 1) {
    for (unsigned i = 0; i < sizeof outages_ns / sizeof *outages_ns; i++) {
      timed_begin_patient(lanes, PATIENCE);
      timed_post(TIMED_BULK);
      timed_pass(SECOND);
      lose_the_path();
      timed_post(TIMED_BULK);
      timed_pass(LIVENESS_DOUBT_NS - MS);
      assert_true(trouble(LINK_SENDER) == LINK_WELL && trouble(LINK_RECEIVER) == LINK_WELL);
      timed_pass(3 * SECOND);
      for (int role = 0; role < 2; role++) {
        struct link_health health = link_health(timed.links[role], timed.now_ns);
        assert_true(health.trouble == LINK_NO_ANSWER);
        assert_in_range(timed.now_ns - health.since_ns, 2 * SECOND, 8 * SECOND);
      }
      timed_pass(outages_ns[i] - LIVENESS_DOUBT_NS - 3 * SECOND + MS);
      assert_int_equal(timed.completed[LINK_RECEIVER], 1);
      timed.can_dial = true;
      timed_pass(2 * SECOND);
      assert_int_equal(timed.completed[LINK_SENDER], 2);
      assert_int_equal(timed.completed[LINK_RECEIVER], 2);
      assert_true(trouble(LINK_SENDER) == LINK_WELL && trouble(LINK_RECEIVER) == LINK_WELL);
    }
  }
}

/* The path passes handshakes, and large frames again or not. */
static void lose_large_frames(unsigned lanes, uint64_t timeout_ns) {
  timed_begin_patient(lanes, timeout_ns);
  timed_post(TIMED_BULK);
  timed_pass(SECOND);
  timed.largest = 700;
  timed_post(TIMED_BULK);
}

TEST(a_path_without_data_is_waited_for) {
  const uint64_t outages_ns[] = { 15 * SECOND, 60 * SECOND, 800 * SECOND };
  for (unsigned lanes = 1; lanes <= TIMED_LANES; lanes += TIMED_LANES - 1) {
    for (unsigned i = 0; i < sizeof outages_ns / sizeof *outages_ns; i++) {
      lose_large_frames(lanes, PATIENCE);
      timed_pass(outages_ns[i]);
      assert_true(trouble(LINK_SENDER) == LINK_STUCK);
      timed.largest = 0;
      timed_pass(5 * SECOND);
      assert_int_equal(timed.completed[LINK_SENDER], 2);
      assert_true(trouble(LINK_SENDER) == LINK_WELL && trouble(LINK_RECEIVER) == LINK_WELL);
    }
    lose_large_frames(lanes, PATIENCE);
    timed_pass(PATIENCE - SECOND);
    assert_int_equal(link_status(timed.links[LINK_SENDER]), 0);
    timed_pass(LINK_LAST_TRY_NS + 2 * SECOND);
    assert_int_equal(link_status(timed.links[LINK_SENDER]), -ECOMM);
    assert_int_equal(link_status(timed.links[LINK_RECEIVER]), -ECONNABORTED);
  }
}

/* Until so many lanes have come up in vain. */
static void get_stuck(unsigned vain_lanes) {
  lose_large_frames(TIMED_LANES, SHORT_PATIENCE);
  while (trouble(LINK_SENDER) != LINK_STUCK || timed_view(LINK_SENDER).vain_lanes < vain_lanes) {
    timed_pass(MS);
  }
}

/* Who was stopped meanwhile gives a new path its time. */
TEST(time_away_counts_for_nothing) {
  get_stuck(1);
  timed.is_stopped[LINK_SENDER] = true;
  timed.does_host_answer[LINK_SENDER] = true;
  timed_pass(SHORT_PATIENCE);
  timed.is_stopped[LINK_SENDER] = false;
  timed.largest = 0;
  timed_pass(LIVENESS_DOUBT_NS);
  assert_int_equal(link_status(timed.links[LINK_SENDER]), 0);
  assert_int_equal(timed.completed[LINK_SENDER], 2);
}

static void write_unread(unsigned lane) {
  struct link_frame frame;
  assert_true(timed_take(LINK_SENDER, lane, &frame));
  link_frame_taken(timed.links[LINK_SENDER], lane, timed.now_ns);
}

static void lose_lane(unsigned lane, uint32_t epoch) {
  link_lane_lost(timed.links[LINK_SENDER], lane, epoch, timed.now_ns);
  link_lane_lost(timed.links[LINK_RECEIVER], lane, epoch, timed.now_ns);
}

static void replace_lane(unsigned lane) {
  struct link_order order;
  lose_lane(lane, 1);
  timed.now_ns += 2 * FAILOVER_BACKOFF_MIN_NS;
  assert_true(link_next_order(timed.links[LINK_SENDER], &order, timed.now_ns));
  assert_true(order.kind == LINK_ORDER_OPEN && order.lane == lane && order.epoch == 2);
  timed_lane_up(lane, 2);
}

/* Lanes that replaced others are lost, too, and nothing came across: the peer did not run. */
TEST(a_peer_that_was_stopped_is_no_path_without_data) {
  const struct wire_header ping = { .type = WIRE_PING, .message = 1 };
  timed_begin_patient(TIMED_LANES, SHORT_PATIENCE);
  timed.does_host_answer[LINK_RECEIVER] = true;
  timed_post(TIMED_BULK);
  timed_carry(LINK_SENDER); /* the REQUEST */
  timed_carry(LINK_RECEIVER);
  for (unsigned lane = 1; lane < TIMED_LANES; lane++) {
    write_unread(lane);
    replace_lane(lane);
    write_unread(lane);
  }
  timed.is_stopped[LINK_RECEIVER] = true;
  timed_pass(2 * SHORT_PATIENCE);
  timed.is_stopped[LINK_RECEIVER] = false;
  assert_int_equal(link_frame_received(timed.links[LINK_SENDER], 1, &ping, timed.now_ns), 0);
  assert_int_equal(link_frame_completed(timed.links[LINK_SENDER], 1, timed.now_ns), 0);
  for (unsigned lane = 1; lane < TIMED_LANES; lane++) {
    lose_lane(lane, 2);
  }
  timed_pass(LIVENESS_DOUBT_NS);
  assert_int_equal(link_status(timed.links[LINK_SENDER]), 0);
  assert_int_equal(timed.completed[LINK_SENDER], 1);
}

/* Then it is waited for again, and another one may pass all. */
TEST(a_path_may_go_at_the_last_try) {
  get_stuck(LINK_VAIN_LANES);
  while (timed.links[LINK_SENDER]->last_try_ns == 0) {
    timed_pass(MS);
  }
  timed.can_dial = false;
  timed_pass(LINK_LAST_TRY_NS);
  assert_int_equal(timed_view(LINK_SENDER).vain_lanes, 0);
  timed.can_dial = true;
  timed_pass(SHORT_PATIENCE / 2);
  assert_int_equal(link_status(timed.links[LINK_SENDER]), 0);
  timed.largest = 0;
  timed_pass(LIVENESS_DOUBT_NS);
  assert_int_equal(link_status(timed.links[LINK_SENDER]), 0);
  assert_int_equal(timed.completed[LINK_SENDER], 2);
}

/* Data came across, only the acknowledgements did not: a new lane's first WINDOW tells. */
TEST(what_has_landed_is_told_at_the_last_try) {
  for (int is_told = 0; is_told < 2; is_told++) {
    timed_begin_patient(1, SHORT_PATIENCE);
    timed_post(TIMED_BULK);
    timed_pass(SECOND);
    timed_post(TIMED_BULK);
    timed_carry(LINK_RECEIVER); /* the grant */
    timed.is_mute[LINK_RECEIVER] = true;
    for (unsigned i = 0; timed.links[LINK_SENDER]->last_try_ns == 0 && i < 60000; i++) {
      timed_pass(MS);
    }
    timed.is_mute[LINK_RECEIVER] = !is_told;
    timed_pass(LINK_LAST_TRY_NS + MS);
    assert_int_equal(link_status(timed.links[LINK_SENDER]), is_told ? 0 : -ECOMM);
    assert_int_equal(timed.completed[LINK_SENDER], is_told ? 2 : 1);
  }
}

/* ---- lanes ---- */

TEST(other_lanes_are_asked_only_where_a_path_may_be_gone) {
  for (int has_all = 0; has_all < 2; has_all++) {
    timed_begin(TIMED_LANES);
    timed.black[LINK_SENDER] = timed.black[LINK_RECEIVER] = TIMED_ALL;
    timed.has_kernel_all = has_all;
    timed_post(8);
    timed_pass(SECOND);
    assert_int_equal(timed.pinged[LINK_SENDER] == TIMED_ALL, !has_all);
  }
}

/* One of the processes was stopped before it read a chunk, or its acknowledgement: that it took so
 * long says nothing of the lane, which has no more time than others when its path is gone. */
TEST(a_stopped_process_makes_no_slow_lane) {
  for (int i = 0; i < 2; i++) {
    enum link_role stopped = (enum link_role)i, other = timed_other(stopped);
    struct link_frame unread;
    timed_begin_with(
        (struct link_config){
            .policy = { .lanes = 1, .chunk_bytes = TIMED_BULK },
            .timeout_ns = PATIENCE,
            .stopped_timeout_ns = PATIENCE,
        },
        1);
    timed.does_host_answer[LINK_RECEIVER] = true;
    timed_post(TIMED_BULK);
    timed_carry(LINK_SENDER); /* the REQUEST */
    timed_carry(LINK_RECEIVER);
    if (stopped == LINK_SENDER) {
      timed_carry(LINK_SENDER);
    }
    assert_true(timed_take(other, 0, &unread));
    link_next_deadline_ns(timed.links[stopped]);
    timed.is_stopped[stopped] = true;
    timed_pass(10 * SECOND);
    timed.is_stopped[stopped] = false;
    assert_int_equal(timed_deliver(stopped, 0, &unread), 0);
    link_frame_taken(timed.links[other], 0, timed.now_ns);
    timed_pass(MS);
    assert_int_equal(timed.completed[LINK_SENDER], 1);
    timed.black[LINK_SENDER] = TIMED_ALL;
    timed_post(TIMED_BULK);
    timed_pass(10 * SECOND);
    assert_int_equal(timed.completed[LINK_SENDER], 2);
    assert_int_equal(timed_view(LINK_SENDER).losses, 1);
  }
}

/* ---- giving up ---- */

TEST(the_reason_travels) {
  char reason[2 * WIRE_MAX_REASON_BYTES];
  memset(reason, 'x', sizeof reason - 1);
  reason[sizeof reason - 1] = '\0';
  memcpy(reason, "h3 (10.0.0.3:7):\n", 17);
  timed_begin(TIMED_LANES);
  link_fail_because(timed.links[LINK_SENDER], -ESHUTDOWN, reason);
  timed_settle();
  assert_int_equal(link_status(timed.links[LINK_RECEIVER]), -ECONNABORTED);
  struct link_view view = timed_view(LINK_RECEIVER);
  assert_int_equal(view.peer_error, -ESHUTDOWN);
  assert_int_equal(strlen(view.peer_reason), WIRE_MAX_REASON_BYTES);
  assert_memory_equal(view.peer_reason, "h3 (10.0.0.3:7):?xxx", 20);
}

TEST(a_last_word_that_was_lost_is_said_again) {
  timed_begin(2);
  struct link_frame frame;
  link_fail(timed.links[LINK_SENDER], -EIO);
  int lane = pick_lane(timed.links[LINK_SENDER], UINT64_MAX);
  assert_true(next_frame(timed.links[LINK_SENDER], (unsigned)lane, &frame, timed.now_ns));
  assert_true(link_has_last_word(timed.links[LINK_SENDER]));
  assert_int_equal(pick_lane(timed.links[LINK_SENDER], UINT64_MAX), -1);
  link_lane_lost(timed.links[LINK_SENDER], (unsigned)lane, 1, timed.now_ns);
  assert_int_equal(pick_lane(timed.links[LINK_SENDER], UINT64_MAX), 1 - lane);
  timed_settle();
  assert_int_equal(link_status(timed.links[LINK_RECEIVER]), -ECONNABORTED);
}

/* ---- leaving ---- */

/* The peer's eager messages wait in all slots. */
TEST(who_leaves_says_what_has_landed) {
  enum { EAGER_SLOTS = 8 };
  struct wire_header header = { .type = WIRE_PING };
  struct link_frame frame;
  timed_begin(1);
  struct link *receiver = timed.links[LINK_RECEIVER];
  for (unsigned i = 0; i < EAGER_SLOTS; i++) {
    assert_int_equal(link_send_posted(timed.links[LINK_SENDER], timed.out, 64, NULL, timed.now_ns),
                     0);
  }
  timed_settle();
  link_user_detached(receiver, timed.now_ns);
  while (header.type != WIRE_BYE) {
    assert_true(next_frame(receiver, 0, &frame, timed.now_ns));
    link_frame_taken(receiver, 0, timed.now_ns);
    assert_int_equal(wire_header_decode(frame.header, &header), 0);
  }
  assert_int_equal(header.offset, EAGER_SLOTS);
}
