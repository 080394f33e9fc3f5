/* SPDX-License-Identifier: Apache-2.0 */
/* Two links joined by byte streams that this test delivers, splits and cuts as it likes. What
 * random schedules can show is left to tests/sim; here is what must hold at every single byte. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define LANES 2u
#define EAGER 64u
#define MS 1000000ull
#define MESSAGES 6u
#define LARGEST 10000u

/* Sizes that need one frame, several, and none. */
static const size_t sizes[MESSAGES] = { 8, 10000, 0, 64, 9000, 5000 };

struct stream {
  uint8_t bytes[1 << 17];
  size_t written, read;
};

struct reader {
  uint8_t bytes[WIRE_HEADER_BYTES];
  struct wire_header header;
  size_t got; /* of header and payload */
};

struct side {
  struct link *link;
  struct stream out[LANES];
  struct reader readers[LANES];
  unsigned completed;
};

static struct side ends[2]; /* by enum link_role */
static uint8_t *memory[2];
static uint8_t contents[MESSAGES][LARGEST];
static uint8_t sent[MESSAGES][LARGEST], received[MESSAGES][LARGEST];
static bool has_lane[LANES];
static uint64_t now_ns;

/* ---- the two ends ---- */

static struct link_config config_of(enum link_role role) {
  return (struct link_config){
    .role = role,
    .policy = { .lanes = LANES, .chunk_bytes = 4096 },
    .eager_bytes = EAGER,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
  };
}

static void lane_up(unsigned lane, uint32_t epoch) {
  uint64_t count = link_lane_fence(ends[LINK_RECEIVER].link, lane, epoch, now_ns);
  assert_true(count != UINT64_MAX);
  for (int role = 0; role < 2; role++) {
    ends[role].out[lane].written = ends[role].out[lane].read = 0;
    ends[role].readers[lane].got = 0;
  }
  link_lane_up(ends[LINK_RECEIVER].link, lane, epoch, 0, now_ns);
  link_lane_up(ends[LINK_SENDER].link, lane, epoch, count, now_ns);
  has_lane[lane] = true;
}

/* Once: there is a set_up for every byte at which something is cut. */
static int make_contents(void **state) {
  (void)state;
  for (unsigned i = 0; i < MESSAGES; i++) {
    for (size_t at = 0; at < sizes[i]; at++) {
      contents[i][at] = (uint8_t)(i * 31 + at * 7 + at / 256);
    }
  }
  return 0;
}

static int set_up(void **state) {
  (void)state;
  now_ns = 0;
  memset(received, 0, sizeof received);
  for (int role = 0; role < 2; role++) {
    struct link_config config = config_of((enum link_role)role);
    size_t bytes = link_memory_bytes(&config);
    if (memory[role] == NULL) {
      memory[role] = calloc(1, bytes);
    }
    /* The receiver's last part takes what nobody reads: no need to clear 4 MiB for each cut. */
    memset(memory[role], 0, bytes - (role == LINK_RECEIVER ? WIRE_MAX_CHUNK_BYTES : 0));
    ends[role].link = link_init(memory[role], &config, 0);
    ends[role].completed = 0;
  }
  memcpy(sent, contents, sizeof sent);
  for (unsigned lane = 0; lane < LANES; lane++) {
    lane_up(lane, 1);
  }
  return 0;
}

static void write_all(struct side *side) {
  int picked;
  uint64_t writable = 0;
  for (unsigned lane = 0; lane < LANES; lane++) {
    writable |= has_lane[lane] ? lane_bit(lane) : 0;
  }
  /* Lanes are offered in turn, or one lane would do for all that is sent here. */
  static unsigned turns;
  for (;;) {
    uint64_t offered = writable & 1ull << turns++ % LANES;
    picked = pick_lane(side->link, offered != 0 ? offered : writable);
    picked = picked >= 0 ? picked : pick_lane(side->link, writable);
    if (picked < 0) {
      break;
    }
    struct link_frame frame;
    struct stream *out = &side->out[picked];
    assert_true(next_frame(side->link, (unsigned)picked, &frame, now_ns));
    assert_true(out->written + WIRE_HEADER_BYTES + frame.length <= sizeof out->bytes);
    memcpy(out->bytes + out->written, frame.header, WIRE_HEADER_BYTES);
    if (frame.length > 0) {
      memcpy(out->bytes + out->written + WIRE_HEADER_BYTES, frame.payload, frame.length);
    }
    out->written += WIRE_HEADER_BYTES + frame.length;
    link_frame_taken(side->link, (unsigned)picked, now_ns);
  }
}

