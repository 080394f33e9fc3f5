/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed chunks between two links: which ones are, what arrives, and what a peer may send
 * instead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "common/random.h"
#include "net_plugin/policy/policy_shared.h"
#include "tests/lib/coding_memory.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/tensors.h"
#include "tests/lib/unit.h"

#define LANES 2u
#define CHUNK (64u << 10)
#define MESSAGE (3 * CHUNK)
#define GUARD 64u
#define UNTOUCHED 0xA5
#define GRADIENT (TENSOR_INVENTED + 1u) /* of ResNet-18, in bf16 */
#define MS 1000000ull

static struct link *ends[2]; /* by enum link_role */
static struct coding_memory memories[2];
static uint8_t sent[MESSAGE], received[GUARD + MESSAGE + GUARD];
static uint64_t now_ns;

static struct link_config config_of(enum link_role role) {
  return (struct link_config){
    .role = role,
    .policy = { .lanes = LANES, .chunk_bytes = CHUNK, .compress = POLICY_COMPRESS_ON },
    .eager_bytes = CHUNK,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .coding_memory = coding_memory_get,
    .coding_owner = &memories[role],
  };
}

static void make(struct link_config config) {
  ends[config.role] = link_init(calloc(1, link_memory_bytes(&config)), &config, now_ns);
}

static void lane_up(unsigned lane, uint32_t epoch) {
  uint64_t count = link_lane_fence(ends[LINK_RECEIVER], lane, epoch, now_ns);
  assert_true(count != UINT64_MAX);
  link_lane_up(ends[LINK_RECEIVER], lane, epoch, 0, now_ns);
  link_lane_up(ends[LINK_SENDER], lane, epoch, count, now_ns);
}

static void start(struct link_config from, struct link_config to) {
  make(from);
  make(to);
  lane_up(0, 1);
  tensor_fill(GRADIENT, sent, MESSAGE);
  memset(received, UNTOUCHED, sizeof received);
}

static void start_both(bool has_checksums) {
  struct link_config from = config_of(LINK_SENDER), to = config_of(LINK_RECEIVER);
  from.wants_checksums = to.wants_checksums = has_checksums;
  start(from, to);
}

static int end(void **state) {
  (void)state;
  free(ends[0]);
  free(ends[1]);
  ends[0] = ends[1] = NULL;
  coding_memory_free(&memories[0]);
  coding_memory_free(&memories[1]);
  return 0;
}

#define TEST(name) UNIT_TEST_WITH(name, NULL, end)

static uint8_t *landing(void) {
  return received + GUARD;
}

static void post(size_t bytes) {
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], landing(), MESSAGE, NULL, now_ns), 0);
  assert_int_equal(link_send_posted(ends[LINK_SENDER], sent, bytes, NULL, now_ns), 0);
}

/* The next frame of this type; others are delivered. */
static int deliver(enum link_role from, unsigned lane, const struct link_frame *frame) {
  struct link *to = ends[from == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER];
  struct wire_header header;
  int error = wire_header_decode(frame->header, &header);
  error = error ? error : link_frame_received(to, lane, &header, now_ns);
  if (!error && frame->length > 0) {
    memcpy(link_receive_buffer(to, lane), frame->payload, frame->length);
  }
  error = error ? error : link_frame_completed(to, lane, now_ns);
  link_check(to);
  return error;
}

static struct wire_header header_of(const struct link_frame *frame) {
  struct wire_header header;
  assert_int_equal(wire_header_decode(frame->header, &header), 0);
  return header;
}

/* What the sender writes next, as its owner does it; what the receiver has to say comes first. */
static bool take(unsigned lane, struct link_frame *frame) {
  while (next_frame(ends[LINK_RECEIVER], lane, frame, now_ns)) {
    link_frame_taken(ends[LINK_RECEIVER], lane, now_ns);
    assert_int_equal(deliver(LINK_RECEIVER, lane, frame), 0);
  }
  if (!next_frame(ends[LINK_SENDER], lane, frame, now_ns)) {
    return false;
  }
  if (frame->wants_coding) {
    struct policy_encoded encoded = link_encode(ends[LINK_SENDER], lane, frame);
    encoded.took_ns = 100;
    link_encoded(ends[LINK_SENDER], &encoded);
    assert_false(frame->wants_coding);
  }
  link_check(ends[LINK_SENDER]);
  return true;
}

