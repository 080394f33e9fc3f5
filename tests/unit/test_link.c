/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's honest peers and random lanes do not show of a link. Any frames at random,
 * and any bytes as a compressed chunk: tests/fuzz/fuzz_link.c; what honest peers send over bad
 * lanes: tests/sim. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/hash.h"
#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/tensors.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

/* ---- frames that no honest peer would send, which are told ---- */

static struct link *open_receiver(void) {
  timed_begin(2);
  return timed.links[LINK_RECEIVER];
}

TEST(a_message_that_is_too_large_fails_the_link) {
  struct link *link = open_receiver();
  struct wire_header data = { .type = WIRE_DATA, .length = 101, .total = 101 };
  assert_int_equal(link_receive_posted(link, timed.in, 100, NULL, timed.now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), -EMSGSIZE);
  assert_int_equal(link_status(link), -EMSGSIZE);
  assert_int_equal(link_receive_posted(link, timed.in, 1, NULL, timed.now_ns), -EMSGSIZE);
}

TEST(a_wrong_checksum_loses_the_lane) {
  struct link *link = open_receiver();
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC, 8, 0, 0, 8, 0xBAD, 0, 0 };
  struct link_lane_view view;
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), 0);
  memset(link_receive_buffer(link, 0), 1, 8);
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), -EBADMSG);
  link_view_lane(link, 0, &view);
  assert_int_equal(view.state, LINK_LANE_LOST);
  assert_null(link_receive_buffer(link, 0));
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), -ESTALE);
  link_check(link);
}

/* A kernel may be reading there. */
TEST(a_wrong_polled_frame_never_shows) {
  struct link *link = open_receiver();
  const uint8_t untouched[128] = { 0 };
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC | WIRE_IS_LL, 128, 0, 0, 128, 0xBAD, 0, 0 };
  memset(timed.in, 0, TIMED_BULK);
  assert_int_equal(link_receive_posted(link, timed.in, TIMED_BULK, NULL, timed.now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, timed.now_ns), 0);
  link_check(link);
  memset(link_receive_buffer(link, 0), 1, 128);
  assert_memory_equal(timed.in, untouched, sizeof untouched); /* nor before all of it is there */
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), -EBADMSG);
  assert_memory_equal(timed.in, untouched, sizeof untouched);
  link_check(link);
}

/* CLOSED came over another lane, before the handshake of the epoch that it ends. */
TEST(a_reconnect_that_was_closed_before_is_refused) {
  struct link *link = open_receiver();
  struct wire_header closed = { .type = WIRE_CLOSED, .message = 1, .offset = 2 };
  assert_int_equal(link_frame_received(link, 0, &closed, timed.now_ns), 0);
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), 0);
  assert_false(link_lane_fence(link, 1, 2, timed.now_ns));
  assert_true(link_lane_fence(link, 1, 3, timed.now_ns));
  assert_false(link_lane_fence(link, 0, 1, timed.now_ns)); /* it is up with that one */
}

static int carry(struct link *link, unsigned lane, const struct wire_header *header) {
  int result = link_frame_received(link, lane, header, timed.now_ns);
  return result ? result : link_frame_completed(link, lane, timed.now_ns);
}

TEST(a_number_lands_once_and_none_that_is_too_far_ahead) {
  struct link *link = open_receiver();
  struct wire_header data = { .type = WIRE_DATA, .length = 8, .total = 8 };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(link_receive_posted(link, timed.in, 8, NULL, timed.now_ns), 0);
  }
  assert_int_equal(carry(link, 1, &data), 0);
  assert_int_equal(carry(link, 0, &data), 0);
  struct link_view view = timed_view(LINK_RECEIVER);
  assert_int_equal(view.counts.duplicates, 1);
  assert_int_equal(view.completed, 1);
  data.message = 1;
  data.number = 1 + LINK_FLIGHT;
  assert_int_equal(carry(link, 1, &data), -EPROTO);
  data.number = LINK_FLIGHT;
  assert_int_equal(carry(link, 0, &data), 0);
  view = timed_view(LINK_RECEIVER);
  assert_int_equal(view.counts.duplicates, 1);
  assert_int_equal(view.completed, 2);
  link_check(link);
}

/* ---- where a chunk's number is not enough: what a lost RDMA lane carried, what an old epoch says,
 * and a damaged copy ---- */

static struct link *sender(void) {
  return timed.links[LINK_SENDER];
}

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
TEST(a_damaged_copy_spoils_nothing) {
  static uint8_t good[4096], bad[4096], user[4096];
  struct link *link = open_receiver();
  memset(good, 'g', sizeof good);
  memset(bad, 'b', sizeof bad);
  memset(user, 0, sizeof user);
  struct wire_header header = { .type = WIRE_DATA,
                                .flags = WIRE_HAS_CRC,
                                .length = sizeof good,
                                .total = sizeof good,
                                .payload_crc = hash_crc32c(0, good, sizeof good) };
  assert_int_equal(link_receive_posted(link, user, sizeof user, NULL, timed.now_ns), 0);
  for (unsigned lane = 0; lane < 2; lane++) {
    assert_int_equal(link_frame_received(link, lane, &header, timed.now_ns), 0);
    link_check(link);
  }
  memcpy(link_receive_buffer(link, 1), good, sizeof good);
  memcpy(link_receive_buffer(link, 0), bad, sizeof bad / 2);
  assert_int_equal(link_frame_completed(link, 1, timed.now_ns), 0);
  link_check(link);
  assert_memory_equal(user, good, sizeof user);
  memcpy((uint8_t *)link_receive_buffer(link, 0) + sizeof bad / 2, bad, sizeof bad / 2);
  assert_int_equal(link_frame_completed(link, 0, timed.now_ns), 0); /* nobody needs it */
  assert_memory_equal(user, good, sizeof user);
}

