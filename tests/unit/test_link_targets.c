/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and direct lanes: where a NIC may write by itself, who is told, and when lanes that could
 * still read or write memory are closed. Frames are handed over by hand, one at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "net_plugin/link/link.h"
#include "tests/lib/unit.h"

#define LANES 2u
#define MS 1000000ull
#define BYTES 30000u

static struct link *ends[2]; /* by enum link_role */
static uint8_t *memory[2];
static uint8_t sent[BYTES], received[BYTES];
static const struct wire_target target = { 0x7000, BYTES, { 11, 22 } };
static uint64_t now_ns;
static uint32_t chunk_bytes, eager_bytes;
static bool has_checksums;

static void make(enum link_role role, unsigned target_keys) {
  struct link_config config = {
    .role = role,
    .lanes = LANES,
    .chunk_bytes = chunk_bytes,
    .eager_bytes = eager_bytes,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .target_keys = target_keys,
    .wants_checksums = has_checksums,
  };
  memory[role] = calloc(1, link_memory_bytes(&config));
  ends[role] = link_init(memory[role], &config, now_ns);
}

static void lane_up(unsigned lane, uint32_t epoch, bool is_direct) {
  uint64_t count = link_lane_fence(ends[LINK_RECEIVER], lane, epoch, now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(ends[LINK_RECEIVER], lane, epoch, 0, now_ns);
  link_lane_up(ends[LINK_SENDER], lane, epoch, count, now_ns);
  for (int role = 0; role < 2 && is_direct; role++) {
    link_lane_is_direct(ends[role], lane);
  }
}

static int set_up_sizes(uint32_t chunk, uint32_t eager) {
  now_ns = 0;
  chunk_bytes = chunk;
  eager_bytes = eager;
  for (unsigned i = 0; i < BYTES; i++) {
    sent[i] = (uint8_t)(i * 7 + i / 256);
  }
  memset(received, 0, sizeof received);
  make(LINK_SENDER, 2);
  make(LINK_RECEIVER, 2);
  lane_up(0, 1, true);
  return 0;
}

static int set_up(void **state) {
  (void)state;
  has_checksums = false;
  return set_up_sizes(8192, 64);
}

static int set_up_checked(void **state) {
  (void)state;
  has_checksums = true;
  return set_up_sizes(8192, 64);
}

static int set_up_large(void **state) {
  (void)state;
  has_checksums = false;
  return set_up_sizes(32768, 32768);
}

static int tear_down(void **state) {
  (void)state;
  free(memory[0]);
  free(memory[1]);
  return 0;
}

static int deliver(enum link_role from, unsigned lane, const struct link_frame *frame) {
  struct link *to = ends[from == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER];
  struct wire_header header;
  int error = wire_header_decode(frame->header, &header);
  if (!error) {
    error = link_frame_received(to, lane, &header, now_ns);
  }
  if (!error && wire_stream_bytes(&header) > 0) {
    memcpy(link_receive_buffer(to, lane), frame->payload, frame->length);
  } else if (!error) {
    assert_null(link_receive_buffer(to, lane));
  }
  return error ? error : link_frame_completed(to, lane, now_ns);
}

/* The next frame of this type is left in *frame; others are handed over. */
static void find_frame(enum link_role from, unsigned lane, enum wire_type type,
                       struct link_frame *frame) {
  while (link_next_frame(ends[from], lane, frame, now_ns)) {
    link_frame_written(ends[from], lane, now_ns);
    if (frame->header[1] == type) {
      return;
    }
    assert_int_equal(deliver(from, lane, frame), 0);
  }
  fail_msg("no frame of type %d", type);
}

/* A message of BYTES waits on both sides, and the sender knows the target of the receive. */
static void post_bytes(size_t bytes, const struct wire_target *given) {
  struct link_frame frame;
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, bytes, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_REQUEST, &frame);
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, given, now_ns), 0);
  find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
  assert_int_equal(deliver(LINK_RECEIVER, 0, &frame), 0);
}

