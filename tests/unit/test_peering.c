/* SPDX-License-Identifier: Apache-2.0 */
/* What connections know of a peer: which NIC talks to which address, and what one connection to a
 * process has seen, which counts for all of them and for no other process. */
#include "net_plugin/setup/peering.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/peering_route.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/unit.h"

/* ---- routes ---- */

/* "10.0.0.1/24 10.0.1.1/24" against "10.0.0.2 10.0.1.2": the home paths as "0-0 1-1", then after a
 * bar the detours. */
static const char *find(const char *nics_text, const char *addresses_text) {
  static char text[1024];
  struct peering_route route = { 0 };
  char copy[512], *save;
  snprintf(copy, sizeof copy, "%s", nics_text);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    char *slash = strchr(word, '/');
    route.nics[route.nic_count].prefix_bits = slash ? (unsigned)atoi(slash + 1) : 0;
    if (slash) {
      *slash = '\0';
    }
    route.nics[route.nic_count++].address = fake_nic_address(word);
  }
  snprintf(copy, sizeof copy, "%s", addresses_text);
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    route.remote.addresses[route.remote.count++] = fake_nic_address(word);
  }
  peering_route_find_paths(&route);
  size_t length = 0;
  for (unsigned i = 0; i < route.path_count; i++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%u-%u", i ? " " : "",
                               i == route.home_count ? "| " : "", route.paths[i].nic,
                               route.paths[i].address);
  }
  return text;
}

UNIT_TEST(unequal_counts_leave_nobody_out) {
  assert_string_equal(find("10.0.0.1/24 10.0.0.2/24", "10.0.0.3"), "0-0 1-0");
  assert_string_equal(find("10.0.1.1/24", "10.0.0.2 10.0.1.2"), "0-1 0-0");
  assert_string_equal(find("10.0.0.1/24 10.0.0.2/24 10.0.0.3/24", "10.0.0.4 10.0.0.5"),
                      "0-0 1-1 2-0 | 0-1 1-0 2-1");
  assert_string_equal(find("10.0.0.1/24 10.0.1.1/24", "10.0.1.2 10.0.1.3 10.0.0.2"),
                      "0-2 1-1 1-0 | 0-0 0-1 1-2");
}

UNIT_TEST(families_do_not_mix) {
  assert_string_equal(find("10.0.0.1/24 fd71::1/64", "fd71::2 10.0.0.2"), "0-1 1-0");
  assert_string_equal(find("10.0.0.1/24 fd71::1/64", "10.0.0.2"), "0-0");
  /* unless nothing fits: then routing decides */
  assert_string_equal(find("10.0.0.1/24", "fd71::2"), "0-0");
}

static struct peering_route two_of_each(void) {
  struct peering_route route = { .nic_count = 2, .remote.count = 2 };
  route.nics[0].address = fake_nic_address("10.0.0.1");
  route.nics[1].address = fake_nic_address("10.0.1.1");
  route.remote.addresses[0] = fake_nic_address("10.0.0.2");
  route.remote.addresses[1] = fake_nic_address("10.0.1.2");
  peering_route_find_paths(&route);
  return route;
}

UNIT_TEST(lanes_go_round_and_turns_reach_every_path) {
  struct peering_route route = two_of_each();
  unsigned lanes_of_nic[2] = { 0 };
  for (unsigned lane = 0; lane < 16; lane++) {
    lanes_of_nic[peering_route_choose(&route, lane, 0).nic]++;
    unsigned seen = 0;
    for (unsigned turn = 0; turn < 4; turn++) {
      struct path path = peering_route_choose(&route, lane, turn);
      seen |= 1u << (path.nic * 2 + path.address);
    }
    assert_int_equal(seen, 15);
  }
  assert_int_equal(lanes_of_nic[0], 8);
  assert_int_equal(lanes_of_nic[1], 8);
}

UNIT_TEST(a_path_that_is_taken_is_the_first) {
  struct peering_route route = two_of_each();
  struct reply reply = { 0 };
  address_to_wire(&route.remote.addresses[0], &reply.addresses[0]);
  address_to_wire(&route.remote.addresses[1], &reply.addresses[1]);
  peering_route_learn(&route, &reply, (struct path){ 1, 1 });
  assert_int_equal(peering_route_choose(&route, 0, 0).nic, 1);
  assert_int_equal(peering_route_choose(&route, 1, 0).nic, 0);
  /* No home path: lane 0 goes home when it reconnects. */
  peering_route_learn(&route, &reply, (struct path){ 0, 1 });
  assert_int_equal(peering_route_choose(&route, 0, 0).nic, 0);
  assert_int_equal(peering_route_choose(&route, 0, 0).address, 0);
  assert_int_equal(route.home_count, 2);
  assert_int_equal(route.path_count, 4);
}

UNIT_TEST(near_is_what_the_netmask_says) {
  struct nic nic = { .address = fake_nic_address("10.0.5.1"), .prefix_bits = 22 };
  struct sockaddr_storage inside = fake_nic_address("10.0.7.255"),
                          outside = fake_nic_address("10.0.8.1"),
                          other = fake_nic_address("fd70::1");
  assert_true(tcp_address_is_near(&inside, &nic));
  assert_false(tcp_address_is_near(&outside, &nic));
  assert_false(tcp_address_is_near(&other, &nic));
  nic.prefix_bits = 0;
  assert_false(tcp_address_is_near(&inside, &nic));
}

/* ---- what is seen ---- */

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

/* Long ago: a flow that was closed as it was not needed, and much later a firewall. */
UNIT_TEST(who_left_long_ago_or_comes_again_has_not_left) {
  struct peer *peer = peer_get(7);
  peer_left(peer, NOW_NS);
  assert_false(peer_has_left(peer, NOW_NS + PEER_LEFT_TOGETHER_NS + 1));
  assert_true(peer_has_left(peer, NOW_NS));
  peer_came(peer);
  assert_false(peer_has_left(peer, NOW_NS));
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