/* Delivers `count` bytes of the lane in one piece each for header and payload. */
static int read_some(struct side *side, struct side *peer, unsigned lane, size_t count) {
  struct stream *in = &peer->out[lane];
  struct reader *reader = &side->readers[lane];
  while (count > 0) {
    bool is_header = reader->got < WIRE_HEADER_BYTES;
    size_t end = WIRE_HEADER_BYTES + (is_header ? 0 : reader->header.length);
    size_t piece = end - reader->got < count ? end - reader->got : count;
    uint8_t *to = is_header ? reader->bytes : link_receive_buffer(side->link, lane);
    if (to == NULL) {
      return -ESTALE;
    }
    memcpy(to + (is_header ? reader->got : reader->got - WIRE_HEADER_BYTES), in->bytes + in->read,
           piece);
    in->read += piece;
    reader->got += piece;
    count -= piece;
    int error = 0;
    if (reader->got == WIRE_HEADER_BYTES && is_header) {
      error = wire_header_decode(reader->bytes, &reader->header);
      error = error != 0 ? error : link_frame_received(side->link, lane, &reader->header, now_ns);
    }
    if (error == 0 && reader->got >= WIRE_HEADER_BYTES &&
        reader->got == WIRE_HEADER_BYTES + reader->header.length) {
      reader->got = 0;
      error = link_frame_completed(side->link, lane, now_ns);
    }
    if (error != 0) {
      return error;
    }
  }
  return 0;
}

/* Takes what is there, in pieces of at most `piece` bytes. */
static void read_all(struct side *side, struct side *peer, size_t piece) {
  for (unsigned lane = 0; lane < LANES; lane++) {
    while (has_lane[lane] && peer->out[lane].read < peer->out[lane].written) {
      size_t left = peer->out[lane].written - peer->out[lane].read;
      assert_int_equal(read_some(side, peer, lane, left < piece ? left : piece), 0);
      link_check(side->link);
    }
  }
}

static void take_completions(struct side *side) {
  uint64_t completion;
  while (link_next_completion(side->link, &completion)) {
    assert_true(completion == sizes[side->completed]);
    side->completed++;
  }
}

/* One round of both ends; a millisecond passes, so that what is delayed is told. */
static void turn(size_t piece) {
  struct side *sender = &ends[LINK_SENDER], *receiver = &ends[LINK_RECEIVER];
  struct link_order order;
  while (link_next_order(sender->link, &order, now_ns)) {
    if (order.kind == LINK_ORDER_OPEN) {
      lane_up(order.lane, order.epoch);
    }
  }
  while (link_next_order(receiver->link, &order, now_ns)) {
  }
  write_all(sender);
  read_all(receiver, sender, piece);
  take_completions(receiver);
  write_all(receiver);
  read_all(sender, receiver, piece);
  take_completions(sender);
  now_ns += MS;
  link_time_passed(sender->link, now_ns);
  link_time_passed(receiver->link, now_ns);
}

static void post_all(void) {
  for (unsigned i = 0; i < MESSAGES; i++) {
    assert_int_equal(
        link_receive_posted(ends[LINK_RECEIVER].link, received[i], LARGEST, NULL, now_ns), 0);
    assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[i], sizes[i], NULL, now_ns), 0);
  }
}

static void finish_and_compare(size_t piece) {
  for (int i = 0; i < 200 && ends[LINK_RECEIVER].completed < MESSAGES; i++) {
    turn(piece);
  }
  for (int i = 0; i < 20; i++) {
    turn(piece); /* acknowledgements */
  }
  assert_int_equal(ends[LINK_RECEIVER].completed, MESSAGES);
  assert_int_equal(ends[LINK_SENDER].completed, MESSAGES);
  for (unsigned i = 0; i < MESSAGES; i++) {
    assert_memory_equal(received[i], sent[i], sizes[i]);
  }
  assert_int_equal(link_status(ends[LINK_SENDER].link), 0);
  assert_int_equal(link_status(ends[LINK_RECEIVER].link), 0);
}

