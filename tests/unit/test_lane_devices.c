/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices and librdmacm that can little, that fail when a lane is made or later, or that may
 * not be used: data arrives all the same, by queue pairs or by TCP until it goes well, and nothing
 * is left behind. What lanes do on devices that work is test_lanes.c's, single calls that fail are
 * test_rdma_faults.c's, two queue pairs by hand test_rdma_qp.c's. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

static const struct fake_hca ipv6_hca = { .name = "fake0", .addresses = { "::1" } };
static const struct fake_hca down_hca = { .name = "fake0",
                                          .addresses = { "127.0.0.1" },
                                          .is_down = true };
#define PARAMETERS "STRATUS_FLOWS=2"
static const struct rdma_host_way roce = { &rdma_host_roce, PARAMETERS };
static const struct rdma_host_way roce_one = { &rdma_host_roce, "STRATUS_FLOWS=1" };
static const struct rdma_host_way iwarp = { &rdma_host_iwarp, PARAMETERS };
static const struct rdma_host_way ipv6 = { &ipv6_hca, NULL }, down = { &down_hca, PARAMETERS };
static const size_t sizes[] = { 8, 70000, 4096, 300000 };

static void exchange(struct pair pair, uint64_t count) {
  pair_exchange(pair, sizes, 4, count, NULL);
}

static uint64_t count_connected(void) {
  return fake_verbs_counts().cm_connected;
}

static uint64_t count_lost(void) {
  return log_capture_find(" lost: ");
}

static void exchange_until(struct pair pair, uint64_t (*count)(void), uint64_t least) {
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (count() < least) {
    assert_true(clock_now_ns() < until_ns);
    exchange(pair, 8);
    usleep(1000);
  }
}

static void make_and_exchange(uint64_t count) {
  struct pair pair = pair_make(AF_INET);
  exchange(pair, count);
  pair_close(pair);
}

#define TEST(name, way) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &(way))
#define BOTH(name) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &roce, &iwarp)

/* ---- devices ---- */

TEST(data_arrives_over_ipv6, ipv6) {
  struct pair pair = pair_make(AF_INET6);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, NULL);
  pair_close(pair);
  assert_true(fake_verbs_counts().written_bytes > 0);
}

/* Whatever is needed to make a lane always fails: it is a TCP lane then. */
TEST(devices_that_cannot_are_done_without, roce) {
  for (int call = 0; call < FAKE_CALLS; call++) {
    if (call > FAKE_MODIFY_QP && call < FAKE_CM_CHANNEL && call != FAKE_POST_RECV) {
      continue;
    }
    fake_verbs_fail_calls((enum fake_call)call, EPERM);
    rdma_host_configure();
    make_and_exchange(12);
    fake_verbs_fail_calls((enum fake_call)call, 0);
    endpoint_stop_all();
    if (fake_verbs_counts().writes + fake_verbs_counts().sends > 0) {
      fail_msg("call %d failed, and yet there were sends", call);
    }
  }
}

/* At either end. The sender wants one lane only, so no other comes. */
TEST(a_first_lane_that_cannot_be_used_is_dialled_again, roce_one) {
  for (int call = FAKE_POST_SEND; call <= FAKE_POST_RECV; call++) {
    for (unsigned nth = 1; nth <= 4; nth++) {
      fake_verbs_fail_call((enum fake_call)call, nth, EIO);
      make_and_exchange(10);
    }
  }
}

/* The connection is made without it. */
TEST(a_port_that_comes_up_later_is_used, down) {
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 60);
  assert_int_equal(fake_verbs_counts().sends, 0);
  fake_verbs_set_port("fake0", true);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

/* A device that is dead, whose queue pairs tell nobody. */
TEST(tcp_goes_on_where_devices_die, roce) {
  struct pair pair = pair_make(AF_INET);
  rdma_host_expect(pair, 50);
  fake_verbs_mute(true);
  fake_verbs_fail_calls(FAKE_CREATE_QP, EIO);
  fake_verbs_event("fake0", IBV_EVENT_PORT_ACTIVE);
  fake_verbs_event("fake0", IBV_EVENT_DEVICE_FATAL);
  exchange(pair, 60);
  fake_verbs_mute(false);
  fake_verbs_heal_calls();
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

/* ---- librdmacm ---- */

/* The device is opened again. */
TEST(events_that_cannot_be_read_end_the_device, roce) {
  struct pair pair = pair_make(AF_INET);
  rdma_host_expect(pair, 50);
  fake_verbs_fail_call(FAKE_CM_EVENT, 1, EIO);
  fake_verbs_cm_event(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  exchange_until(pair, count_lost, 1);
  rdma_host_expect(pair, 50);
  assert_true(log_capture_find("is given up: librdmacm cannot report events") > 0);
  pair_close(pair);
}

/* For each event that ends the attempt, in place of each that should come; and for each that never
 * comes: there the deadlines decide. */
BOTH(events_go_wrong) {
  static const struct {
    enum rdma_cm_event_type type;
    int becomes;
  } cases[] = {
    { RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR },
    { RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_DEVICE_REMOVAL },
    { RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_UNREACHABLE },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_ERROR },
    { RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_DEVICE_REMOVAL },
    { RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_CONNECT_ERROR },
    { RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake_verbs_change_cm_events(cases[i].type, cases[i].becomes, 1);
    make_and_exchange(12);
  }
}

TEST(events_that_never_come_hold_nobody_up, roce) {
  fake_verbs_change_cm_events(RDMA_CM_EVENT_CONNECT_REQUEST, FAKE_CM_NOTHING, 1);
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 12);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

BOTH(garbage_connects_nothing) {
  fake_verbs_garble_cm(true);
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 12);
  assert_int_equal(fake_verbs_counts().sends, 0);
  assert_int_equal(fake_verbs_counts().cm_accepted, 0);
  assert_true(fake_verbs_counts().cm_rejected > 0);
  fake_verbs_garble_cm(false);
  rdma_host_expect(pair, 50);
  pair_close(pair);
}

BOTH(lost_connections_are_made_again) {
  static const enum rdma_cm_event_type types[] = { RDMA_CM_EVENT_DISCONNECTED,
                                                   RDMA_CM_EVENT_DEVICE_REMOVAL };
  struct pair pair = pair_make(AF_INET);
  for (size_t i = 0; i < 2; i++) {
    exchange(pair, 12);
    uint64_t lost = count_lost();
    fake_verbs_cm_event(types[i]);
    exchange_until(pair, count_lost, lost + 1);
    rdma_host_expect(pair, 50);
  }
  /* These harm nobody, once both ends of both flows are connected and none is to connect. */
  exchange_until(pair, count_connected, 4);
  uint64_t accepted = fake_verbs_counts().cm_accepted;
  fake_verbs_cm_event(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  fake_verbs_cm_event(RDMA_CM_EVENT_ADDR_CHANGE);
  exchange(pair, 40);
  assert_int_equal(fake_verbs_counts().cm_connected, 4);
  assert_int_equal(fake_verbs_counts().cm_accepted, accepted);
  pair_close(pair);
}

UNIT_MAIN(NULL, NULL)
