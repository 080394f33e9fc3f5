/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices that can little, that fail when a lane is made or later, or that may not be used:
 * data arrives all the same, by queue pairs or by TCP, and all that was registered is given back.
 * What lanes do on devices that work is test_lanes.c's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/param.h"
#include "net_plugin/lane/rdma/rdma_memory.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

static const struct fake_hca ordinary_hca = { .name = "fake0",
                                              .addresses = { "127.0.0.1", "::1" } };
/* As eRDMA is: inline data of 96 bytes, one piece of memory for each receive. */
static const struct fake_hca small_hca = { .name = "fake0",
                                           .addresses = { "127.0.0.1", "::1" },
                                           .has_no_dmabuf = true,
                                           .has_no_iova2 = true,
                                           .max_inline = 96,
                                           .max_send_sge = 6,
                                           .max_recv_sge = 1,
                                           .max_qp_wr = 64,
                                           .vendor_id = 0x1ded };
static const struct fake_hca down_hca = { .name = "fake0",
                                          .addresses = { "127.0.0.1", "::1" },
                                          .is_down = true };
static const struct rdma_host_way ordinary = { &ordinary_hca, NULL };
static const struct rdma_host_way small = { &small_hca, NULL }, down = { &down_hca, NULL };
static unsigned disturbed; /* times */

#define TEST(name, way) UNIT_TEST_EACH(name, rdma_host_set_up, rdma_host_tear_down, &(way))

TEST(data_arrives, small) {
  int families[] = { AF_INET, AF_INET6 };
  for (int i = 0; i < 2; i++) {
    struct pair pair = pair_make(families[i]);
    pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, NULL);
    pair_close(pair);
  }
  struct fake_counts counts = fake_verbs_counts();
  assert_true(counts.written_bytes > 0);
  assert_true(counts.sends > 0);
}

TEST(lost_lanes_lose_no_data, small) {
  pair_exchange_with_cuts(AF_INET);
}

static const size_t mixed_sizes[] = { 8, 70000, 300000, 4096, 1000000 };

static void exchange_all(pair_disturb_fn *disturb) {
  disturbed = 0;
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, mixed_sizes, 5, 60, disturb);
  pair_close(pair);
}

static void fail_some_receives(uint64_t done) {
  if (done % 5 == 2) {
    fake_verbs_fail_receive(1 + disturbed++ % 4, IBV_WC_LOC_PROT_ERR);
  }
}

TEST(failed_receives_lose_no_data, ordinary) {
  exchange_all(fail_some_receives);
  assert_true(disturbed >= 10);
}

static void fail_some_posts(uint64_t done) {
  if (done % 5 == 2) {
    fake_verbs_fail_call(disturbed % 2 ? FAKE_POST_SEND : FAKE_POST_RECV, 3, ENOMEM);
    disturbed++;
  }
}

TEST(failed_posts_lose_no_data, ordinary) {
  exchange_all(fail_some_posts);
  assert_true(disturbed >= 10);
}

/* Whatever fails in making a lane, it is a TCP lane then. */
TEST(devices_that_cannot_are_done_without, ordinary) {
  static const enum fake_call calls[] = {
    FAKE_OPEN_DEVICE, FAKE_QUERY_DEVICE,   FAKE_QUERY_PORT, FAKE_ALLOC_PD,
    FAKE_REG_MR,      FAKE_CREATE_CHANNEL, FAKE_CREATE_CQ,  FAKE_CREATE_QP,
    FAKE_MODIFY_QP,   FAKE_POST_RECV,      FAKE_REQ_NOTIFY,
  };
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    fake_verbs_fail_calls(calls[i], EPERM);
    rdma_host_configure();
    struct pair pair = pair_make(AF_INET);
    pair_exchange(pair, mixed_sizes, 5, 15, NULL);
    pair_close(pair);
    fake_verbs_fail_calls(calls[i], 0);
    struct fake_counts counts = fake_verbs_counts();
    if (counts.writes || counts.sends) {
      fail_msg("call %zu failed, and yet %llu writes and %llu sends were done", i,
               (unsigned long long)counts.writes, (unsigned long long)counts.sends);
    }
  }
}

/* Every step on the way to the first lanes fails, on either side: whichever of them has taken the
 * lane for an RDMA lane by then. Each of the calls fails, the first time it is made, the second,
 * and so on. */
static void fail_calls_once(int first, int last, unsigned times) {
  for (int call = first; call <= last; call++) {
    for (unsigned nth = 1; nth <= times; nth++) {
      log_capture_start();
      LOG_INFO("the call %d fails, time %u", call, nth);
      fake_verbs_fail_call((enum fake_call)call, nth, EIO);
      rdma_host_configure();
      struct pair pair = pair_make(AF_INET);
      pair_exchange(pair, mixed_sizes, 5, 10, NULL);
      pair_close(pair);
    }
  }
}

TEST(calls_that_fail_once_lose_no_data, ordinary) {
  fail_calls_once(0, FAKE_CALLS - 1, 8);
}

/* At either end. The sender wants one lane only, so no other comes. */
TEST(a_first_lane_that_cannot_be_used_is_dialled_again, ordinary) {
  param_load((char *[]){ "STRATUS_FLOWS=1", NULL });
  fail_calls_once(FAKE_POST_SEND, FAKE_POST_RECV, 4);
}

TEST(users_can_turn_it_off, ordinary) {
  setenv("NCCL_IB_DISABLE", "1", 1);
  rdma_host_configure();
  exchange_all(NULL);
  unsetenv("NCCL_IB_DISABLE");
  assert_int_equal(fake_verbs_counts().completions, 0);
}

/* The connection is made without it. */
TEST(a_port_that_comes_up_later_is_used, down) {
  struct pair pair = pair_make(AF_INET);
  pair_exchange(pair, mixed_sizes, 5, 60, NULL);
  assert_int_equal(fake_verbs_counts().sends, 0);
  fake_verbs_set_port("fake0", true);
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (fake_verbs_counts().written_bytes < 5000000) {
    assert_true(clock_now_ns() < until_ns);
    pair_exchange(pair, mixed_sizes, 5, 20, NULL);
    usleep(1000);
  }
  pair_close(pair);
}

UNIT_MAIN(NULL, NULL)
