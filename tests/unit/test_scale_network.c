/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a simulated NIC serves paths: first come, first served. */
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/scale/network.h"

#define STREAMS 3u

static char order[32]; /* of the streams that something arrived of, a letter each */
static char names[STREAMS];

static void departed(struct stream *stream) {
  (void)stream;
}

static void arrived(struct stream *stream) {
  strncat(order, stream->user, 1);
}

/* Streams a, b, c on paths 9, 4, 20 write two segments each, in this order, while `a` is sent. */
UNIT_TEST(who_comes_first_is_served_first) {
  static struct network network;
  struct events events = { 0 };
  struct network_config config = { .nic_rate = 100000000,
                                   .flow_rate = 100000000,
                                   .wire_rate = 100000000,
                                   .burst_bytes = 1,
                                   .latency_ns = 20000,
                                   .nics = 1,
                                   .paths = 32 };
  static const unsigned paths[STREAMS] = { 9, 4, 20 };
  struct stream streams[STREAMS] = { 0 };
  network_init(&network, &config, &events);
  order[0] = '\0';
  for (unsigned i = 0; i < STREAMS; i++) {
    names[i] = (char)('a' + i);
    streams[i].user = &names[i];
    streams[i].departed = departed;
    streams[i].arrived = arrived;
    network_open(&network, &streams[i], 0, paths[i]);
    network_write(&streams[i], (uint64_t)2 * NETWORK_SEGMENT_BYTES);
    if (i == 0) {
      assert_true(events_next(&events, EVENTS_NEVER - 1)); /* its first segment leaves */
    }
  }
  while (events_next(&events, EVENTS_NEVER - 1)) {
  }
  for (unsigned i = 0; i < STREAMS; i++) {
    assert_int_equal(streams[i].arrived_bytes, 2 * NETWORK_SEGMENT_BYTES);
  }
  assert_string_equal(order, "aabcbc");
  network_free(&network);
  events_free(&events);
}

UNIT_MAIN(NULL, NULL)
