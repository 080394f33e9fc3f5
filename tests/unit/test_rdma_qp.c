/* SPDX-License-Identifier: Apache-2.0 */
/* Two queue pairs: whom librdmacm connects, what a peer may write, and how a queue pair is stopped
 * for good on devices that refuse to. The late writes are those of tests/lib/fake_verbs: packets
 * that were on their way. What becomes of connections is test_rdma_faults.c's. */
#include "net_plugin/lane/rdma/rdma_qp.h"

#include <errno.h>
#include <string.h>

#include "net_plugin/setup/setup.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/fault.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

enum { BYTES = 8192 };

static uint8_t from[BYTES], to[BYTES];
static struct lane_memory *from_memory, *to_memory;
static const struct rdma_host_way roce = { &rdma_host_roce, NULL };
static const struct rdma_host_way iwarp = { &rdma_host_iwarp, NULL };

static int set_up(void **state) {
  rdma_host_set_up(state);
  lane_memory_want(true);
  memset(from, 1, BYTES);
  memset(to, 0, BYTES);
  from_memory = lane_memory_register(from, BYTES, LANE_MEMORY_LOCAL, NULL);
  to_memory = lane_memory_register(to, BYTES, LANE_MEMORY_REMOTE, NULL);
  return 0;
}

static int tear_down(void **state) {
  fake_verbs_heal_calls();
  lane_memory_free(from_memory);
  lane_memory_free(to_memory);
  lane_memory_want(false);
  return rdma_host_tear_down(state); /* fails if anything is left */
}

#define TEST(name) UNIT_TEST_EACH(name, set_up, tear_down, &roce)
#define BOTH(name) UNIT_TEST_EACH(name, set_up, tear_down, &roce, &iwarp)

/* ---- who is connected ---- */

TEST(strangers_are_rejected_and_the_peer_comes_in) {
  struct rdma_host_two two = rdma_host_listen();
  struct lane_tokens wrong = two.tokens;
  struct rdma_qp *late;
  wrong.request[LANE_TOKEN_BYTES - 1]++;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(rdma_host_dial(&two, &wrong, &two.dialler), -ECONNREFUSED);
  }
  assert_int_equal(fake_verbs_counts().cm_rejected, 3);
  assert_true(log_capture_count(LOG_LEVEL_WARN) <= 1); /* told once in a while */
  assert_int_equal(rdma_host_dial(&two, &two.tokens, &two.dialler), 0);
  assert_true(two.dialler->is_connected);
  assert_true(two.listener->is_connected);
  /* Nobody listens there any more, not even for who knows the token. */
  assert_int_equal(rdma_host_dial(&two, &two.tokens, &late), -ECONNREFUSED);
  assert_int_equal(fake_verbs_counts().cm_accepted, 1);
  rdma_host_free_two(&two);
}

/* The device has as many users as before. */
TEST(without_a_descriptor_there_is_no_queue_pair) {
  struct rdma_host_two two = rdma_host_listen();
  const struct endpoint_peer peer = { &two.offer, &two.tokens, two.fds[1], -1 };
  unsigned users = two.listener->device->users;
  fault_refuse(FAULT_EVENTFD, EMFILE);
  assert_null(endpoint_accept(&two.nic, &peer));
  fault_clear();
  assert_int_equal(two.listener->device->users, users);
  assert_int_equal(rdma_host_dial(&two, &two.tokens, &two.dialler), 0);
  rdma_host_free_two(&two);
}

BOTH(an_answer_of_somebody_else_is_not_taken) {
  struct rdma_host_two two = rdma_host_listen();
  struct lane_tokens other = two.tokens;
  other.answer[0]++;
  assert_int_equal(rdma_host_dial(&two, &other, &two.dialler), -EKEYREJECTED);
  rdma_host_free_two(&two);
}

