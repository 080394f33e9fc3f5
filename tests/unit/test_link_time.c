/* SPDX-License-Identifier: Apache-2.0 */
/* What a link does when time passes and nothing comes: silent peers, stopped processes, black
 * holes; and what it says when it gives up. Frames are handed over by function call, or vanish. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/link/link.h"
#include "net_plugin/link/liveness.h"
#include "tests/lib/unit.h"

#define LANES 3u
#define ALL 7ull
#define MS 1000000ull
#define SECOND (1000 * MS)
#define TIMEOUT (10 * SECOND)
#define STOPPED_TIMEOUT (300 * SECOND)
#define BULK (256u << 10)

static struct link *links[2]; /* by enum link_role */
static uint64_t black[2];     /* lanes on which what this side writes vanishes */
static bool is_stopped[2];
static bool does_host_answer[2]; /* to who looks whether it does */
static bool can_dial;
static uint64_t now_ns, received_frames[WIRE_TYPE_END];
static unsigned completed[2];
static uint8_t out[BULK], in[BULK];

static enum link_role other(enum link_role role) {
  return role == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER;
}

static void lane_up(unsigned lane, uint32_t epoch) {
  uint64_t count = link_lane_fence(links[LINK_RECEIVER], lane, epoch, now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(links[LINK_RECEIVER], lane, epoch, 0, now_ns);
  link_lane_up(links[LINK_SENDER], lane, epoch, count, now_ns);
}

static int tear_down(void **state) {
  (void)state;
  free(links[LINK_SENDER]);
  free(links[LINK_RECEIVER]);
  return 0;
}

static void begin(unsigned lanes_up) {
  now_ns = SECOND;
  black[0] = black[1] = 0;
  is_stopped[0] = is_stopped[1] = false;
  does_host_answer[0] = does_host_answer[1] = false;
  can_dial = true;
  completed[0] = completed[1] = 0;
  memset(received_frames, 0, sizeof received_frames);
  for (int role = 0; role < 2; role++) {
    struct link_config config = {
      .role = (enum link_role)role,
      .lanes = LANES,
      .chunk_bytes = 4096,
      .eager_bytes = 64,
      .eager_slots = 8,
      .timeout_ns = TIMEOUT,
      .stopped_timeout_ns = STOPPED_TIMEOUT,
      .seed = 1,
    };
    links[role] = link_init(calloc(1, link_memory_bytes(&config)), &config, now_ns);
  }
  for (unsigned lane = 0; lane < lanes_up; lane++) {
    lane_up(lane, 1);
  }
}

static void deliver(enum link_role to, unsigned lane, const struct link_frame *frame) {
  struct wire_header header;
  assert_int_equal(wire_header_decode(frame->header, &header), 0);
  if (link_frame_received(links[to], lane, &header, now_ns) != 0) {
    return;
  }
  received_frames[header.type]++;
  if (header.length > 0) {
    memcpy(link_receive_buffer(links[to], lane), frame->payload, header.length);
  }
  link_frame_completed(links[to], lane, now_ns);
}

static bool carry(enum link_role from) {
  int picked;
  bool has_carried = false;
  while (!is_stopped[from] && !is_stopped[other(from)] &&
         (picked = link_pick_lane(links[from], UINT64_MAX)) >= 0) {
    struct link_frame frame;
    assert_true(link_next_frame(links[from], (unsigned)picked, &frame, now_ns));
    if ((black[from] >> picked & 1) == 0) {
      deliver(other(from), (unsigned)picked, &frame);
    }
    link_frame_written(links[from], (unsigned)picked, now_ns);
    has_carried = true;
  }
  return has_carried;
}

static void take_orders(enum link_role role) {
  struct link_order order;
  while (!is_stopped[role] && link_next_order(links[role], &order, now_ns)) {
    if (order.kind == LINK_ORDER_CLOSE) {
      continue; /* whoever is on the other end of a black hole does not notice */
    }
    if (can_dial && !is_stopped[LINK_RECEIVER]) {
      black[0] &= ~(1ull << order.lane);
      black[1] &= ~(1ull << order.lane);
      lane_up(order.lane, order.epoch);
    } else {
      link_lane_lost(links[role], order.lane, order.epoch, now_ns);
    }
  }
}

static void settle(void) {
  struct link_completion completion;
  do {
    take_orders(LINK_SENDER);
    take_orders(LINK_RECEIVER);
    for (int role = 0; role < 2; role++) {
      while (link_next_completion(links[role], &completion)) {
        completed[role]++;
      }
      link_check(links[role]);
    }
  } while (carry(LINK_SENDER) | carry(LINK_RECEIVER));
}

/* Lets time pass; both owners come when they were asked to. */
static void pass(uint64_t for_ns) {
  uint64_t end_ns = now_ns + for_ns;
  settle();
  while (now_ns < end_ns) {
    uint64_t next_ns = end_ns;
    for (int role = 0; role < 2; role++) {
      uint64_t deadline_ns = is_stopped[role] ? end_ns : link_next_deadline_ns(links[role]);
      next_ns = deadline_ns < next_ns ? deadline_ns : next_ns;
    }
    now_ns = next_ns > now_ns ? next_ns : now_ns + 1;
    for (int role = 0; role < 2; role++) {
      if (!is_stopped[role]) {
        if (link_wants_evidence(links[role], now_ns) &&
            does_host_answer[other((enum link_role)role)]) {
          link_host_answered(links[role], now_ns, now_ns);
        }
        link_time_passed(links[role], now_ns);
      }
    }
    settle();
  }
}

static void post(size_t bytes) {
  assert_int_equal(link_receive_posted(links[LINK_RECEIVER], in, bytes, NULL, now_ns), 0);
  assert_int_equal(link_send_posted(links[LINK_SENDER], out, bytes, NULL, now_ns), 0);
}

static struct link_view view_of(enum link_role role) {
  struct link_view view;
  link_view(links[role], &view);
  return view;
}

/* ---- the peer ---- */

static void who_waits_for_nothing_asks_nothing(void **state) {
  (void)state;
  begin(LANES);
  post(BULK);
  pass(SECOND);
  assert_int_equal(completed[LINK_SENDER], 1);
  assert_true(link_next_deadline_ns(links[LINK_SENDER]) == LINK_NO_DEADLINE);
  assert_true(link_next_deadline_ns(links[LINK_RECEIVER]) == LINK_NO_DEADLINE);
  is_stopped[LINK_SENDER] = true;
  pass(100 * TIMEOUT);
  assert_int_equal(link_status(links[LINK_RECEIVER]), 0);
  assert_int_equal(view_of(LINK_RECEIVER).pings_sent, 0);
}

static void a_peer_that_answers_may_take_its_time(void **state) {
  (void)state;
  begin(LANES);
  assert_int_equal(link_receive_posted(links[LINK_RECEIVER], in, BULK, NULL, now_ns), 0);
  pass(10 * TIMEOUT);
  assert_int_equal(link_status(links[LINK_RECEIVER]), 0);
  /* One per interval is enough while it is answered. */
  assert_in_range(view_of(LINK_RECEIVER).pings_sent, 30, 41);
  assert_int_equal(view_of(LINK_RECEIVER).stalls_cut, 0);
  assert_true(view_of(LINK_RECEIVER).heard_ns >= now_ns - 3 * SECOND);
  assert_int_equal(link_send_posted(links[LINK_SENDER], out, BULK, NULL, now_ns), 0);
  pass(SECOND);
  assert_int_equal(completed[LINK_RECEIVER], 1);
}

static void a_silent_peer_is_told_apart(void **state) {
  (void)state;
  for (int role = 0; role < 2; role++) {
    begin(LANES);
    post(BULK);
    is_stopped[other((enum link_role)role)] = true;
    can_dial = false;
    pass(TIMEOUT - MS);
    assert_int_equal(link_status(links[role]), 0);
    pass(2 * MS);
    assert_int_equal(link_status(links[role]), -EHOSTDOWN);
    assert_true(link_next_deadline_ns(links[role]) == LINK_NO_DEADLINE);
    if (role == 0) {
      tear_down(state);
    }
  }
}

static void a_peer_that_was_stopped_goes_on(void **state) {
  (void)state;
  begin(LANES);
  for (int i = 0; i < 5; i++) {
    post(BULK);
    enum link_role role = i % 2 == 0 ? LINK_SENDER : LINK_RECEIVER;
    is_stopped[role] = true;
    pass(TIMEOUT - 300 * MS);
    is_stopped[role] = false;
    pass(SECOND);
    assert_int_equal(completed[LINK_SENDER], i + 1);
    assert_int_equal(completed[LINK_RECEIVER], i + 1);
  }
  assert_int_equal(view_of(LINK_SENDER).stalls_cut + view_of(LINK_RECEIVER).stalls_cut, 0);
}

/* Its kernel acknowledges what its process does not read. */
static void a_stopped_peer_has_more_time(void **state) {
  for (int role = 0; role < 2; role++) {
    enum link_role peer = other((enum link_role)role);
    begin(LANES);
    post(BULK);
    is_stopped[peer] = does_host_answer[peer] = true;
    can_dial = false;
    pass(TIMEOUT - MS);
    assert_false(link_is_peer_stopped(links[role], now_ns));
    pass(2 * MS);
    assert_true(link_is_peer_stopped(links[role], now_ns));
    pass(STOPPED_TIMEOUT - TIMEOUT - 2 * MS);
    assert_int_equal(link_status(links[role]), 0);
    assert_true(link_is_peer_stopped(links[role], now_ns));
    assert_in_range(view_of((enum link_role)role).losses, 0, 1);
    is_stopped[peer] = false;
    can_dial = true;
    pass(2 * SECOND);
    assert_int_equal(completed[LINK_SENDER], 1);
    assert_int_equal(completed[LINK_RECEIVER], 1);
    assert_false(link_is_peer_stopped(links[role], now_ns));
    if (role == 0) {
      tear_down(state);
    }
  }
}

static void a_peer_that_stays_stopped_is_given_up(void **state) {
  (void)state;
  begin(LANES);
  post(BULK);
  is_stopped[LINK_RECEIVER] = does_host_answer[LINK_RECEIVER] = true;
  can_dial = false;
  pass(STOPPED_TIMEOUT - MS);
  assert_int_equal(link_status(links[LINK_SENDER]), 0);
  pass(2 * MS);
  assert_int_equal(link_status(links[LINK_SENDER]), -ETIME);
  assert_false(link_is_peer_stopped(links[LINK_SENDER], now_ns));
}

static void our_own_stop_is_nobodys_silence(void **state) {
  (void)state;
  begin(1);
  assert_int_equal(link_receive_posted(links[LINK_RECEIVER], in, BULK, NULL, now_ns), 0);
  black[LINK_SENDER] = black[LINK_RECEIVER] = ALL;
  pass(TIMEOUT / 2);
  now_ns += 10 * TIMEOUT; /* nobody ran */
  pass(TIMEOUT / 4);
  assert_int_equal(link_status(links[LINK_RECEIVER]), 0);
  pass(TIMEOUT / 2);
  assert_int_equal(link_status(links[LINK_RECEIVER]), -EHOSTDOWN);
}

static void our_own_stop_is_no_time_without_lanes(void **state) {
  (void)state;
  begin(1);
  can_dial = false;
  for (int role = 0; role < 2; role++) {
    link_lane_lost(links[role], 0, 1, now_ns);
  }
  pass(TIMEOUT / 2);
  now_ns += 10 * TIMEOUT;
  pass(TIMEOUT / 4);
  assert_int_equal(link_status(links[LINK_SENDER]), 0);
  assert_int_equal(link_status(links[LINK_RECEIVER]), 0);
  pass(TIMEOUT / 2);
  assert_int_equal(link_status(links[LINK_SENDER]), -ETIMEDOUT);
  assert_int_equal(link_status(links[LINK_RECEIVER]), -ETIMEDOUT);
}

/* ---- lanes ---- */

static void a_lane_that_the_peer_closed_is_no_loss(void **state) {
  (void)state;
  struct link_lane_view view;
  begin(2);
  link_lane_left(links[LINK_RECEIVER], 0, 1, now_ns);
  link_lane_lost(links[LINK_RECEIVER], 1, 1, now_ns);
  for (unsigned lane = 0; lane < 2; lane++) {
    link_view_lane(links[LINK_RECEIVER], lane, &view);
    assert_int_equal(view.state, LINK_LANE_LOST);
    assert_true(view.losses == lane);
  }
}

static void a_black_hole_is_given_up(void **state) {
  /* There, back, both; the last lane that is left is sound. */
  for (unsigned directions = 1; directions <= 3; directions++) {
    begin(LANES);
    black[LINK_SENDER] = (directions & 1) != 0 ? 3 : 0;
    black[LINK_RECEIVER] = (directions & 2) != 0 ? 3 : 0;
    post(BULK);
    pass(4 * SECOND);
    assert_int_equal(completed[LINK_RECEIVER], 1);
    assert_int_equal(completed[LINK_SENDER], 1);
    assert_memory_equal(in, out, BULK);
    assert_in_range(view_of(LINK_SENDER).stalls_cut, 1, 4);
    assert_int_equal(view_of(LINK_SENDER).lanes_up, LANES);
    if (directions < 3) {
      tear_down(state);
    }
  }
}

/* In both directions, under load; rates are not known here, where frames take no time. */
static void a_black_hole_costs_little_time(void **state) {
  (void)state;
  begin(LANES);
  post(BULK);
  pass(10 * MS);
  black[LINK_SENDER] = black[LINK_RECEIVER] = 6;
  post(BULK);
  pass(2 * SECOND);
  assert_int_equal(completed[LINK_SENDER], 2);
  assert_in_range(view_of(LINK_SENDER).stalls_cut, 1, 2);
}

static void a_black_hole_is_found_without_others(void **state) {
  (void)state;
  begin(1); /* the other lanes were never opened */
  black[LINK_SENDER] = black[LINK_RECEIVER] = 1;
  assert_int_equal(link_receive_posted(links[LINK_RECEIVER], in, 8, NULL, now_ns), 0);
  assert_int_equal(link_send_posted(links[LINK_SENDER], out, 8, NULL, now_ns), 0);
  pass(TIMEOUT - MS);
  assert_int_equal(completed[LINK_RECEIVER], 1);
  assert_int_equal(link_status(links[LINK_SENDER]), 0);
}

static void when_all_are_silent_a_new_one_is_tried_soon(void **state) {
  for (int directions = 1; directions <= 3; directions++) {
    begin(LANES);
    post(BULK);
    pass(MS);
    assert_int_equal(completed[LINK_SENDER], 1);
    black[LINK_SENDER] = (directions & 1) != 0 ? ALL : 0;
    black[LINK_RECEIVER] = (directions & 2) != 0 ? ALL : 0;
    post(BULK);
    pass(TIMEOUT / 2 - MS);
    assert_int_equal(completed[LINK_SENDER], 2);
    assert_in_range(view_of(LINK_SENDER).losses, 1, LANES);
    if (directions < 3) {
      tear_down(state);
    }
  }
}

static void a_stopped_peer_costs_one_lane_and_no_more(void **state) {
  (void)state;
  begin(LANES);
  post(BULK);
  is_stopped[LINK_RECEIVER] = true;
  pass(TIMEOUT * 3 / 4);
  assert_int_equal(view_of(LINK_SENDER).losses, 1);
  assert_int_equal(view_of(LINK_SENDER).lanes_up, LANES - 1);
  is_stopped[LINK_RECEIVER] = false;
  pass(TIMEOUT);
  assert_int_equal(completed[LINK_RECEIVER], 1);
  assert_int_equal(view_of(LINK_SENDER).losses, 1);
  assert_int_equal(view_of(LINK_SENDER).lanes_up, LANES);
}

static void a_path_that_takes_no_bytes_is_tried_less_and_less(void **state) {
  (void)state;
  begin(LANES);
  for (int i = 0; i < 200; i++) {
    black[LINK_SENDER] = 4; /* again after each re-dial */
    post(BULK);
    pass(SECOND);
  }
  assert_int_equal(link_status(links[LINK_SENDER]), 0);
  assert_in_range(completed[LINK_RECEIVER], 180, 200);
  assert_in_range(view_of(LINK_SENDER).stalls_cut, 3, 12);
}

/* ---- giving up ---- */

static void giving_up_is_said(void **state) {
  for (int role = 0; role < 2; role++) {
    begin(LANES);
    assert_false(link_has_last_word(links[role]));
    link_fail(links[role], -EIO);
    assert_true(link_has_last_word(links[role]));
    settle();
    assert_false(link_has_last_word(links[role]));
    enum link_role peer = other((enum link_role)role);
    assert_int_equal(link_status(links[peer]), -ECONNABORTED);
    assert_int_equal(view_of(peer).peer_error, -EIO);
    assert_false(link_has_last_word(links[peer])); /* it knows */
    assert_int_equal(received_frames[WIRE_ABORT], 1);
    if (role == 0) {
      tear_down(state);
    }
  }
}

static void a_last_word_that_was_lost_is_said_again(void **state) {
  (void)state;
  begin(2);
  struct link_frame frame;
  link_fail(links[LINK_SENDER], -EIO);
  int lane = link_pick_lane(links[LINK_SENDER], UINT64_MAX);
  assert_true(link_next_frame(links[LINK_SENDER], (unsigned)lane, &frame, now_ns));
  assert_true(link_has_last_word(links[LINK_SENDER]));
  assert_int_equal(link_pick_lane(links[LINK_SENDER], UINT64_MAX), -1);
  link_lane_lost(links[LINK_SENDER], (unsigned)lane, 1, now_ns);
  assert_int_equal(link_pick_lane(links[LINK_SENDER], UINT64_MAX), 1 - lane);
  settle();
  assert_int_equal(link_status(links[LINK_RECEIVER]), -ECONNABORTED);
}

static void without_a_lane_nothing_can_be_said(void **state) {
  (void)state;
  begin(1);
  link_lane_lost(links[LINK_SENDER], 0, 1, now_ns);
  link_fail(links[LINK_SENDER], -EIO);
  assert_false(link_has_last_word(links[LINK_SENDER]));
  assert_int_equal(link_pick_lane(links[LINK_SENDER], UINT64_MAX), -1);
}

/* ---- what a lost lane took along ---- */

static void a_request_that_was_lost_is_repeated(void **state) {
  (void)state;
  begin(2);
  struct link_frame frame;
  struct wire_header header;
  assert_int_equal(link_send_posted(links[LINK_SENDER], out, BULK, NULL, now_ns), 0);
  for (uint32_t i = 0; i < 2; i++) {
    int lane = link_pick_lane(links[LINK_SENDER], 1ull << i);
    assert_int_equal(lane, i);
    assert_true(link_next_frame(links[LINK_SENDER], i, &frame, now_ns));
    assert_int_equal(wire_header_decode(frame.header, &header), 0);
    assert_int_equal(header.type, WIRE_REQUEST);
    link_frame_written(links[LINK_SENDER], i, now_ns);
    assert_int_equal(link_pick_lane(links[LINK_SENDER], UINT64_MAX), -1);
    link_lane_lost(links[LINK_SENDER], i, 1, now_ns);
  }
}

static void fenced(unsigned lane, uint32_t epoch, uint64_t count, unsigned on) {
  struct wire_header header = { WIRE_FENCED, 0, 0, lane, epoch, count, 0 };
  assert_int_equal(link_frame_received(links[LINK_SENDER], on, &header, now_ns), 0);
  assert_int_equal(link_frame_completed(links[LINK_SENDER], on, now_ns), 0);
  link_check(links[LINK_SENDER]);
}

static void a_stale_fence_changes_nothing(void **state) {
  (void)state;
  begin(2);
  struct link_lane_view view;
  struct link_frame frame;
  struct link_order order;
  link_lane_lost(links[LINK_SENDER], 0, 1, now_ns);
  now_ns += SECOND;
  do {
    assert_true(link_next_order(links[LINK_SENDER], &order, now_ns));
  } while (order.kind != LINK_ORDER_OPEN || order.lane != 0);
  lane_up(0, order.epoch);
  fenced(0, 1, 0, 1); /* late: the handshake has told more */
  link_view_lane(links[LINK_SENDER], 0, &view);
  assert_int_equal(view.state, LINK_LANE_UP);
  /* Two frames on the new epoch, which is lost then: what is said of the old one settles nothing,
   * neither does it give the chunks back. */
  assert_int_equal(link_receive_posted(links[LINK_RECEIVER], in, BULK, NULL, now_ns), 0);
  assert_int_equal(link_send_posted(links[LINK_SENDER], out, BULK, NULL, now_ns), 0);
  carry(LINK_SENDER); /* the REQUEST */
  carry(LINK_RECEIVER);
  assert_true(link_next_frame(links[LINK_SENDER], 0, &frame, now_ns));
  link_frame_written(links[LINK_SENDER], 0, now_ns);
  link_lane_lost(links[LINK_SENDER], 0, order.epoch, now_ns);
  fenced(0, 1, 0, 1);
  assert_int_equal(view_of(LINK_SENDER).chunks_requeued, 0);
  fenced(0, order.epoch, 0, 1);
  assert_int_equal(view_of(LINK_SENDER).chunks_requeued, 1);
  fenced(0, order.epoch, 0, 1); /* again */
  assert_int_equal(view_of(LINK_SENDER).chunks_requeued, 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void) {
  for (size_t at = 0; at < BULK; at++) {
    out[at] = (uint8_t)(at * 31 + at / 251);
  }
  const struct CMUnitTest tests[] = {
    TEST(who_waits_for_nothing_asks_nothing),
    TEST(a_peer_that_answers_may_take_its_time),
    TEST(a_silent_peer_is_told_apart),
    TEST(a_peer_that_was_stopped_goes_on),
    TEST(a_stopped_peer_has_more_time),
    TEST(a_peer_that_stays_stopped_is_given_up),
    TEST(our_own_stop_is_nobodys_silence),
    TEST(our_own_stop_is_no_time_without_lanes),
    TEST(a_lane_that_the_peer_closed_is_no_loss),
    TEST(a_black_hole_is_given_up),
    TEST(a_black_hole_costs_little_time),
    TEST(a_black_hole_is_found_without_others),
    TEST(when_all_are_silent_a_new_one_is_tried_soon),
    TEST(a_stopped_peer_costs_one_lane_and_no_more),
    TEST(a_path_that_takes_no_bytes_is_tried_less_and_less),
    TEST(giving_up_is_said),
    TEST(a_last_word_that_was_lost_is_said_again),
    TEST(without_a_lane_nothing_can_be_said),
    TEST(a_request_that_was_lost_is_repeated),
    TEST(a_stale_fence_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
