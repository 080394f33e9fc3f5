/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that no honest peer would send, at random, to either end of a link. */
#include <stdlib.h>

#include "tests/lib/coding_memory.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/unit.h"

#define LANES 2u
#define MS 1000000ull
#define LARGEST 10000u

static uint8_t user_data[LARGEST];
static uint64_t now_ns;

static struct coding_memory lent[2];

static struct link *open_link(enum link_role role) {
  struct link_config config = {
    .role = role,
    .policy = { .lanes = LANES, .chunk_bytes = 4096, .compress = POLICY_COMPRESS_ON },
    .eager_bytes = 64,
    .eager_slots = 4,
    .timeout_ns = 1000 * MS,
    .seed = 1,
    .coding_memory = coding_memory_get,
    .coding_owner = &lent[role],
  };
  struct link *link = link_init(calloc(1, link_memory_bytes(&config)), &config, now_ns);
  for (unsigned lane = 0; lane < LANES; lane++) {
    if (role == LINK_RECEIVER) {
      link_lane_fence(link, lane, 1, now_ns);
    }
    link_lane_up(link, lane, 1, 0, now_ns);
  }
  return link;
}

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