static void take_data(unsigned lane, struct link_frame *frame) {
  while (take(lane, frame) && frame->header[1] != WIRE_DATA) {
    link_frame_taken(ends[LINK_SENDER], lane, now_ns);
    assert_int_equal(deliver(LINK_SENDER, lane, frame), 0);
  }
  assert_int_equal(frame->header[1], WIRE_DATA);
}

static void pass_all(unsigned lane) {
  struct link_frame frame;
  while (take(lane, &frame)) {
    link_frame_taken(ends[LINK_SENDER], lane, now_ns);
    assert_int_equal(deliver(LINK_SENDER, lane, &frame), 0);
  }
}

static void check_guards(void) {
  for (size_t i = 0; i < GUARD; i++) {
    assert_int_equal(received[i], UNTOUCHED);
    assert_int_equal(received[GUARD + MESSAGE + i], UNTOUCHED);
  }
}

/* All that is left is handed over, and then the message is there. */
static void all_arrives(size_t bytes) {
  uint64_t completion;
  pass_all(0);
  assert_true(link_next_completion(ends[LINK_RECEIVER], &completion));
  assert_int_equal(completion, bytes);
  assert_memory_equal(landing(), sent, bytes);
  check_guards();
}

static struct link_coding coding_of(enum link_role role) {
  struct link_view view;
  link_view(ends[role], &view);
  return view.coding;
}

/* ---- what is compressed ---- */

TEST(chunks_are_coded_and_come_back) {
  for (int has_checksums = 0; has_checksums < 2; has_checksums++) {
    start_both(has_checksums);
    post(MESSAGE);
    all_arrives(MESSAGE);
    struct link_coding from = coding_of(LINK_SENDER), to = coding_of(LINK_RECEIVER);
    assert_int_equal(from.coded, 3);
    assert_int_equal(from.bytes_before, MESSAGE);
    assert_true(from.bytes_after * 5 < MESSAGE * 4u);
    assert_int_equal(from.took_ns, 300);
    assert_int_equal(from.raw + from.untried, 0);
    assert_int_equal(to.coded, 3);
    assert_int_equal(to.bytes_before, from.bytes_before);
    assert_int_equal(to.bytes_after, from.bytes_after);
    struct link_lane_view lane;
    for (int role = 0; role < 2; role++) {
      link_view_lane(ends[role], 0, &lane);
      assert_int_equal(role == LINK_SENDER ? lane.bytes_sent : lane.bytes_received, MESSAGE);
    }
    end(NULL);
  }
}

/* ---- the policy ---- */

TEST(auto_asks_the_policy) {
  struct policy_shared shared;
  policy_shared_init(&shared);
  struct link_config from = config_of(LINK_SENDER);
  from.policy.compress = POLICY_COMPRESS_AUTO;
  from.policy.shared = &shared;
  start(from, config_of(LINK_RECEIVER));
  post(MESSAGE);
  all_arrives(MESSAGE);
  assert_int_equal(coding_of(LINK_SENDER).untried, 3);
  shared.compression.is_on = true;
  post(MESSAGE);
  all_arrives(MESSAGE);
  assert_int_equal(coding_of(LINK_SENDER).coded, 3);
  assert_int_equal(coding_of(LINK_SENDER).untried, 3);
  assert_int_equal(shared.compression.ps_per_byte, 100 * 1000 / CHUNK); /* by the clock's steps */
  assert_in_range(shared.compression.saved_bytes, 3 * CHUNK / 5, MESSAGE);
}

/* ---- what goes wrong ---- */

/* The lane is lost on both sides and comes back; what was on it is sent again. */
static void reconnect(unsigned lane, uint32_t epoch) {
  link_lane_lost(ends[LINK_RECEIVER], lane, epoch, now_ns);
  link_lane_lost(ends[LINK_SENDER], lane, epoch, now_ns);
  struct link_order order;
  now_ns += 1000 * MS;
  while (!link_next_order(ends[LINK_SENDER], &order, now_ns) || order.kind != LINK_ORDER_OPEN ||
         order.lane != lane) {
    now_ns += 100 * MS;
  }
  lane_up(lane, order.epoch);
}

/* An encoder or a memory that errs: the checksum of what is sent is right, that of the chunk is
 * not. */
