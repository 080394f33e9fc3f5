/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that librdmacm connects (tests/lib/fake_verbs_cm.c): whatever goes wrong on the way,
 * data arrives all the same, by TCP until it goes well, and nothing is left behind; strangers are
 * rejected. What lanes do once they are connected is test_lanes.c's. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/param.h"
#include "net_plugin/lane/rdma/rdma_device.h"
#include "net_plugin/lane/rdma/rdma_endpoint.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

static const struct rdma_host_way roce = { &rdma_host_roce, "STRATUS_FLOWS=2" };
static const struct rdma_host_way iwarp = { &rdma_host_iwarp, "STRATUS_FLOWS=2" };
static const size_t sizes[] = { 8, 70000, 4096, 300000 };

static void exchange(struct pair pair, uint64_t count) {
  pair_exchange(pair, sizes, 4, count, NULL);
}

static uint64_t count_sends(void) {
  return fake_verbs_counts().sends;
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

/* Until queue pairs carry the data (again). */
static void expect_rdma(struct pair pair) {
  exchange_until(pair, count_sends, count_sends() + 50);
}

/* ---- on the way ---- */

#define TEST(name, way) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &(way))
#define BOTH(name) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &roce, &iwarp)

TEST(without_the_library_there_is_tcp, iwarp) {
  verbs_api_replace(NULL, "librdmacm.so.1: gone");
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 12);
  assert_int_equal(fake_verbs_counts().sends, 0);
  assert_true(log_capture_find("no RDMA through lo, TCP is used: librdmacm.so.1: gone") == 1);
  pair_close(pair);
  verbs_api_replace(fake_verbs_api(), NULL);
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
    struct pair pair = pair_make(AF_INET);
    exchange(pair, 12);
    pair_close(pair);
  }
}

TEST(events_that_never_come_hold_nobody_up, roce) {
  fake_verbs_change_cm_events(RDMA_CM_EVENT_CONNECT_REQUEST, FAKE_CM_NOTHING, 1);
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 12);
  expect_rdma(pair);
  pair_close(pair);
}

BOTH(calls_that_fail_once_lose_no_data) {
  for (int call = FAKE_CM_CHANNEL; call < FAKE_CALLS; call++) {
    for (unsigned nth = 1; nth <= 3; nth++) {
      fake_verbs_fail_call((enum fake_call)call, nth, EIO);
      struct pair pair = pair_make(AF_INET);
      exchange(pair, 8);
      pair_close(pair);
    }
  }
}

TEST(calls_that_always_fail_leave_tcp, roce) {
  for (int call = FAKE_CM_CHANNEL; call < FAKE_CALLS; call++) {
    uint64_t before = fake_verbs_counts().sends;
    fake_verbs_fail_calls((enum fake_call)call, EPERM);
    struct pair pair = pair_make(AF_INET);
    exchange(pair, 8);
    pair_close(pair);
    fake_verbs_fail_calls((enum fake_call)call, 0);
    if (fake_verbs_counts().sends != before) {
      fail_msg("call %d failed, and yet there were sends", call);
    }
  }
}

BOTH(garbage_connects_nothing) {
  fake_verbs_garble_cm(UINT32_MAX);
  struct pair pair = pair_make(AF_INET);
  exchange(pair, 12);
  assert_int_equal(fake_verbs_counts().sends, 0);
  assert_int_equal(fake_verbs_counts().cm_accepted, 0);
  assert_true(fake_verbs_counts().cm_rejected > 0);
  fake_verbs_garble_cm(0);
  expect_rdma(pair);
  pair_close(pair);
}

/* ---- later ---- */

