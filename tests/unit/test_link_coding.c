/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed chunks between two links: which ones are, what arrives, and what a peer may send
 * instead. Any bytes as a compressed chunk: tests/fuzz/fuzz_link.c. */
#include <errno.h>
#include <string.h>

#include "common/hash.h"
#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/tensors.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

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

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

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
    struct link_coding from = timed_view(LINK_SENDER).counts.coding;
    struct link_coding to = timed_view(LINK_RECEIVER).counts.coding;
    assert_int_equal(from.coded, 3);
    assert_int_equal(from.bytes_before, MESSAGE);
    assert_true(from.bytes_after * 5 < MESSAGE * 4u);
    assert_int_equal(from.took_ns, 3 * TIMED_CODING);
    assert_int_equal(from.raw + from.untried, 0);
    assert_int_equal(to.coded, 3);
    assert_int_equal(to.bytes_before, from.bytes_before);
    assert_int_equal(to.bytes_after, from.bytes_after);
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