TEST(what_comes_out_is_checked) {
  struct link_frame frame;
  static uint8_t payload[CHUNK];
  start_both(true);
  post(MESSAGE);
  take_data(0, &frame);
  struct wire_header header = header_of(&frame);
  memcpy(payload, frame.payload, frame.length);
  payload[0] ^= 1;
  header.payload_crc = hash_crc32c(0, payload, header.coded);
  wire_header_encode(&header, frame.header);
  frame.payload = payload;
  assert_int_equal(deliver(LINK_SENDER, 0, &frame), -EBADMSG);
  link_frame_taken(ends[LINK_SENDER], 0, now_ns);
  reconnect(0, 1);
  all_arrives(MESSAGE);
}

static int receive_header(const struct wire_header *header) {
  return link_frame_received(ends[LINK_RECEIVER], 0, header, now_ns);
}

static const struct wire_header coded_header = { WIRE_DATA, WIRE_IS_CODED, CHUNK, 0, 0, MESSAGE,
                                                 0,         40000,         { 0 } };

static void expect_refused(const struct wire_header *header) {
  assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], landing(), MESSAGE, NULL, 0), 0);
  assert_int_equal(receive_header(header), -EPROTO);
  link_check(ends[LINK_RECEIVER]);
}

TEST(who_did_not_agree_takes_none) {
  struct link_config to = config_of(LINK_RECEIVER);
  to.policy.compress = POLICY_COMPRESS_OFF;
  start(config_of(LINK_SENDER), to);
  expect_refused(&coded_header);
}

TEST(no_chunk_is_larger_than_agreed) {
  struct wire_header large = coded_header;
  large.length = CHUNK + 4096;
  start_both(false);
  expect_refused(&large);
}

TEST(rdma_lanes_bring_none) {
  start_both(false);
  link_lane_is_rdma(ends[LINK_RECEIVER], 0);
  expect_refused(&coded_header);
}

/* Any bytes of any length as a compressed chunk of any length that the wire allows. */
UNIT_TEST(hostile_payloads_stay_inside) {
  uint64_t random = 1;
  unsigned refused = 0;
  for (unsigned i = 0; i < 500; i++) {
    start_both(false);
    struct wire_header header = coded_header;
    uint64_t drawn = random_next(&random);
    header.length = CODEC_MIN_BYTES + (uint32_t)(drawn % (CHUNK - CODEC_MIN_BYTES + 1));
    header.coded = 1 + (uint32_t)((drawn >> 32) % codec_max_coded_bytes(header.length));
    header.offset = drawn % 3 == 0 ? MESSAGE - header.length : 0;
    assert_int_equal(link_receive_posted(ends[LINK_RECEIVER], landing(), MESSAGE, NULL, 0), 0);
    assert_int_equal(receive_header(&header), 0);
    link_check(ends[LINK_RECEIVER]);
    uint8_t *payload = link_receive_buffer(ends[LINK_RECEIVER], 0);
    if (i % 2 == 0) {
      tensor_fill(TENSOR_RANDOM, payload, header.coded);
      if (header.coded >= 8) {
        memcpy(payload, (uint8_t[]){ CODEC_VERSION, (uint8_t)(1u << i % 3), 0, 0 }, 4);
        bytes_put_le32(payload + 4, header.length);
      }
    } else {
      /* A true chunk that ends early. */
      static uint8_t out[2 * CHUNK];
      codec_encode(2, sent, header.length, out);
      memcpy(payload, out, header.coded);
    }
    refused += link_frame_completed(ends[LINK_RECEIVER], 0, now_ns) == -EBADMSG;
    link_check(ends[LINK_RECEIVER]);
    check_guards();
    end(NULL);
  }
  assert_in_range(refused, 475, 500);
}

/* ---- where the bytes go ---- */

TEST(nothing_is_written_once_the_user_has_left) {
  struct link_frame frame;
  start_both(false);
  post(MESSAGE);
  take_data(0, &frame);
  struct wire_header header = header_of(&frame);
  assert_int_equal(receive_header(&header), 0);
  memcpy(link_receive_buffer(ends[LINK_RECEIVER], 0), frame.payload, frame.length / 2);
  link_user_detached(ends[LINK_RECEIVER], now_ns);
  memcpy(link_receive_buffer(ends[LINK_RECEIVER], 0), frame.payload, frame.length);
  assert_int_equal(link_frame_completed(ends[LINK_RECEIVER], 0, now_ns), 0);
  link_check(ends[LINK_RECEIVER]);
  for (size_t at = 0; at < sizeof received; at++) {
    assert_int_equal(received[at], UNTOUCHED);
  }
}

UNIT_MAIN(NULL, NULL)
