/* SPDX-License-Identifier: Apache-2.0 */
/* When a simulated TCP sends again what was lost: each line of tests/scale/loss.h. A packet takes a
 * microsecond to leave, and 20 to arrive. */
#include "tests/lib/unit.h"
#include "tests/scale/network.h"

#define PACKET 1448u
#define US 1000u
#define NOTHING 0u
#define EVERYTHING UINT64_MAX

static struct network network;
static struct events events;
static struct stream stream;
static struct loss_aim aim;

static void ignore(struct stream *of) {
  (void)of;
}

static void begin(void) {
  const struct network_config config = { .nic_rate = 1448000000,
                                         .wire_rate = 1448000000,
                                         .burst_bytes = 1u << 20,
                                         .segment_bytes = 64u << 10,
                                         .latency_ns = 20 * US,
                                         .hosts = 2,
                                         .nics = 1,
                                         .paths = 1,
                                         .loss = 1e-9 };
  events = (struct events){ 0 };
  aim = (struct loss_aim){ 0 };
  network_init(&network, &config, &events);
  network.is_aimed = true;
  network.loss_below = NOTHING;
  stream = (struct stream){ .departed = ignore, .arrived = ignore, .aim = &aim };
  network_open(&network, &stream, 0, 1, 0);
}

static void end(void) {
  network_close(&stream);
  network_free(&network);
  events_free(&events);
}

static void pass(uint64_t until_us) {
  while (events_next(&events, until_us * US)) {
  }
}

/* In microseconds; it fails if that never happens. */
static uint64_t all_arrived_us(void) {
  while (stream.arrived_bytes < stream.written_bytes) {
    assert_true(events_next(&events, EVENTS_NEVER - 1));
  }
  return events.now_ns / US;
}

static void write_packets(uint64_t packets, uint64_t lost) {
  aim.packets = lost;
  network_write(&stream, packets * PACKET);
}

UNIT_TEST(three_behind_it_bring_it_back_at_once) {
  begin();
  write_packets(10, 3);
  pass(31);
  assert_int_equal(stream.arrived_bytes, 2 * PACKET);
  assert_false(loss_is_repairing(&stream));
  pass(51);
  assert_true(loss_is_repairing(&stream));
  assert_int_equal(all_arrived_us(), 30 + 20 + 20);
  assert_false(loss_is_repairing(&stream));
  end();
}

UNIT_TEST(two_of_the_same_burst_after_two_milliseconds) {
  begin();
  write_packets(3, 1);
  assert_int_equal(all_arrived_us(), 23 + 20 + 2000 + 20);
  end();
}

UNIT_TEST(one_that_was_sent_later_at_once) {
  begin();
  write_packets(1, 1);
  pass(1000);
  assert_int_equal(stream.arrived_bytes, 0);
  write_packets(1, 0);
  assert_int_equal(all_arrived_us(), 1000 + 21 + 20 + 20);
  end();
}

UNIT_TEST(several_at_the_end_are_probed) {
  begin();
  network.loss_below = EVERYTHING;
  write_packets(2, 1);
  pass(100);
  network.loss_below = NOTHING;
  assert_int_equal(all_arrived_us(),
                   2 * 40 + 2000 + 20 + 20 + 20); /* the last one, then the first */
  end();
}

UNIT_TEST(one_at_the_end_waits_for_the_timeout) {
  begin();
  write_packets(3, 3);
  pass(100);
  assert_int_equal(stream.arrived_bytes, 2 * PACKET);
  /* The timer began when the sender heard of the first two. */
  assert_int_equal(all_arrived_us(), 23 + 20 + 40 + 200000 + 20);
  end();
}

UNIT_TEST(each_timeout_is_twice_as_long) {
  begin();
  write_packets(1, 1);
  network.loss_below = EVERYTHING;
  pass(200100);
  assert_true(loss_is_repairing(&stream));
  network.loss_below = NOTHING;
  assert_int_equal(all_arrived_us(), 40 + 200000 + 40 + 400000 + 20);
  end();
}

/* Everything arrives once, in order, whatever is lost; the same seed loses the same. */
UNIT_TEST(all_of_it_arrives) {
  uint64_t took_us[2];
  for (unsigned i = 0; i < 2; i++) {
    begin();
    network.is_aimed = false;
    network.loss_below = UINT64_MAX / 20;
    for (unsigned message = 0; message < 200; message++) {
      network_write(&stream, 1 + message * 100);
      pass(events.now_ns / US + 100);
    }
    took_us[i] = all_arrived_us();
    assert_int_equal(stream.arrived_bytes, stream.written_bytes);
    assert_int_equal(stream.loss.count, 0);
    end();
  }
  assert_int_equal(took_us[0], took_us[1]);
}

UNIT_MAIN(NULL, NULL)
