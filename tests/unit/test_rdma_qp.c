/* SPDX-License-Identifier: Apache-2.0 */
/* What a queue pair and a registration let a peer do, and how a queue pair is stopped for good on
 * devices that refuse to. The late writes are those of tests/lib/fake_verbs: packets that were on
 * their way. What becomes of connections is test_rdma_faults.c's. */
#include "net_plugin/lane/rdma/rdma_qp.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

enum { BYTES = 8192 };

static const struct fake_hca hca = { .name = "fake0", .addresses = { "10.0.0.1" } };
static struct nic nic;
static uint8_t from[BYTES], to[BYTES];
static struct lane_memory *from_memory, *to_memory;
static struct rdma_qp *sender, *receiver;

static struct rdma_qp *make(bool is_sender) {
  char why[RDMA_WHY_MAX];
  struct rdma_qp *qp = rdma_qp_new(rdma_host_open(&nic), is_sender, why);
  if (!qp) {
    fail_msg("%s", why);
  }
  return qp;
}

static int set_up(void **state) {
  (void)state;
  rdma_host_start(&hca);
  log_capture_start();
  nic = fake_nic("d0", "10.0.0.1", 24);
  lane_memory_want(true);
  memset(from, 1, BYTES);
  memset(to, 0, BYTES);
  from_memory = lane_memory_register(from, BYTES, LANE_MEMORY_LOCAL, NULL);
  to_memory = lane_memory_register(to, BYTES, LANE_MEMORY_REMOTE, NULL);
  sender = make(true);
  receiver = make(false);
  rdma_host_connect(sender, receiver, &nic.address);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fake_verbs_heal_calls();
  rdma_qp_free(sender);
  rdma_qp_free(receiver);
  rdma_worker_finish();
  lane_memory_free(from_memory);
  lane_memory_free(to_memory);
  lane_memory_want(false);
  rdma_memory_release(true);
  log_capture_stop();
  rdma_host_stop(); /* fails if anything is left */
  return 0;
}

/* One RDMA write of the whole range, from `here` to `there`; its completion. */
static enum ibv_wc_status write_with(struct rdma_qp *qp, uint8_t *here, uint32_t local,
                                     const uint8_t *there, uint32_t remote) {
  struct ibv_sge piece = { .addr = (uintptr_t)here, .length = BYTES, .lkey = local };
  struct ibv_send_wr request = { .sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = { (uintptr_t)there, remote } };
  struct ibv_send_wr *bad;
  struct ibv_wc done;
  assert_int_equal(ibv_post_send(qp->qp, &request, &bad), 0);
  assert_int_equal(ibv_poll_cq(qp->cq, 1, &done), 1);
  return done.status;
}

static enum ibv_wc_status write_once(void) {
  uint32_t local, remote, unused;
  assert_true(rdma_memory_keys(from_memory, sender->domain.index, &local, &unused));
  assert_true(rdma_memory_keys(to_memory, receiver->domain.index, &unused, &remote));
  return write_with(sender, from, local, to, remote);
}

/* The peer's last packets come now; to_memory stays as it is. */
static void expect_no_late_write(void) {
  memset(to, 2, BYTES);
  assert_int_equal(fake_verbs_write_late(), 0);
  assert_int_equal(to[0], 2);
  assert_int_equal(to[BYTES - 1], 2);
}

/* ---- rights ---- */

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(only_memory_for_receives_has_a_remote_key) {
  uint32_t local, remote;
  assert_true(rdma_memory_keys(from_memory, sender->domain.index, &local, &remote));
  assert_true(local != 0);
  assert_int_equal(remote, 0);
  assert_true(rdma_memory_keys(to_memory, sender->domain.index, &local, &remote));
  assert_true(local != 0 && remote != 0);
  struct fake_counts counts = fake_verbs_counts();
  assert_int_equal(counts.mrs, 4); /* two of slots */
  assert_int_equal(counts.remote_mrs, 1);
}

TEST(memory_for_receives_is_written) {
  assert_int_equal(write_once(), IBV_WC_SUCCESS);
  assert_memory_equal(to, from, BYTES);
}

