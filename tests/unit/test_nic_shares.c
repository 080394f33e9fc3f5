/* SPDX-License-Identifier: Apache-2.0 */
/* NICs that carry nothing are named once, with what does. Time is the test's: what was dialled is
 * dated back, and the timer is called. Real NICs: tests/netns/layouts. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/nic_shares.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

static struct engine *engine;
static struct peering_route route;
static struct nic_shares shares;
static struct lane_path flow; /* over lo */
static int listener;

static const struct path by_lo = { 0, 0 }, by_other = { 1, 0 };

static int set_up(void **state) {
  /* The limit of warnings is the process's, and by the NIC's index. */
  static unsigned next_index = 1000;
  struct sockaddr_storage address;
  const struct nic lo = pair_loopback(AF_INET);
  pair_set_up(state);
  assert_int_equal(engine_get(&lo, ENGINE_DIALS, &engine), 0);
  route = (struct peering_route){ .nic_count = 2, .remote.count = 1 };
  route.nics[0] = lo;
  route.nics[1] = fake_nic("other0", "127.0.0.2", 8);
  route.nics[1].index = next_index++;
  route.remote.addresses[0] = fake_nic_address("127.0.0.3");
  listener = tcp_socket_listen(&lo, &address);
  flow = (struct lane_path){ .fd = tcp_socket_open(AF_INET) };
  connect(flow.fd, (struct sockaddr *)&address, tcp_address_bytes(&address));
  engine_lock(engine);
  nic_shares_init(&shares, engine, &route, "host-7 (127.0.0.3:4242, eth0)");
  return 0;
}

static int tear_down(void **state) {
  nic_shares_stop(&shares);
  engine_unlock(engine);
  descriptor_close(flow.fd);
  descriptor_close(listener);
  return pair_tear_down(state);
}

static void seconds_pass(unsigned seconds) {
  for (unsigned i = 0; i < shares.count; i++) {
    uint64_t *since_ns = &shares.of[i].since_ns;
    *since_ns -= *since_ns ? seconds * NS_PER_S : 0;
  }
  if (shares.timer.deadline_ns) {
    engine_timer_stop(&shares.timer);
    shares.timer.expired(&shares.timer, clock_now_ns());
  }
}

/* So many in all, after so many seconds more. */
static void expect_warnings(size_t count, unsigned seconds) {
  seconds_pass(seconds);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), count);
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(what_fails_is_named_once) {
  nic_shares_dialled(&shares, by_lo);
  nic_shares_up(&shares, by_lo, 0, &flow, 0);
  nic_shares_dialled(&shares, by_other);
  nic_shares_failed(&shares, by_other, -EHOSTUNREACH);
  expect_warnings(0, 4);
  expect_warnings(1, 1);
  assert_int_equal(log_capture_find("other0 reaches none of host-7's addresses, its share goes by "
                                    "lo (127.0.0.3:0: No route to host"),
                   1);
  nic_shares_failed(&shares, by_other, -EHOSTUNREACH);
  expect_warnings(1, 60);
}

TEST(what_comes_up_is_told) {
  struct endpoint endpoint = { .port = 0 };
  const struct lane_path rdma = { .fd = flow.fd, .endpoint = &endpoint };
  nic_shares_up(&shares, by_lo, 0, &flow, 0);
  nic_shares_dialled(&shares, by_other);
  nic_shares_failed(&shares, by_other, -ETIMEDOUT);
  expect_warnings(1, 5);
  nic_shares_up(&shares, by_other, 1, &rdma, 0);
  assert_int_equal(log_capture_find("other0 carries its share to host-7"), 1);
  nic_shares_closed(&shares, 1); /* on purpose: it is not dialled again */
  expect_warnings(1, 60);
}

TEST(what_leaves_another_way_is_named) {
  nic_shares_dialled(&shares, by_other);
  nic_shares_up(&shares, by_other, 1, &flow, 0);
  assert_int_equal(shares.of[0].lanes, 2);
  assert_int_equal(shares.of[1].lanes, 0);
  seconds_pass(5);
  assert_int_equal(log_capture_find("other0 reaches none of host-7's addresses, its share goes by "
                                    "lo"),
                   1);
}

TEST(a_dead_peer_is_no_matter_of_nics) {
  nic_shares_dialled(&shares, by_lo);
  nic_shares_dialled(&shares, by_other);
  nic_shares_failed(&shares, by_lo, -ECONNREFUSED);
  nic_shares_failed(&shares, by_other, -ECONNREFUSED);
  expect_warnings(0, 60);
}

/* As the bridge of containers, which has the same address everywhere. */
TEST(an_address_of_both_hosts_is_told) {
  nic_shares_up(&shares, by_lo, 0, &flow, 0);
  nic_shares_dialled(&shares, by_other);
  nic_shares_failed(&shares, by_other, -ECONNREFUSED);
  expect_warnings(1, 5);
  assert_int_equal(log_capture_find("this host has that address, too"), 1);
}

TEST(a_single_nic_is_not_watched) {
  shares.count = 1;
  nic_shares_dialled(&shares, by_lo);
  nic_shares_failed(&shares, by_lo, -ETIMEDOUT);
  expect_warnings(0, 60);
}

/* The memory of a connection that ends goes. */
TEST(nothing_is_due_after_the_end) {
  nic_shares_dialled(&shares, by_other);
  nic_shares_failed(&shares, by_other, -EHOSTUNREACH);
  assert_true(shares.timer.deadline_ns != 0);
  nic_shares_stop(&shares);
  assert_int_equal(shares.timer.deadline_ns, 0);
}