/* ---- splits and cuts ---- */

UNIT_TEST_WITH(every_piece_size, set_up, NULL) {
  for (size_t piece = 1; piece <= 2 * WIRE_HEADER_BYTES; piece++) {
    post_all();
    finish_and_compare(piece);
    set_up(state);
  }
}

/* Cuts a lane after exactly `count` bytes of what one end wrote arrived; the rest is lost.
 * false: so many were never written. */
static bool cut_after(enum link_role writer, unsigned lane, size_t count) {
  struct side *from = &ends[writer],
              *to = &ends[writer == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER];
  size_t delivered = 0;
  for (int i = 0; i < 30; i++) {
    write_all(&ends[LINK_SENDER]);
    if (writer == LINK_RECEIVER) {
      read_all(&ends[LINK_RECEIVER], &ends[LINK_SENDER], SIZE_MAX);
      take_completions(&ends[LINK_RECEIVER]);
      link_time_passed(ends[LINK_RECEIVER].link, now_ns);
      write_all(&ends[LINK_RECEIVER]);
    }
    size_t there = from->out[lane].written - from->out[lane].read;
    size_t piece = there < count - delivered ? there : count - delivered;
    assert_int_equal(read_some(to, from, lane, piece), 0);
    delivered += piece;
    if (delivered == count) {
      uint32_t epoch = 1;
      has_lane[lane] = false;
      link_lane_lost(ends[LINK_SENDER].link, lane, epoch, now_ns);
      link_lane_lost(ends[LINK_RECEIVER].link, lane, epoch, now_ns);
      link_check(ends[LINK_SENDER].link);
      link_check(ends[LINK_RECEIVER].link);
      return true;
    }
    turn(SIZE_MAX);
  }
  return false;
}

static void cut_everywhere(void **state, enum link_role writer, unsigned lane, size_t at_least) {
  size_t cuts = 0;
  for (bool was_cut = true; was_cut; cuts++) {
    set_up(state);
    post_all();
    was_cut = cut_after(writer, lane, cuts);
    finish_and_compare(SIZE_MAX);
  }
  assert_true(cuts > at_least);
}

UNIT_TEST_WITH(a_cut_at_every_byte_of_the_data, set_up, NULL) {
  cut_everywhere(state, LINK_SENDER, 0, 9000);
  cut_everywhere(state, LINK_SENDER, 1, 9000);
}

UNIT_TEST_WITH(a_cut_at_every_byte_of_the_windows, set_up, NULL) {
  cut_everywhere(state, LINK_RECEIVER, 0, WIRE_HEADER_BYTES);
  cut_everywhere(state, LINK_RECEIVER, 1, WIRE_HEADER_BYTES);
}

/* ---- single rules ---- */

UNIT_TEST_WITH(small_messages_need_no_receive, set_up, NULL) {
  assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[0], 8, NULL, 0), 0);
  write_all(&ends[LINK_SENDER]);
  take_completions(&ends[LINK_SENDER]); /* written is enough */
  assert_int_equal(ends[LINK_SENDER].completed, 1);
  turn(SIZE_MAX);
  assert_int_equal(ends[LINK_RECEIVER].completed, 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[0], 8, NULL, now_ns), 0);
  take_completions(&ends[LINK_RECEIVER]); /* at once */
  assert_int_equal(ends[LINK_RECEIVER].completed, 1);
  assert_memory_equal(received[0], sent[0], 8);
}

UNIT_TEST_WITH(large_messages_wait_for_credit, set_up, NULL) {
  struct link_view view;
  assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[0], 8, NULL, 0), 0);
  assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[1], sizes[1], NULL, 0), 0);
  turn(SIZE_MAX);
  turn(SIZE_MAX);
  link_view(ends[LINK_SENDER].link, &view);
  assert_true(view.stalls == 1 && view.credited == 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[0], 8, NULL, now_ns), 0);
  assert_int_equal(
      link_receive_posted(ends[LINK_RECEIVER].link, received[1], LARGEST, NULL, now_ns), 0);
  turn(SIZE_MAX);
  turn(SIZE_MAX);
  turn(SIZE_MAX);
  assert_int_equal(ends[LINK_RECEIVER].completed, 2);
  assert_memory_equal(received[1], sent[1], sizes[1]);
}