BOTH(lost_connections_are_made_again) {
  static const enum rdma_cm_event_type types[] = { RDMA_CM_EVENT_DISCONNECTED,
                                                   RDMA_CM_EVENT_DEVICE_REMOVAL };
  struct pair pair = pair_make(AF_INET);
  for (size_t i = 0; i < 2; i++) {
    exchange(pair, 12);
    uint64_t lost = count_lost();
    fake_verbs_cm_event(types[i]);
    exchange_until(pair, count_lost, lost + 1);
    expect_rdma(pair);
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

/* ---- two queue pairs by hand ---- */

struct two {
  struct rdma_qp *dialler, *listener;
  struct sockaddr_storage address;
  struct rdma_facts facts; /* the dialler's */
  struct lane_tokens tokens;
  uint16_t port;
};

static struct rdma_qp *make_qp(const struct nic *nic, bool is_sender) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_device_open(nic, why);
  assert_non_null(device);
  struct rdma_qp *qp = rdma_qp_new(device, is_sender, why);
  assert_non_null(qp);
  return qp;
}

static struct two make_two(void) {
  struct nic nic = pair_loopback(AF_INET);
  struct two two = { .dialler = make_qp(&nic, true),
                     .listener = make_qp(&nic, false),
                     .address = nic.address };
  memset(two.tokens.request, 1, LANE_TOKEN_BYTES);
  memset(two.tokens.answer, 2, LANE_TOKEN_BYTES);
  rdma_qp_facts(two.dialler, &two.facts);
  assert_int_equal(rdma_qp_listen(two.listener, &two.facts, &two.address, &two.tokens, &two.port),
                   0);
  assert_true(two.port != 0);
  return two;
}

static int dial(struct two *two, struct rdma_qp *qp, const struct lane_tokens *tokens) {
  struct rdma_facts facts;
  struct sockaddr_storage to = two->address;
  ((struct sockaddr_in *)&to)->sin_port = htons(two->port);
  rdma_qp_facts(two->listener, &facts);
  int error = rdma_qp_connect(qp, &facts, &two->address, &to, tokens, 10);
  for (int i = 0; i < 4 && !error && !qp->is_connected; i++) {
    error = rdma_qp_advance(qp);
    error = error ? error : rdma_qp_advance(two->listener);
  }
  return error;
}

static void free_two(struct two *two) {
  rdma_qp_free(two->dialler);
  rdma_qp_free(two->listener);
}

TEST(strangers_are_rejected_and_the_peer_comes_in, roce) {
  struct nic nic = pair_loopback(AF_INET);
  struct two two = make_two();
  struct lane_tokens wrong = two.tokens;
  wrong.request[LANE_TOKEN_BYTES - 1]++;
  for (int i = 0; i < 3; i++) {
    struct rdma_qp *stranger = make_qp(&nic, true);
    assert_int_equal(dial(&two, stranger, &wrong), -ECONNREFUSED);
    rdma_qp_free(stranger);
  }
  assert_int_equal(fake_verbs_counts().cm_rejected, 3);
  assert_true(log_capture_count(LOG_LEVEL_WARN) <= 1); /* told once in a while */
  assert_int_equal(dial(&two, two.dialler, &two.tokens), 0);
  assert_true(two.dialler->is_connected);
  assert_int_equal(rdma_qp_advance(two.listener), 0);
  assert_true(two.listener->is_connected);
  /* Nobody listens there any more, not even for who knows the token. */
  struct rdma_qp *late = make_qp(&nic, true);
  assert_int_equal(dial(&two, late, &two.tokens), -ECONNREFUSED);
  rdma_qp_free(late);
  assert_int_equal(fake_verbs_counts().cm_accepted, 1);
  free_two(&two);
}

/* The right token from a queue pair that the handshake did not tell. */
TEST(another_queue_pair_is_rejected, roce) {
  struct nic nic = pair_loopback(AF_INET);
  struct two two = make_two();
  struct rdma_qp *other = make_qp(&nic, true);
  assert_int_equal(dial(&two, other, &two.tokens), -ECONNREFUSED);
  assert_int_equal(fake_verbs_counts().cm_accepted, 0);
  rdma_qp_free(other);
  free_two(&two);
}

BOTH(an_answer_of_somebody_else_is_not_taken) {
  struct two two = make_two();
  struct lane_tokens other = two.tokens;
  other.answer[0]++;
  assert_int_equal(dial(&two, two.dialler, &other), -EKEYREJECTED);
  assert_false(two.dialler->is_connected);
  free_two(&two);
}

BOTH(the_end_of_one_is_heard_by_the_other) {
  struct two two = make_two();
  assert_int_equal(dial(&two, two.dialler, &two.tokens), 0);
  assert_int_equal(rdma_qp_advance(two.listener), 0);
  rdma_qp_free(two.dialler);
  rdma_worker_finish();
  assert_int_equal(rdma_qp_advance(two.listener), -ECONNRESET);
  rdma_qp_free(two.listener);
}

TEST(devices_of_two_kinds_are_not_connected, roce) {
  struct two two = make_two();
  struct rdma_facts peer = two.facts;
  peer.transport = RDMA_IWARP;
  assert_int_equal(rdma_qp_set_peer(two.dialler, &peer), -EPROTO);
  free_two(&two);
}

/* librdmacm finds another device where the NIC's address is now. */
TEST(an_address_that_has_moved_ends_the_device, roce) {
  static const struct fake_hca old = { .name = "fake1", .addresses = { "10.0.0.1" } };
  struct two two = make_two();
  struct nic nic = fake_nic("d1", "10.0.0.1", 24);
  uint16_t port;
  fake_verbs_add(&old);
  struct rdma_qp *qp = make_qp(&nic, false);
  assert_int_equal(rdma_qp_listen(qp, &two.facts, &two.address, &two.tokens, &port), -ENODEV);
  assert_true(atomic_load(&qp->device->is_lost));
  assert_int_equal(log_capture_find("fake1, the RDMA device of d1, is given up: librdmacm finds "
                                    "another one at the NIC's address"),
                   1);
  rdma_qp_free(qp);
  free_two(&two);
}

UNIT_MAIN(NULL, NULL)
