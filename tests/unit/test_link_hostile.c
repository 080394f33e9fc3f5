/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that no honest peer would send, to either end of a link: some that are known, and many at
 * random. What honest peers send over bad lanes: tests/sim. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/coding_memory.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define LANES 2u
#define MS 1000000ull
#define LARGEST 10000u

static uint8_t user_data[LARGEST];
static uint64_t now_ns;

static struct coding_memory lent[2];

static struct link_config config_of(enum link_role role) {
  return (struct link_config){
    .role = role,
    .policy = { .lanes = LANES, .chunk_bytes = 4096, .compress = POLICY_COMPRESS_ON },
    .eager_bytes = 64,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .coding_memory = coding_memory_get,
    .coding_owner = &lent[role],
  };
}

static struct link *open_link(enum link_role role) {
  struct link_config config = config_of(role);
  struct link *link = link_init(calloc(1, link_memory_bytes(&config)), &config, now_ns);
  for (unsigned lane = 0; lane < LANES; lane++) {
    if (role == LINK_RECEIVER) {
      link_lane_fence(link, lane, 1, now_ns);
    }
    link_lane_up(link, lane, 1, 0, now_ns);
  }
  return link;
}

/* ---- known ones ---- */

UNIT_TEST(a_message_that_is_too_large_fails_the_link) {
  struct link *link = open_link(LINK_RECEIVER);
  struct wire_header data = { .type = WIRE_DATA, .length = 101, .total = 101 };
  assert_int_equal(link_receive_posted(link, user_data, 100, NULL, now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, now_ns), -EMSGSIZE);
  assert_int_equal(link_status(link), -EMSGSIZE);
  assert_int_equal(link_receive_posted(link, user_data, 1, NULL, now_ns), -EMSGSIZE);
  free(link);
}

UNIT_TEST(a_wrong_checksum_loses_the_lane) {
  struct link *link = open_link(LINK_RECEIVER);
  struct wire_header data = { WIRE_DATA, WIRE_HAS_CRC, 8, 0, 0, 8, 0xBAD, 0, { 0 } };
  struct link_lane_view view;
  assert_int_equal(link_frame_received(link, 0, &data, now_ns), 0);
  memset(link_receive_buffer(link, 0), 1, 8);
  assert_int_equal(link_frame_completed(link, 0, now_ns), -EBADMSG);
  link_view_lane(link, 0, &view);
  assert_int_equal(view.state, LINK_LANE_LOST);
  assert_null(link_receive_buffer(link, 0));
  assert_int_equal(link_frame_received(link, 0, &data, now_ns), -ESTALE);
  link_check(link);
  free(link);
}

/* A kernel may be reading there. */
UNIT_TEST(a_wrong_polled_frame_never_shows) {
  struct link *link = open_link(LINK_RECEIVER);
  const uint8_t untouched[128] = { 0 };
  struct wire_header data = {
    WIRE_DATA, WIRE_HAS_CRC | WIRE_IS_LL, 128, 0, 0, 128, 0xBAD, 0, { 0 }
  };
  memset(user_data, 0, sizeof user_data);
  assert_int_equal(link_receive_posted(link, user_data, LARGEST, NULL, now_ns), 0);
  assert_int_equal(link_frame_received(link, 0, &data, now_ns), 0);
  link_check(link);
  memset(link_receive_buffer(link, 0), 1, 128);
  assert_memory_equal(user_data, untouched, sizeof untouched); /* nor before all of it is there */
  assert_int_equal(link_frame_completed(link, 0, now_ns), -EBADMSG);
  assert_memory_equal(user_data, untouched, sizeof untouched);
  link_check(link);
  free(link);
}

/* FENCE came over another lane, before the handshake of the epoch that it ends. */
UNIT_TEST(a_reconnect_that_was_fenced_before_is_refused) {
  struct link *link = open_link(LINK_RECEIVER);
  struct wire_header fence = { .type = WIRE_FENCE, .message = 1, .offset = 2 };
  assert_int_equal(link_frame_received(link, 0, &fence, now_ns), 0);
  assert_int_equal(link_frame_completed(link, 0, now_ns), 0);
  assert_true(link_lane_fence(link, 1, 2, now_ns) == UINT64_MAX);
  assert_true(link_lane_fence(link, 1, 3, now_ns) == 0);
  free(link);
}

/* What a hostile hello may ask for. */
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

/* ---- at random ---- */

static uint64_t random_state = 1;