UNIT_TEST_WITH(a_message_that_is_too_large_fails_the_link, set_up, NULL) {
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[0], 100, NULL, 0), 0);
  assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[1], 101, NULL, 0), 0);
  write_all(&ends[LINK_RECEIVER]);
  write_all(&ends[LINK_SENDER]);
  int error = 0;
  for (unsigned i = 0; i < 2 * LANES && error == 0; i++) {
    struct stream *in = &ends[LINK_SENDER].out[i % LANES];
    error = read_some(&ends[LINK_RECEIVER], &ends[LINK_SENDER], i % LANES, in->written - in->read);
    write_all(&ends[LINK_RECEIVER]);
    read_all(&ends[LINK_SENDER], &ends[LINK_RECEIVER], SIZE_MAX);
    write_all(&ends[LINK_SENDER]);
  }
  assert_int_equal(error, -EMSGSIZE);
  assert_int_equal(link_status(ends[LINK_RECEIVER].link), -EMSGSIZE);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[1], 1, NULL, 0),
                   -EMSGSIZE);
}

UNIT_TEST_WITH(a_sender_closes_after_everything_is_delivered, set_up, NULL) {
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[0], 8, NULL, 0), 0);
  assert_int_equal(link_send_posted(ends[LINK_SENDER].link, sent[0], 8, NULL, 0), 0);
  link_user_detached(ends[LINK_SENDER].link, 0);
  assert_false(link_is_finished(ends[LINK_SENDER].link));
  for (int i = 0; i < 5; i++) {
    turn(SIZE_MAX);
  }
  assert_true(link_is_finished(ends[LINK_SENDER].link));
  assert_int_equal(ends[LINK_RECEIVER].completed, 1);
  assert_true(link_is_peer_closed(ends[LINK_RECEIVER].link));
  assert_int_equal(link_status(ends[LINK_RECEIVER].link), 0);
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[1], 8, NULL, 0),
                   -ECONNRESET);
}

UNIT_TEST_WITH(a_close_is_a_reset_for_a_waiting_receiver, set_up, NULL) {
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER].link, received[0], 8, NULL, 0), 0);
  link_user_detached(ends[LINK_SENDER].link, 0);
  turn(SIZE_MAX);
  assert_int_equal(link_status(ends[LINK_RECEIVER].link), -ECONNRESET);
}

UNIT_TEST_WITH(ping_is_answered_on_its_lane, set_up, NULL) {
  struct wire_header ping = { .type = WIRE_PING, .message = 77 }, pong;
  struct link_frame frame;
  struct link *link = ends[LINK_RECEIVER].link;
  assert_int_equal(link_frame_received(link, 1, &ping, 0), 0);
  assert_null(link_receive_buffer(link, 1));
  assert_int_equal(link_frame_completed(link, 1, 0), 0);
  assert_int_equal(pick_lane(link, 1), -1);
  assert_int_equal(pick_lane(link, 3), 1);
  assert_true(next_frame(link, 1, &frame, 0));
  assert_int_equal(wire_header_decode(frame.header, &pong), 0);
  assert_int_equal(pong.type, WIRE_PONG);
  assert_true(pong.message == 77);
}

UNIT_TEST_WITH(a_wrong_checksum_loses_the_lane, set_up, NULL) {
  struct link *link = ends[LINK_RECEIVER].link;
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC, 8, 0, 0, 8, 0xBAD, 0, { 0 } };
  struct link_lane_view view;
  assert_int_equal(link_frame_received(link, 0, &data, 0), 0);
  memset(link_receive_buffer(link, 0), 1, 8);
  assert_int_equal(link_frame_completed(link, 0, 0), -EBADMSG);
  link_view_lane(link, 0, &view);
  assert_int_equal(view.state, LINK_LANE_LOST);
  assert_null(link_receive_buffer(link, 0));
  assert_int_equal(link_frame_received(link, 0, &data, 0), -ESTALE);
  link_check(link);
}