static void post_both(const struct wire_target *given) {
  post_bytes(BYTES, given);
}

static void place(struct link_frame *frame) {
  assert_non_null(frame->target);
  assert_true(frame->target->address == target.address);
  memcpy(received + frame->offset, frame->payload, frame->length);
  wire_header_place(frame->header);
}

static void a_message_is_placed(void **state) {
  (void)state;
  struct link_completion completion;
  post_both(&target);
  for (uint64_t at = 0; at < BYTES;) {
    struct link_frame frame;
    find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
    assert_true(frame.offset == at);
    assert_ptr_equal(frame.memory, sent);
    assert_int_equal(frame.target->keys[0], 11);
    assert_int_equal(frame.target->keys[1], 22);
    place(&frame);
    at += frame.length;
    assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  }
  assert_true(link_next_completion(ends[LINK_RECEIVER], &completion));
  assert_int_equal(completion.bytes, BYTES);
  assert_memory_equal(sent, received, BYTES);
}

/* Pieces that take no buffer need not be small. Without a target they are cut as ever. */
static void placed_pieces_are_large(void **state) {
  (void)state;
  struct link_frame frame;
  lane_up(1, 1, true);
  post_both(&target);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_int_equal(frame.length, BYTES);
}

static void pieces_without_target_are_chunks(void **state) {
  (void)state;
  struct link_frame frame;
  post_both(NULL);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_int_equal(frame.length, 8192);
}

/* One message there, which takes a while, and its acknowledgement back. Was it a copy that was
 * sent? */
static bool sends_copy(uint64_t took_ns) {
  struct link_frame frame;
  struct link_completion completion;
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, BYTES, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  bool is_copy = !frame.memory;
  assert_int_equal(link_next_completion(ends[LINK_SENDER], &completion), is_copy);
  place(&frame);
  now_ns += took_ns;
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  if (!is_copy) {
    find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
    assert_int_equal(deliver(LINK_RECEIVER, 0, &frame), 0);
    assert_true(link_next_completion(ends[LINK_SENDER], &completion));
  }
  return is_copy;
}

static void messages_that_take_long_are_copied(void **state) {
  (void)state;
  struct link_frame frame;
  for (int i = 0; i < 8; i++) {
    assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  }
  find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
  assert_int_equal(deliver(LINK_RECEIVER, 0, &frame), 0);
  assert_false(sends_copy(1 * MS));
  assert_false(sends_copy(1 * MS));
  assert_false(sends_copy(50 * MS));
  assert_true(sends_copy(50 * MS));
}

/* The first message goes as a stream; from then on the sender is told of receives at once, since it
 * could place another one. */
static void what_could_be_placed_finds_a_grant(void **state) {
  (void)state;
  struct link_frame frame;
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  assert_false(link_next_frame(ends[LINK_RECEIVER], 0, &frame, now_ns));
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, BYTES, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.target);
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
  assert_int_equal(deliver(LINK_RECEIVER, 0, &frame), 0);
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, BYTES, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.target);
}

static void expect_no_target(void) {
  struct link_frame frame;
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.target);
}

static void a_receive_without_target_gets_payloads(void **state) {
  (void)state;
  post_both(NULL);
  expect_no_target();
}

static void a_target_without_room_is_not_used(void **state) {
  (void)state;
  struct wire_target small = target;
  small.bytes = BYTES - 1;
  post_both(&small);
  expect_no_target();
}

static void lines_that_are_polled_are_not_placed(void **state) {
  (void)state;
  memset(sent, 1, BYTES / 128 * 128); /* LL128's flag at the end of each line */
  post_bytes(BYTES / 128 * 128, &target);
  expect_no_target();
}

/* LL: each word of 8 bytes tells by itself that it has come. */
static void fill_words(void) {
  for (size_t at = 0; at + 8 <= BYTES; at += 8) {
    bytes_put_le32(sent + at, (uint32_t)at);
    bytes_put_le32(sent + at + 4, 7);
  }
}