BOTH(the_end_of_one_is_heard_by_the_other) {
  struct rdma_host_two two = rdma_host_two();
  endpoint_free(&two.dialler->endpoint);
  two.dialler = NULL;
  assert_int_equal(rdma_host_result(two.listener, 0), -ECONNRESET);
  rdma_host_free_two(&two);
}

/* ---- stopping ---- */

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

static uint32_t local_key(const struct lane_memory *memory, const struct rdma_qp *qp) {
  uint32_t local, remote;
  assert_true(rdma_memory_keys(memory, qp->endpoint.domain.index, &local, &remote));
  return local;
}

static uint32_t remote_key(const struct lane_memory *memory, const struct rdma_qp *qp) {
  return lane_memory_remote_key(memory, qp->endpoint.domain);
}

static enum ibv_wc_status write_once(const struct rdma_host_two *two) {
  return write_with(two->dialler, from, local_key(from_memory, two->dialler), to,
                    remote_key(to_memory, two->listener));
}

/* The peer's last packets come now; to_memory stays as it is. */
static void expect_no_late_write(void) {
  memset(to, 2, BYTES);
  assert_int_equal(fake_verbs_write_late(), 0);
  assert_int_equal(to[0], 2);
  assert_int_equal(to[BYTES - 1], 2);
}

static struct rdma_host_two two_that_wrote(void) {
  struct rdma_host_two two = rdma_host_two();
  assert_int_equal(write_once(&two), IBV_WC_SUCCESS);
  return two;
}

TEST(what_cannot_be_stopped_is_destroyed) {
  struct rdma_host_two two = two_that_wrote();
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  assert_int_equal(endpoint_stop(&two.listener->endpoint), 0);
  expect_no_late_write();
  assert_int_equal(fake_verbs_counts().qps, 1);
  assert_false(atomic_load(&two.listener->device->is_lost));
  rdma_host_free_two(&two);
}

/* Nor does the worker use it any more, when the peer comes. */
TEST(what_was_destroyed_takes_nobody) {
  struct rdma_host_two two = rdma_host_listen();
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  assert_int_equal(endpoint_stop(&two.listener->endpoint), 0);
  assert_int_equal(rdma_host_dial(&two, &two.tokens, &two.dialler), -ECONNREFUSED);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  rdma_host_free_two(&two);
}

/* The worker that connects it may be using it: no other thread destroys it. */
TEST(what_a_worker_connects_is_not_destroyed) {
  struct rdma_host_two two = two_that_wrote();
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  pthread_mutex_lock(&two.listener->in_use);
  assert_int_equal(endpoint_stop(&two.listener->endpoint), 0);
  pthread_mutex_unlock(&two.listener->in_use);
  assert_int_equal(fake_verbs_counts().qps, 2);
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  expect_no_late_write();
  rdma_host_free_two(&two);
}

TEST(what_cannot_be_destroyed_loses_its_memory) {
  struct rdma_host_two two = two_that_wrote();
  fake_verbs_fail_calls(FAKE_STOP_QP, EIO);
  fake_verbs_fail_calls(FAKE_DESTROY_QP, EBUSY);
  assert_int_equal(endpoint_stop(&two.listener->endpoint), 0);
  expect_no_late_write();
  assert_true(atomic_load(&two.listener->device->is_lost));
  assert_int_equal(fake_verbs_counts().remote_mrs, 0);
  assert_int_equal(remote_key(to_memory, two.listener), 0);
  assert_true(local_key(from_memory, two.listener) != 0);
  /* Nor is anything registered there that a peer could write. */
  struct lane_memory *late = lane_memory_register(to, BYTES, LANE_MEMORY_REMOTE, NULL);
  assert_int_equal(remote_key(late, two.listener), 0);
  lane_memory_free(late);
  struct rdma_queue *queue = &two.listener->device->queue;
  rdma_host_free_two(&two);
  rdma_worker_finish(queue);
  assert_int_equal(log_capture_find("fake0 does not give up a queue pair (ibv_destroy_qp: Device "
                                    "or resource busy): its 147456 bytes are kept"),
                   1);
}
