/* SPDX-License-Identifier: Apache-2.0 */
/* What one connection to a process has seen counts for all of them, and for no other process. */
#include "net_plugin/setup/peering.h"
#include "tests/lib/unit.h"

#include <errno.h>

#include "net_plugin/setup/limits.h"
#include "tests/lib/fake_nic.h"

#define NOW_NS (100 * NS_PER_S)

UNIT_TEST(all_connections_know_that_it_has_left) {
  struct peer *one = peer_get(7), *other = peer_get(7), *stranger = peer_get(8);
  assert_false(peer_has_left(other, NOW_NS));
  peer_left(one, NOW_NS);
  assert_true(peer_has_left(other, 0)); /* the first dial that is refused */
  assert_true(peer_has_left(other, NOW_NS + NS_PER_MS));
  assert_false(peer_has_left(stranger, NOW_NS));
  peer_put(one);
  assert_true(peer_has_left(other, NOW_NS));
  peer_put(other);
  peer_put(stranger);
  one = peer_get(7); /* a record of nobody is forgotten */
  assert_false(peer_has_left(one, NOW_NS));
  peer_put(one);
}

UNIT_TEST(who_comes_again_has_not_left) {
  struct peer *peer = peer_get(7);
  peer_left(peer, NOW_NS);
  peer_came(peer);
  assert_false(peer_has_left(peer, NOW_NS));
  peer_put(peer);
}

/* A flow that was closed as it was not needed, and much later a firewall. */
UNIT_TEST(what_was_closed_long_ago_is_no_sign) {
  struct peer *peer = peer_get(7);
  peer_left(peer, NOW_NS);
  assert_false(peer_has_left(peer, NOW_NS + PEER_LEFT_TOGETHER_NS + 1));
  peer_put(peer);
}

UNIT_TEST(only_open_flows_count) {
  struct peering peering = { .process = peer_get(7) };
  for (unsigned lane = 0; lane < 3; lane++) {
    assert_true(peering_take_lane(&peering, lane));
  }
  peering_lane_closed(&peering, 1, false);
  assert_int_equal(peering.counted, 5);
  assert_false(peer_has_left(peering.process, 0));
  peering_lane_closed(&peering, 0, true);
  assert_int_equal(peering.counted, 4);
  assert_true(peer_has_left(peering.process, 0));
  peering_end(&peering);
}

UNIT_TEST(the_path_and_the_last_error_are_told) {
  const struct nic nics[] = { fake_nic("none7", "192.0.2.1", 24),
                              fake_nic("none8", "192.0.2.2", 24) };
  struct peering peering = { .last_error = 0 };
  char text[CONNECTION_PATH_TEXT];
  assert_string_equal(peering_path_text(&peering, nics, 2, text), "none7 is gone, none8 is gone");
  peering.last_error = -ECONNREFUSED;
  assert_string_equal(peering_path_text(&peering, nics, 1, text),
                      "none7 is gone, the last try to connect: Connection refused (111)");
}