static void words_that_are_polled_are_placed(void **state) {
  (void)state;
  fill_words();
  post_bytes(BYTES / 16 * 16, &target);
  struct link_frame frame;
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.target);
  assert_true(frame.length <= WIRE_MAX_POLLED_BYTES);
  struct wire_header header;
  wire_header_decode(frame.header, &header);
  assert_false(header.flags & WIRE_IS_POLLED);
}

static void words_with_checksums_are_not_placed(void **state) {
  (void)state;
  fill_words();
  post_bytes(BYTES / 16 * 16, &target);
  expect_no_target();
}

static void only_direct_lanes_get_targets(void **state) {
  (void)state;
  struct link_frame frame;
  lane_up(1, 1, false);
  post_both(&target);
  find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_null(frame.target);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_non_null(frame.target);
}

static void a_copy_is_in_the_links_memory(void **state) {
  (void)state;
  struct link_frame frame;
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, 8, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  assert_null(frame.memory);
  assert_true((const uint8_t *)frame.payload > memory[LINK_SENDER]);
}

/* ---- told again ---- */

static void targets_are_told_again_when_a_lane_is_lost(void **state) {
  (void)state;
  struct link_frame frame;
  struct wire_header header;
  lane_up(1, 1, true);
  struct wire_target other = target;
  for (unsigned i = 0; i < 3; i++) {
    other.address = 0x1000 * (i + 1);
    assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &other, now_ns), 0);
  }
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, BYTES, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_REQUEST, &frame);
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame); /* lost with its lane */
  link_lane_lost(ends[LINK_RECEIVER], 0, 1, now_ns);
  link_lane_lost(ends[LINK_SENDER], 0, 1, now_ns);
  find_frame(LINK_RECEIVER, 1, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.total, 3);
  assert_int_equal(header.length, 3 * wire_target_bytes(2));
  assert_int_equal(deliver(LINK_RECEIVER, 1, &frame), 0);
  find_frame(LINK_SENDER, 1, WIRE_DATA, &frame);
  assert_true(frame.target && frame.target->address == 0x1000);
}

static void what_has_landed_is_not_told_again(void **state) {
  (void)state;
  struct link_frame frame;
  struct wire_header header;
  a_message_is_placed(state);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  lane_up(1, 1, true); /* a lane that comes tells all */
  find_frame(LINK_RECEIVER, 1, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.message, 2);
  assert_int_equal(header.total, 1);
}

/* ---- frames that must not be ---- */

static void expect_refused(uint64_t message, unsigned lane) {
  struct wire_header header = {
    .type = WIRE_DATA, .flags = WIRE_IS_PLACED, .length = 100, .message = message, .total = 100
  };
  assert_int_equal(link_frame_received(ends[LINK_RECEIVER], lane, &header, now_ns), -EPROTO);
}

static void nothing_is_placed_without_a_grant(void **state) {
  (void)state;
  expect_refused(0, 0);
}

static void nothing_is_placed_through_other_lanes(void **state) {
  (void)state;
  lane_up(1, 1, false);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  expect_refused(0, 1);
}

static void windows_that_do_not_add_up_are_refused(void **state) {
  (void)state;
  static const struct {
    uint64_t message, total;
    uint32_t length;
  } windows[] = {
    { 3, 1, 16 },                    /* less than a target */
    { 3, 1, 24 + 8 },                /* half an acknowledgement */
    { 3, 1, 24 + 16 * (LANES + 1) }, /* more than there are lanes */
    { 3, 0, 24 },                    /* targets that are not counted */
  };
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    tear_down(NULL);
    set_up(NULL);
    struct wire_header header = {
      .type = WIRE_WINDOW,
      .length = windows[i].length,
      .message = windows[i].message,
      .total = windows[i].total,
    };
    assert_int_equal(link_frame_received(ends[LINK_SENDER], 0, &header, now_ns), -EPROTO);
  }
}