/* A kernel may be reading: nothing shows before all of the frame is there. */
UNIT_TEST_WITH(a_polled_frame_shows_as_a_whole, set_up, NULL) {
  struct side *to = &ends[LINK_RECEIVER], *from = &ends[LINK_SENDER];
  const uint8_t untouched[LARGEST] = { 0 };
  for (size_t at = 120; at < 4096; at += 128) {
    memset(sent[0] + at, 7, 8);
  }
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(link_receive_posted(to->link, received[i], LARGEST, NULL, 0), 0);
  }
  write_all(to);
  read_all(from, to, SIZE_MAX);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(link_send_posted(from->link, sent[0], 4096, NULL, 0), 0);
    has_lane[!i] = false; /* a lane for each */
    write_all(from);
    has_lane[!i] = true;
    assert_int_equal(read_some(to, from, i, WIRE_HEADER_BYTES + 4095), 0);
    assert_memory_equal(received[i], untouched, LARGEST);
  }
  assert_int_equal(read_some(to, from, 0, 1), 0);
  assert_memory_equal(received[0], sent[0], 4096);
  link_user_detached(to->link, now_ns);
  assert_int_equal(read_some(to, from, 1, 1), 0);
  assert_memory_equal(received[1], untouched, LARGEST);
}

UNIT_TEST_WITH(a_wrong_polled_frame_never_shows, set_up, NULL) {
  struct link *link = ends[LINK_RECEIVER].link;
  struct wire_header data = {
    WIRE_DATA, WIRE_HAS_CRC | WIRE_IS_LL, 128, 0, 0, 128, 0xBAD, 0, { 0 }
  };
  uint8_t untouched[128] = { 0 };
  assert_int_equal(link_receive_posted(link, received[0], LARGEST, NULL, 0), 0);
  assert_int_equal(link_frame_received(link, 0, &data, 0), 0);
  link_check(link);
  memset(link_receive_buffer(link, 0), 1, 128);
  assert_int_equal(link_frame_completed(link, 0, 0), -EBADMSG);
  assert_memory_equal(received[0], untouched, sizeof untouched);
  link_check(link);
}

/* FENCE came over another lane, before the handshake of the epoch that it ends. */
UNIT_TEST_WITH(a_reconnect_that_was_fenced_before_is_refused, set_up, NULL) {
  struct link *link = ends[LINK_RECEIVER].link;
  struct wire_header fence = { .type = WIRE_FENCE, .message = 1, .offset = 2 };
  assert_int_equal(link_frame_received(link, 0, &fence, now_ns), 0);
  assert_int_equal(link_frame_completed(link, 0, now_ns), 0);
  assert_true(link_lane_fence(link, 1, 2, now_ns) == UINT64_MAX);
  assert_true(link_lane_fence(link, 1, 3, now_ns) == 0);
}

UNIT_TEST_WITH(silence_without_lanes_times_out, set_up, NULL) {
  struct link *link = ends[LINK_SENDER].link;
  for (unsigned lane = 0; lane < LANES; lane++) {
    link_lane_lost(link, lane, 1, 5 * MS);
  }
  link_time_passed(link, 1005 * MS - 1);
  assert_int_equal(link_status(link), 0);
  link_time_passed(link, 1005 * MS);
  assert_int_equal(link_status(link), -ETIMEDOUT);
  assert_true(link_next_deadline_ns(link) == LINK_NO_DEADLINE);
  assert_int_equal(pick_lane(link, UINT64_MAX), -1);
}

UNIT_TEST(impossible_configurations_have_no_size) {
  struct link_config config = config_of(LINK_SENDER);
  assert_true(link_memory_bytes(&config) > 0);
  config.policy.lanes = 0;
  assert_int_equal(link_memory_bytes(&config), 0);
  config.policy.lanes = WIRE_MAX_LANES + 1;
  assert_int_equal(link_memory_bytes(&config), 0);
  config = config_of(LINK_SENDER);
  config.eager_bytes = config.policy.chunk_bytes + 1;
  assert_int_equal(link_memory_bytes(&config), 0);
  config = config_of(LINK_SENDER);
  config.policy.chunk_bytes = WIRE_MAX_CHUNK_BYTES + 1;
  assert_int_equal(link_memory_bytes(&config), 0);
  config = config_of(LINK_SENDER);
  config.eager_slots = LINK_WINDOW / 2 + 1;
  assert_int_equal(link_memory_bytes(&config), 0);
}

int main(void) {
  int failed = unit_run(make_contents, NULL);
  free(memory[LINK_SENDER]);
  free(memory[LINK_RECEIVER]);
  return failed;
}