/* ---- messages that 31 and 32 bits do not count: each byte goes to its place, once. Nothing is
 * copied: frames are handed over as addresses of memory that is reserved, not had ---- */

#define LONGEST ((1ull << 32) + 4)
#define LONG_CHUNK (1u << 20)

static uint8_t *from, *to;
static uint64_t landed;

static uint8_t *reserve(void) {
  void *memory = mmap(NULL, LONGEST, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert_true(memory != MAP_FAILED);
  return memory;
}

/* Hands over what one side has to say. A data frame comes from where the message has it, and goes
 * to the same place there. */
static void hand_over(enum link_role role) {
  struct link *side = timed.links[role], *peer = timed.links[timed_other(role)];
  while (pick_lane(side, 1) == 0) {
    struct link_frame frame;
    struct wire_header header;
    assert_true(next_frame(side, 0, &frame, timed.now_ns));
    assert_int_equal(wire_header_decode(frame.header, &header), 0);
    assert_int_equal(link_frame_received(peer, 0, &header, timed.now_ns), 0);
    uint8_t *place = header.length ? link_receive_buffer(peer, 0) : NULL;
    if (header.type == WIRE_DATA) {
      assert_ptr_equal(place - (const uint8_t *)frame.payload, to - from);
      landed += header.length;
    } else if (header.length) {
      memcpy(place, frame.payload, header.length);
    }
    assert_int_equal(link_frame_completed(peer, 0, timed.now_ns), 0);
    link_frame_taken(side, 0, timed.now_ns);
  }
  link_check(peer);
}

static void send_one(size_t bytes) {
  uint64_t completion = 0;
  const struct link_config config = {
    .policy = { .lanes = 1, .chunk_bytes = LONG_CHUNK },
    .eager_bytes = 64,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
  };
  timed_begin_with(config, 1);
  landed = 0;
  from = reserve();
  to = reserve();
  assert_int_equal(link_receive_posted(timed.links[LINK_RECEIVER], to, bytes, NULL, timed.now_ns),
                   0);
  assert_int_equal(link_send_posted(timed.links[LINK_SENDER], from, bytes, NULL, timed.now_ns), 0);
  bool is_received = false, is_sent = false;
  for (unsigned round = 0; round < 20000 && !(is_received && is_sent); round++) {
    hand_over(LINK_SENDER);
    hand_over(LINK_RECEIVER);
    for (int role = 0; role < 2; role++) {
      struct link_order order;
      while (link_next_order(timed.links[role], &order, timed.now_ns)) {
      }
      bool *is_done = role == LINK_RECEIVER ? &is_received : &is_sent;
      if (link_next_completion(timed.links[role], &completion)) {
        assert_true(completion == bytes);
        *is_done = true;
      }
      link_time_passed(timed.links[role], timed.now_ns);
    }
    timed.now_ns += MS;
  }
  assert_true(is_received && is_sent);
  assert_true(landed == bytes);
  munmap(from, LONGEST);
  munmap(to, LONGEST);
}

TEST(more_than_31_bits_count) {
  send_one((1ull << 31) - 4);
  send_one((1ull << 31) + 4);
}

TEST(more_than_32_bits_count) {
  send_one(LONGEST);
}

/* ---- compressed chunks: which ones are, what arrives, and what a peer may send instead ---- */

#define CHUNK (64u << 10)
#define MESSAGE (3 * CHUNK)
#define GRADIENT (TENSOR_INVENTED + 1u) /* of ResNet-18, in bf16 */

static void begin(enum policy_compress compress, struct policy_shared *shared,
                  bool wants_checksums) {
  timed_begin_with(
      (struct link_config){
          .policy = { .lanes = 1, .chunk_bytes = CHUNK, .compress = compress, .shared = shared },
          .eager_bytes = CHUNK,
          .eager_slots = 4,
          .timeout_ns = TIMED_TIMEOUT,
          .seed = 1,
          .wants_checksums = wants_checksums,
      },
      1);
  tensor_fill(GRADIENT, timed.out, MESSAGE);
}

/* All that is left is handed over, and then so many messages are there. */
static void all_arrives(unsigned messages) {
  timed_settle();
  assert_int_equal(timed.completed[LINK_RECEIVER], messages);
  assert_memory_equal(timed.in, timed.out, MESSAGE);
}

/* The first chunk, when all before it is delivered. */
static struct wire_header take_data(struct link_frame *frame) {
  struct wire_header header = { .type = WIRE_PING };
  while (header.type != WIRE_DATA) {
    timed_carry(LINK_RECEIVER);
    assert_true(timed_take(LINK_SENDER, 0, frame));
    assert_int_equal(wire_header_decode(frame->header, &header), 0);
    if (header.type != WIRE_DATA) {
      link_frame_taken(timed.links[LINK_SENDER], 0, timed.now_ns);
      assert_int_equal(timed_deliver(LINK_RECEIVER, 0, frame), 0);
    }
  }
  return header;
}

TEST(chunks_are_coded_and_come_back) {
  for (int has_checksums = 0; has_checksums < 2; has_checksums++) {
    begin(POLICY_COMPRESS_ON, NULL, has_checksums);
    timed_post(MESSAGE);
    all_arrives(1);
    struct link_coding sent = timed_view(LINK_SENDER).counts.coding;
    struct link_coding got = timed_view(LINK_RECEIVER).counts.coding;
    assert_int_equal(sent.coded, 3);
    assert_int_equal(sent.bytes_before, MESSAGE);
    assert_true(sent.bytes_after * 5 < MESSAGE * 4u);
    assert_int_equal(sent.took_ns, 3 * TIMED_CODING);
    assert_int_equal(sent.raw + sent.untried, 0);
    assert_int_equal(got.coded, 3);
    assert_int_equal(got.bytes_before, sent.bytes_before);
    assert_int_equal(got.bytes_after, sent.bytes_after);
    struct link_lane_view lane;
    for (int role = 0; role < 2; role++) {
      link_view_lane(timed.links[role], 0, &lane);
      assert_int_equal(role == LINK_SENDER ? lane.counts.bytes_sent : lane.counts.bytes_received,
                       MESSAGE);
    }
  }
}

TEST(auto_asks_the_policy) {
  struct policy_shared shared;
  policy_shared_init(&shared);
  begin(POLICY_COMPRESS_AUTO, &shared, false);
  timed_post(MESSAGE);
  all_arrives(1);
  assert_int_equal(timed_view(LINK_SENDER).counts.coding.untried, 3);
  shared.compression.is_on = true;
  timed_post(MESSAGE);
  all_arrives(2);
  assert_int_equal(timed_view(LINK_SENDER).counts.coding.coded, 3);
  assert_int_equal(timed_view(LINK_SENDER).counts.coding.untried, 3);
  assert_int_equal(shared.compression.ps_per_byte, TIMED_CODING * 1000 / CHUNK);
  assert_in_range(shared.compression.saved_bytes, 3 * CHUNK / 5, MESSAGE);
}

/* An encoder or a memory that errs: the checksum of what is sent is right, that of the chunk is
 * not. The lane is lost, and what was on it is sent again. */
TEST(what_comes_out_is_checked) {
  struct link_frame frame;
  static uint8_t payload[CHUNK];
  begin(POLICY_COMPRESS_ON, NULL, true);
  timed_post(MESSAGE);
  struct wire_header header = take_data(&frame);
  memcpy(payload, frame.payload, frame.length);
  payload[0] ^= 1;
  header.payload_crc = hash_crc32c(0, payload, header.coded);
  wire_header_encode(&header, frame.header);
  frame.payload = payload;
  assert_int_equal(timed_deliver(LINK_RECEIVER, 0, &frame), -EBADMSG);
  link_frame_taken(timed.links[LINK_SENDER], 0, timed.now_ns);
  link_lane_lost(timed.links[LINK_SENDER], 0, 1, timed.now_ns);
  timed_pass(2000000000);
  all_arrives(1);
}

TEST(rdma_lanes_bring_none) {
  const struct wire_header coded = { WIRE_DATA, WIRE_IS_CODED, CHUNK, 0, 0, MESSAGE, 0, 40000, 0 };
  begin(POLICY_COMPRESS_ON, NULL, false);
  struct link *receiver = timed.links[LINK_RECEIVER];
  link_lane_is_rdma(receiver, 0);
  assert_int_equal(link_receive_posted(receiver, timed.in, MESSAGE, NULL, timed.now_ns), 0);
  assert_int_equal(link_frame_received(receiver, 0, &coded, timed.now_ns), -EPROTO);
  link_check(receiver);
}

TEST(nothing_is_written_once_the_user_has_left) {
  struct link_frame frame;
  static const uint8_t untouched[TIMED_BULK];
  begin(POLICY_COMPRESS_ON, NULL, false);
  timed_post(MESSAGE);
  struct wire_header header = take_data(&frame);
  struct link *receiver = timed.links[LINK_RECEIVER];
  assert_int_equal(link_frame_received(receiver, 0, &header, timed.now_ns), 0);
  memcpy(link_receive_buffer(receiver, 0), frame.payload, frame.length / 2);
  link_user_detached(receiver, timed.now_ns);
  memcpy(link_receive_buffer(receiver, 0), frame.payload, frame.length);
  assert_int_equal(link_frame_completed(receiver, 0, timed.now_ns), 0);
  link_check(receiver);
  assert_memory_equal(timed.in, untouched, sizeof untouched);
}