static uint64_t random_value(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* Mostly small numbers and numbers near limits, so that many frames pass the first checks. */
static uint64_t random_field(void) {
  static const uint64_t edges[] = { 0,          1,          LINK_WINDOW,           4096,
                                    UINT32_MAX, UINT64_MAX, WIRE_MAX_MESSAGE_BYTES };
  uint64_t kind = random_value() % 8;
  if (kind < 5) {
    return random_value() % 8;
  }
  if (kind < 7) {
    return edges[random_value() % 7] + random_value() % 3 - 1;
  }
  return random_value();
}

static unsigned accepted[WIRE_TYPE_END]; /* frames, by type */

static void hostile_frame(struct link *link, unsigned lane) {
  struct wire_header header = {
    .flags = (uint16_t)(random_value() % 4 != 0 ? 0 : random_value() % 32),
    .type = (uint8_t)(1 + random_value() % (WIRE_TYPE_END - 1)),
    .message = random_field(),
    .offset = random_field(),
    .total = random_field(),
  };
  if (header.type == WIRE_DATA) {
    header.length = (uint32_t)(random_value() % 3 != 0 ? header.total : random_field());
    header.offset = random_value() % 3 != 0 ? 0 : header.offset;
    header.coded = (header.flags & WIRE_IS_CODED) != 0 ? (uint32_t)random_field() : 0;
  } else if (header.type == WIRE_WINDOW) {
    header.total = 0;
    header.length = WIRE_ACK_BYTES * (uint32_t)(random_value() % 4);
  } else if (header.type != WIRE_FENCED) {
    header.total = 0;
  }
  uint8_t bytes[WIRE_HEADER_BYTES];
  wire_header_encode(&header, bytes);
  if (wire_header_decode(bytes, &header) != 0 ||
      link_frame_received(link, lane, &header, now_ns) != 0) {
    return;
  }
  accepted[header.type]++;
  uint8_t *payload = link_receive_buffer(link, lane);
  for (uint32_t at = 0; at < wire_stream_bytes(&header); at++) {
    payload[at] = (uint8_t)(random_value() % 4);
  }
  if (random_value() % 8 != 0) {
    link_frame_completed(link, lane, now_ns);
  }
}

/* Whatever comes, nothing is written outside the buffers (sanitizers watch), the invariants hold or
 * the link has failed, and the user's side goes on working. */
UNIT_TEST(hostile_peers_do_no_harm) {
  unsigned failed = 0, survived = 0;
  for (int round = 0; round < 600; round++) {
    enum link_role role = round % 2 == 0 ? LINK_SENDER : LINK_RECEIVER;
    struct link *link = open_link(role);
    uint32_t epochs[LANES] = { 1, 1 };
    for (int i = 0; i < 40 && link_status(link) == 0; i++) {
      unsigned lane = (unsigned)(random_value() % LANES);
      struct link_order order;
      uint64_t completion;
      struct link_frame frame;
      hostile_frame(link, lane);
      link_check(link);
      while (link_next_completion(link, &completion)) {
      }
      while (link_next_order(link, &order, now_ns)) {
        if (order.kind == LINK_ORDER_OPEN) {
          epochs[order.lane] = order.epoch;
          link_lane_up(link, order.lane, order.epoch, random_field(), now_ns);
        }
      }
      if (role == LINK_RECEIVER && random_value() % 4 == 0) {
        if (link_lane_fence(link, lane, ++epochs[lane], now_ns) != UINT64_MAX) {
          link_lane_up(link, lane, epochs[lane], 0, now_ns);
        }
      }
      size_t bytes = random_value() % LARGEST;
      /* What is written after a buffer is written after all there is. */
      uint8_t *data = user_data + LARGEST - bytes;
      if (role == LINK_SENDER) {
        link_send_posted(link, data, bytes, NULL, now_ns);
      } else {
        link_receive_posted(link, data, bytes, NULL, now_ns);
      }
      int picked = pick_lane(link, UINT64_MAX);
      if (picked >= 0 && next_frame(link, (unsigned)picked, &frame, now_ns) &&
          random_value() % 4 != 0) {
        link_frame_taken(link, (unsigned)picked, now_ns);
      }
      now_ns += MS;
      link_time_passed(link, now_ns);
    }
    if (link_status(link) == 0) {
      survived++;
    } else {
      failed++;
    }
    free(link);
  }
  /* Frames of all types got past the first checks, and those that are wrong were told. */
  for (int type = 1; type < WIRE_TYPE_END; type++) {
    if (accepted[type] == 0) {
      fail_msg("no frame of type %d was accepted", type);
    }
  }
  assert_true(failed > 0 && survived > 0);
}

UNIT_MAIN(NULL, NULL)