static void a_link_without_targets_is_told_none(void **state) {
  tear_down(state);
  make(LINK_SENDER, 0);
  make(LINK_RECEIVER, 0);
  lane_up(0, 1, false);
  struct link_frame frame;
  struct wire_header header;
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, BYTES, NULL, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_REQUEST, &frame);
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], received, BYTES, &target, now_ns), 0);
  find_frame(LINK_RECEIVER, 0, WIRE_WINDOW, &frame);
  assert_int_equal(wire_header_decode(frame.header, &header), 0);
  assert_int_equal(header.total, 0);
  assert_int_equal(header.length, 0);
  header = (struct wire_header){ .type = WIRE_WINDOW, .length = 24, .message = 1, .total = 1 };
  assert_int_equal(link_frame_received(ends[LINK_SENDER], 0, &header, now_ns), -EPROTO);
}

/* ---- the end ---- */

static bool is_ordered_closed(enum link_role role) {
  struct link_order order;
  while (link_next_order(ends[role], &order, now_ns)) {
    if (order.kind == LINK_ORDER_CLOSE && order.lane == 0 && order.epoch == 1) {
      return true;
    }
  }
  return false;
}

static void a_receiver_who_leaves_early_stops_writers(void **state) {
  (void)state;
  post_both(&target);
  link_user_detached(ends[LINK_RECEIVER], now_ns);
  assert_true(is_ordered_closed(LINK_RECEIVER));
}

static void a_receiver_who_has_all_keeps_its_lanes(void **state) {
  a_message_is_placed(state);
  link_user_detached(ends[LINK_RECEIVER], now_ns);
  assert_false(is_ordered_closed(LINK_RECEIVER));
}

static void a_sender_who_leaves_early_stops_readers(void **state) {
  (void)state;
  struct link_frame frame;
  post_both(&target);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame); /* written, not acknowledged */
  link_user_detached(ends[LINK_SENDER], now_ns);
  assert_true(is_ordered_closed(LINK_SENDER));
}

static void a_sender_whose_copies_are_under_way_keeps_its_lanes(void **state) {
  (void)state;
  struct link_frame frame;
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, 8, sent, now_ns), 0);
  find_frame(LINK_SENDER, 0, WIRE_DATA, &frame);
  link_user_detached(ends[LINK_SENDER], now_ns);
  assert_false(is_ordered_closed(LINK_SENDER));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(a_message_is_placed),
    TEST(placed_pieces_are_large),
    TEST(pieces_without_target_are_chunks),
    cmocka_unit_test_setup_teardown(messages_that_take_long_are_copied, set_up_large, tear_down),
    cmocka_unit_test_setup_teardown(what_could_be_placed_finds_a_grant, set_up_large, tear_down),
    TEST(a_receive_without_target_gets_payloads),
    TEST(a_target_without_room_is_not_used),
    TEST(lines_that_are_polled_are_not_placed),
    TEST(words_that_are_polled_are_placed),
    cmocka_unit_test_setup_teardown(words_with_checksums_are_not_placed, set_up_checked, tear_down),
    TEST(only_direct_lanes_get_targets),
    TEST(a_copy_is_in_the_links_memory),
    TEST(targets_are_told_again_when_a_lane_is_lost),
    TEST(what_has_landed_is_not_told_again),
    TEST(nothing_is_placed_without_a_grant),
    TEST(nothing_is_placed_through_other_lanes),
    TEST(windows_that_do_not_add_up_are_refused),
    TEST(a_link_without_targets_is_told_none),
    TEST(a_receiver_who_leaves_early_stops_writers),
    TEST(a_receiver_who_has_all_keeps_its_lanes),
    TEST(a_sender_who_leaves_early_stops_readers),
    TEST(a_sender_whose_copies_are_under_way_keeps_its_lanes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