TEST(sending_queue_pairs_take_no_writes) {
  assert_int_equal(fake_verbs_counts().qps, 2);
  assert_int_equal(fake_verbs_counts().remote_qps, 1);
  uint32_t local, remote;
  assert_true(rdma_memory_keys(to_memory, receiver->domain.index, &local, &remote));
  assert_int_equal(write_with(receiver, to, local, to, remote), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(fake_verbs_counts().refused, 1);
}

/* By a peer that guesses: the local key is the remote one in this provider, as in many drivers. */
TEST(memory_for_sends_is_not_written) {
  uint32_t key, local, remote;
  assert_true(rdma_memory_keys(from_memory, receiver->domain.index, &key, &remote));
  assert_true(rdma_memory_keys(to_memory, sender->domain.index, &local, &remote));
  assert_int_equal(write_with(sender, to, local, from, key), IBV_WC_REM_ACCESS_ERR);
  assert_int_equal(from[0], 1);
}

/* ---- stopping ---- */

TEST(a_stopped_queue_pair_takes_no_writes) {
  assert_int_equal(write_once(), IBV_WC_SUCCESS);
  assert_int_equal(rdma_qp_stop(receiver), 0);
  expect_no_late_write();
  assert_int_equal(write_once(), IBV_WC_RETRY_EXC_ERR);
}

TEST(what_cannot_be_stopped_is_destroyed_at_once) {
  assert_int_equal(write_once(), IBV_WC_SUCCESS);
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  assert_int_equal(rdma_qp_stop(receiver), 0);
  expect_no_late_write();
  assert_int_equal(fake_verbs_counts().qps, 1);
  assert_int_equal(fake_verbs_counts().remote_mrs, 1);
  assert_false(atomic_load(&receiver->device->is_lost));
}

TEST(what_cannot_be_destroyed_finds_no_memory) {
  uint32_t local, remote;
  assert_int_equal(write_once(), IBV_WC_SUCCESS);
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  assert_int_equal(rdma_qp_stop(receiver), 0);
  expect_no_late_write();
  assert_int_equal(fake_verbs_counts().qps, 2);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  assert_true(atomic_load(&receiver->device->is_lost));
  assert_int_equal(log_capture_find("fake0, the RDMA device of d0, neither stops (ibv_modify_qp: "
                                    "Input/output error) nor destroys (ibv_destroy_qp: Device or "
                                    "resource busy) a queue pair"),
                   1);
  /* Nor will it, whatever is registered later. */
  struct lane_memory *later = lane_memory_register(to, BYTES, LANE_MEMORY_REMOTE, NULL);
  assert_false(rdma_memory_keys(later, receiver->domain.index, &local, &remote));
  lane_memory_free(later);
}

TEST(what_cannot_be_kept_from_writing_is_told) {
  assert_int_equal(write_once(), IBV_WC_SUCCESS);
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  fake_verbs_fail_calls(FAKE_DEREG_MR, ENOMEM);
  assert_int_equal(rdma_qp_stop(receiver), -ENOTRECOVERABLE);
  assert_int_equal(log_capture_find("fake0 cannot deregister memory (ibv_dereg_mr: Cannot allocate "
                                    "memory)"),
                   1);
  assert_int_equal(fake_verbs_write_late(), 1); /* as it was told */
  fake_verbs_heal_calls();
  assert_int_equal(rdma_qp_stop(receiver), 0); /* the next try */
  expect_no_late_write();
}

/* Nobody can write through it, so nobody else need suffer. */
TEST(a_sending_queue_pair_may_stay) {
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  assert_int_equal(rdma_qp_stop(sender), 0);
  assert_int_equal(fake_verbs_counts().remote_mrs, 1);
}

/* The worker tries again: a call that fails now and then leaves nothing behind. */
TEST(refusals_that_pass_leave_nothing) {
  static const enum fake_call calls[] = { FAKE_STOP_QP, FAKE_DESTROY_QP, FAKE_DESTROY_CQ,
                                          FAKE_DESTROY_CHANNEL, FAKE_DEREG_MR };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    struct fake_counts before = fake_verbs_counts();
    struct rdma_qp *qp = make(false);
    fake_verbs_fail_call(calls[i], 1, EAGAIN);
    assert_int_equal(rdma_qp_free(qp), 0);
    rdma_worker_finish();
    assert_true(fake_verbs_heal_calls());
    struct fake_counts after = fake_verbs_counts();
    assert_int_equal(after.qps, before.qps);
    assert_int_equal(after.cqs, before.cqs);
    assert_int_equal(after.channels, before.channels);
    assert_int_equal(after.mrs, before.mrs);
  }
}

/* No driver says how much it takes. */
TEST(inline_data_is_what_the_device_takes) {
  static const struct fake_hca few = { .name = "fake1",
                                       .addresses = { "10.0.1.1" },
                                       .max_inline = 96 };
  static const struct fake_hca none = { .name = "fake2",
                                        .addresses = { "10.0.2.1" },
                                        .max_inline = 8 };
  static const struct {
    const struct fake_hca *hca;
    unsigned max_inline;
  } cases[] = { { &few, RDMA_INLINE_LEAST_BYTES }, { &none, 0 } };
  assert_int_equal(sender->max_inline, RDMA_INLINE_BYTES);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fake_verbs_add(cases[i].hca);
    nic = fake_nic("d1", cases[i].hca->addresses[0], 24);
    struct rdma_qp *qp = make(true);
    assert_int_equal(qp->max_inline, cases[i].max_inline);
    rdma_qp_free(qp);
  }
}

UNIT_MAIN(NULL, NULL)
