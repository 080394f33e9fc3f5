/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that 31 and 32 bits do not count: each byte goes to its place, once. Nothing is copied:
 * frames are handed over as addresses of memory that is reserved, not had. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/timed.h"
#include "tests/lib/unit.h"

#define MS 1000000ull
#define LONGEST ((1ull << 32) + 4)
#define CHUNK_BYTES (1u << 20)

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
    .policy = { .lanes = 1, .chunk_bytes = CHUNK_BYTES },
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

#define TEST(name) UNIT_TEST_WITH(name, NULL, timed_end)

TEST(more_than_31_bits_count) {
  send_one((1ull << 31) - 4);
  send_one((1ull << 31) + 4);
}

TEST(more_than_32_bits_count) {
  send_one(LONGEST);
}
